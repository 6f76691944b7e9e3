"""GET /.well-known/agent-card.json: the agent card behind API Gateway. Event in, response out."""

import os
from typing import Any

from a2a_lambda import apigateway, settings
from a2a_lambda.card import agent_card, publish
from a2a_lambda.loading import load_agent
from a2a_lambda.settings import CardSettings

configured = settings.load(CardSettings, os.environ)
profile = load_agent(configured.a2a_agent).card


def handler(event: apigateway.Event, _context: Any) -> apigateway.Response:
    """Answer GET and HEAD with the card, or with 304 where the client has it already."""
    base_url = configured.public_url.rstrip("/") or apigateway.base_url(event)
    status, content, headers = publish(agent_card(profile, base_url), apigateway.header(event, "if-none-match"))
    return apigateway.response(status, content, headers)
