"""The functions as Lambda runs them: their modules, imported afresh, and API Gateway's events."""

import importlib.util
import itertools
import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from a2a_lambda import clients
from tests.integration.tables import session
from tests.schema import checked

ROOT: Final = Path(__file__).resolve().parents[2]
AWS_DOMAIN: Final = "abc123.execute-api.us-east-1.amazonaws.com"
CARD_PATH: Final = "/.well-known/agent-card.json"

ENVIRONMENT: Final = {
    "A2A_AGENT": "order_status:OrderStatusAgent",
    "POWERTOOLS_SERVICE_NAME": "a2a",
    "POWERTOOLS_METRICS_NAMESPACE": "a2a",
    "POWERTOOLS_METRICS_DISABLED": "true",
}

Event = dict[str, Any]
Handler = Callable[[Event, Any], dict[str, Any]]

_numbers: Final = itertools.count(1)


@dataclass(frozen=True)
class Context:
    """What a handler is told beside its event."""

    milliseconds_left: int = 25_000
    aws_request_id: str = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        return self.milliseconds_left


def load(name: str, environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Handler:
    """Return a function's handler, its module imported afresh in this environment."""
    given = {**ENVIRONMENT, **environ}
    for variable, value in given.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(clients, "client", _client)
    module_name = f"function_{name}_{next(_numbers)}"
    spec = importlib.util.spec_from_file_location(module_name, ROOT / "functions" / name / "app.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, module_name, module)
    spec.loader.exec_module(module)
    _log_to_standard_output(given["POWERTOOLS_SERVICE_NAME"], monkeypatch)
    handler: Handler = module.handler
    return checked(handler)


def _client(service: str, endpoint: str, config: Any) -> Any:
    """Return a client from a session that has read its service's description once for all tests."""
    return session().create_client(service, endpoint_url=endpoint or None, config=config)


def _log_to_standard_output(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Powertools log to the standard output of this moment, and as the environment says; it is set up once."""
    logger = logging.getLogger(service)
    logger.setLevel(os.environ.get("POWERTOOLS_LOG_LEVEL", "INFO"))
    for handler in logger.handlers:
        if isinstance(handler, logging.StreamHandler):
            monkeypatch.setattr(handler, "stream", sys.stdout)


def http_event(
    method: str,
    path: str,
    headers: Mapping[str, str] = {},
    body: str | None = None,
    domain: str = AWS_DOMAIN,
) -> Event:
    """Return API Gateway's event for a request."""
    return {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "headers": {name.lower(): value for name, value in headers.items()},
        "requestContext": {
            "domainName": domain,
            "stage": "$default",
            "requestId": "gateway-1",
            "http": {"method": method, "path": path, "sourceIp": "192.0.2.7"},
        },
        "isBase64Encoded": False,
    } | ({} if body is None else {"body": body})


def rpc_event(method: str, params: Any, **headers: str) -> Event:
    """Return API Gateway's event for a JSON-RPC request."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return http_event("POST", "/a2a", {"A2A-Version": "1.0", **headers}, msgspec.json.encode(request).decode())


def content(answer: Mapping[str, Any]) -> Any:
    """Return an answer's body, read as JSON."""
    return msgspec.json.decode(answer["body"])
