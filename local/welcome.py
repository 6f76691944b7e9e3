"""What the gateway says first: where the agent is, and how to try it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from local.events import Request
from local.server import HOST

if TYPE_CHECKING:
    from local.gateway import Gateway

CARD_PATH = "/.well-known/agent-card.json"

# What curl is to show, from a variable of the shell.
CREDENTIALS = {"api-key": ' -H "x-api-key: $API_KEY"', "jwt": ' -H "Authorization: Bearer $TOKEN"'}


def welcome(gateway: Gateway, port: int, database: str, auth: str) -> str:
    """The lines to print once the gateway answers."""
    origin = f"http://{HOST}:{port}"
    lines = [
        f"Agent card  {origin}{CARD_PATH}",
        f"DynamoDB    {database}",
        *([f"Make a key  make key CALLER=you DYNAMODB_ENDPOINT={database}"] if auth == "api-key" else []),
        "Try it      " + try_it(origin, _example(_card(gateway, port)), CREDENTIALS.get(auth, "")),
        "Ctrl-C stops it.",
    ]
    return "\n".join(lines)


def try_it(origin: str, example: str, credential: str = "") -> str:
    """A shell command that sends the example message, under a new message id each time it is run."""
    here = "<message-id>"
    message = {"messageId": here, "role": "ROLE_USER", "parts": [{"text": example}]}
    request = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    quoted = json.dumps(request, separators=(",", ":"), ensure_ascii=False).replace("'", r"'\''")
    body = quoted.replace(here, "try-'$(date +%s)'", 1)
    return f"curl -s {origin}/a2a -H 'Content-Type: application/json' -H 'A2A-Version: 1.0'{credential} -d '{body}'"


def _card(gateway: Gateway, port: int) -> Any:
    request = Request("GET", CARD_PATH, "", {}, b"", "HTTP/1.1", HOST, HOST, port)
    try:
        return json.loads(gateway.answer(request).body)
    except ValueError:
        return None


def _example(card: Any) -> str:
    """The first example of the agent's first skill, or a greeting."""
    try:
        return str(card["skills"][0]["examples"][0])
    except (KeyError, IndexError, TypeError):
        return "Hello"
