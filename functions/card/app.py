"""GET /.well-known/agent-card.json and /.well-known/jwks.json behind API Gateway. Event in, response out."""

import os
from typing import TYPE_CHECKING, Any

from a2a_lambda import apigateway, settings
from a2a_lambda.card import agent_card, publish
from a2a_lambda.loading import load_agent
from a2a_lambda.security import secured
from a2a_lambda.settings import CardSettings

if TYPE_CHECKING:
    from a2a_lambda.signing import Signer


def signer_of(configured: CardSettings) -> "Signer | None":
    """Return what signs the card, None where nothing does. Only a signed card is worth loading an AWS client."""
    if not configured.signing_key:
        return None
    from a2a_lambda import kms, timestamps  # noqa: PLC0415
    from a2a_lambda.signing import Signer  # noqa: PLC0415

    return Signer(configured.signing_key.split(","), kms.connect(configured.kms_endpoint), timestamps.now)


configured = settings.load(CardSettings, os.environ)
profile = load_agent(configured.a2a_agent).card
signer = signer_of(configured)


def handler(event: apigateway.Event, _context: Any) -> apigateway.Response:
    """Answer GET and HEAD with the card or the keys, or with 304 where the client has them already."""
    if_none_match = apigateway.header(event, "if-none-match")
    if event["routeKey"].endswith("/jwks.json"):
        return apigateway.response(*signer.publish_keys(if_none_match)) if signer else apigateway.NOT_FOUND
    base_url = configured.public_url.rstrip("/") or apigateway.base_url(event)
    card = secured(agent_card(profile, base_url, push=configured.push == "on"), configured)
    answer = signer.publish(card, base_url, if_none_match) if signer else publish(card, if_none_match)
    return apigateway.response(*answer)
