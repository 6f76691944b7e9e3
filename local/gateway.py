"""API Gateway's HTTP API as a WSGI application in front of the functions' handlers."""

from __future__ import annotations

import secrets
import time
import traceback
from dataclasses import replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

from local import answers, console, cors
from local.authorizers import RefusedError
from local.errors import FunctionTimeoutError
from local.events import Request, make_event, split_target
from local.routes import choose

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from wsgiref.types import StartResponse, WSGIEnvironment

    from local.answers import Answer
    from local.deployment import Cors
    from local.functions import LoadedFunction
    from local.routes import Match, Route

MAX_BODY_BYTES = 10 * 1024 * 1024


class Gateway:
    """The routes and CORS rules of an API, and the functions behind it."""

    def __init__(self, routes: Iterable[Route], functions: Mapping[str, LoadedFunction], rules: Cors | None) -> None:
        self._routes = tuple(routes)
        self._functions = functions
        self._cors = rules

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request of the WSGI server, and log it in one line."""
        started = time.perf_counter()
        request = read_request(environ)
        answer = self.answer(request)
        start_response(f"{answer.status} {_reason(answer.status)}", _sent_headers(answer))
        call = console.describe_call(request.body, answer.body)
        milliseconds = (time.perf_counter() - started) * 1000
        console.say(console.request_line(request.method, request.path, call, answer.status, milliseconds))
        return [] if request.method == "HEAD" else [answer.body]

    def answer(self, request: Request) -> Answer:
        """What API Gateway answers to the request."""
        if self._cors is None:
            return self._from_function(request)
        preflight = cors.preflight(self._cors, request)
        return preflight or cors.allow(self._cors, request, self._from_function(request))

    def _from_function(self, request: Request) -> Answer:
        if len(request.body) > MAX_BODY_BYTES:
            return answers.TOO_LARGE
        match = choose(self._routes, request.method, request.path)
        return answers.NOT_FOUND if match is None else self._invoke(request, match)

    def _invoke(self, request: Request, match: Match) -> Answer:
        request_id = secrets.token_urlsafe(12)
        function = self._functions[match.route.function]
        now = datetime.now(UTC)
        try:
            authorizer = match.route.authorizer
            identity = authorizer.identify(request.headers, now.timestamp()) if authorizer else None
            event = make_event(request, match, request_id, now, identity)
            answer = answers.from_result(function.invoke(event, request_id, match.route.timeout))
        except RefusedError as refused:
            answer = refused.answer
        except FunctionTimeoutError as error:
            console.complain(str(error))
            answer = answers.UNAVAILABLE
        except Exception:  # noqa: BLE001 - whatever a handler raises is a 500 in AWS too
            traceback.print_exc()
            answer = answers.INTERNAL_ERROR
        return replace(answer, headers=(*answer.headers, ("Apigw-Requestid", request_id)))


def read_request(environ: WSGIEnvironment) -> Request:
    """The request that the WSGI server received."""
    path, query = split_target(environ["REQUEST_URI"])
    headers = {
        key.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
        for key, value in environ.items()
        if key.startswith("HTTP_") or key in {"CONTENT_TYPE", "CONTENT_LENGTH"}
    }
    return Request(
        method=environ["REQUEST_METHOD"],
        path=path,
        query=query,
        headers=headers,
        body=environ["wsgi.input"].read(),
        protocol=environ["SERVER_PROTOCOL"],
        source_ip=environ["REMOTE_ADDR"],
        server_host=environ["SERVER_NAME"],
        server_port=int(environ["SERVER_PORT"]),
    )


def _sent_headers(answer: Answer) -> list[tuple[str, str]]:
    headers = list(answer.headers)
    if answer.status not in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}:
        headers.append(("Content-Length", str(len(answer.body))))
    return headers


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
