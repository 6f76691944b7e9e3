"""How callers authenticate, as the agent card declares it (§4.5, §7.3). Who they then are is for `callers`."""

from typing import Final

from msgspec.structs import replace

from a2a_lambda.model import (
    AgentCard,
    APIKeySecurityScheme,
    HTTPAuthSecurityScheme,
    OpenIdConnectSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a_lambda.settings import CardSettings

Schemes = dict[str, SecurityScheme]

API_KEY: Final[Schemes] = {
    "apiKey": SecurityScheme(
        api_key_security_scheme=APIKeySecurityScheme("header", "x-api-key", "An API key of this server.")
    ),
    "bearer": SecurityScheme(
        http_auth_security_scheme=HTTPAuthSecurityScheme("Bearer", "The same API key, as a bearer token.")
    ),
}

SIGNATURE_V4: Final[Schemes] = {
    "awsSignature": SecurityScheme(
        http_auth_security_scheme=HTTPAuthSecurityScheme(
            "AWS4-HMAC-SHA256", "AWS Signature Version 4, for the service execute-api."
        )
    ),
}


def secured(card: AgentCard, configured: CardSettings) -> AgentCard:
    """Return the card with what a caller needs: any one of the schemes."""
    schemes = _schemes(configured)
    scopes = [configured.required_scope] if configured.auth == "jwt" and configured.required_scope else []
    requirements = [SecurityRequirement({name: StringList(scopes)}) for name in schemes]
    return replace(card, security_schemes=schemes, security_requirements=requirements)


def _schemes(configured: CardSettings) -> Schemes:
    match configured.auth:
        case "none":
            return {}
        case "api-key":
            return API_KEY
        case "iam":
            return SIGNATURE_V4
        case "jwt":
            metadata = configured.jwt_issuer.rstrip("/") + "/.well-known/openid-configuration"
            return {
                "openIdConnect": SecurityScheme(open_id_connect_security_scheme=OpenIdConnectSecurityScheme(metadata))
            }
