"""POST /a2a: the JSON-RPC binding behind API Gateway. Event in, response out."""

import time
from typing import Any

from aws_lambda_powertools import Logger

from a2a_lambda import apigateway, bootstrap, tally
from a2a_lambda.calls import Call
from a2a_lambda.observation import report

logger = Logger(use_rfc3339=True)
server = bootstrap.rpc_server()


def handler(event: apigateway.Event, context: Any) -> apigateway.Response:
    """Answer one JSON-RPC request.

    The route below /a2a is there for clients that join a trailing slash to the address; it has no other paths.
    """
    if (event.get("pathParameters") or {}).get("proxy"):
        return apigateway.NOT_FOUND
    started = time.perf_counter()
    counts = tally.begin()

    def admit() -> Call:
        return Call(
            owner=server.admit(apigateway.credentials(event)),
            extensions=apigateway.listed(event, "a2a-extensions"),
            seconds_left=lambda: context.get_remaining_time_in_millis() / 1000,
        )

    version = apigateway.header(event, "a2a-version") or apigateway.parameter(event, "A2A-Version")
    answer = server.endpoint.answer(apigateway.body(event), version=version, admit=admit)
    report(
        logger,
        answer,
        counts,
        duration_ms=(time.perf_counter() - started) * 1000,
        correlation_id=event["requestContext"]["requestId"],
    )
    return apigateway.response(answer.status, answer.body, answer.headers)
