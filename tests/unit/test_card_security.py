"""What the card says of how callers authenticate."""

import msgspec
import pytest

from a2a_lambda import settings
from a2a_lambda.card import agent_card
from a2a_lambda.security import secured
from a2a_lambda.settings import CardSettings, InvalidSettingError
from tests.unit.factories import PROFILE, Json


def declared(**environ: str) -> Json:
    configured = settings.load(CardSettings, {"A2A_AGENT": "order_status:OrderStatusAgent"} | environ)
    card = msgspec.json.decode(msgspec.json.encode(secured(agent_card(PROFILE, "https://agent.example"), configured)))
    return {name: card[name] for name in ("securitySchemes", "securityRequirements") if name in card}


def test_an_open_server_declares_nothing() -> None:
    assert declared(AUTH="none") == {}


def test_an_api_key_goes_into_its_header_or_into_a_bearer_token() -> None:
    assert declared(AUTH="api-key") == {
        "securitySchemes": {
            "apiKey": {
                "apiKeySecurityScheme": {
                    "location": "header",
                    "name": "x-api-key",
                    "description": "An API key of this server.",
                }
            },
            "bearer": {
                "httpAuthSecurityScheme": {"scheme": "Bearer", "description": "The same API key, as a bearer token."}
            },
        },
        "securityRequirements": [{"schemes": {"apiKey": {}}}, {"schemes": {"bearer": {}}}],
    }


@pytest.mark.parametrize("issuer", ["https://issuer.example/tenant", "https://issuer.example/tenant/"])
def test_tokens_come_from_the_issuer(issuer: str) -> None:
    assert declared(AUTH="jwt", JWT_ISSUER=issuer) == {
        "securitySchemes": {
            "openIdConnect": {
                "openIdConnectSecurityScheme": {
                    "openIdConnectUrl": "https://issuer.example/tenant/.well-known/openid-configuration"
                }
            }
        },
        "securityRequirements": [{"schemes": {"openIdConnect": {}}}],
    }


def test_a_scope_that_tokens_must_have_is_named() -> None:
    card = declared(AUTH="jwt", JWT_ISSUER="https://issuer.example", REQUIRED_SCOPE="orders/read")

    assert card["securityRequirements"] == [{"schemes": {"openIdConnect": {"list": ["orders/read"]}}}]


def test_a_scope_means_nothing_to_an_api_key() -> None:
    assert "list" not in str(declared(AUTH="api-key", REQUIRED_SCOPE="orders/read"))


def test_aws_signatures_are_a_scheme_of_http() -> None:
    card = declared(AUTH="iam")

    assert card["securitySchemes"]["awsSignature"]["httpAuthSecurityScheme"]["scheme"] == "AWS4-HMAC-SHA256"
    assert card["securityRequirements"] == [{"schemes": {"awsSignature": {}}}]


def test_tokens_without_an_issuer_are_refused_at_start() -> None:
    with pytest.raises(InvalidSettingError, match="JWT_ISSUER: must be set"):
        declared(AUTH="jwt")


@pytest.mark.parametrize("keys", [",", "a,", ",a", "a,,b", "a, b", " "])
def test_what_is_no_list_of_keys_is_refused_at_start(keys: str) -> None:
    with pytest.raises(InvalidSettingError, match="SIGNING_KEY"):
        declared(SIGNING_KEY=keys)
