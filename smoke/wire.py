"""HTTP as it comes: every status is an answer, no redirect is followed, nothing is believed."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import TYPE_CHECKING, Final

from smoke.errors import WrongError
from smoke.expectations import Json, shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from http.client import HTTPResponse
    from urllib.request import Request

TIMEOUT: Final = 35.0
"""Seconds without a byte after which there is no answer: API Gateway gives up after 30."""

MAX_ANSWER: Final = 10_000_000
"""The longest answer that is read, in bytes: Lambda's longest is 6 MB."""


@dataclass(frozen=True)
class Answer:
    """What came back. The names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def expect(self, status: int) -> None:
        """Raise WrongError where the status is another one."""
        if self.status != status:
            body = self.body[:1000].decode("utf-8", "replace")
            raise WrongError(f"HTTP {self.status} in the place of {status}: {shown(body)}")

    def json(self, media_type: str = "application/json") -> Json:
        """The body as JSON. Raises WrongError where it is none, or says that it is something else."""
        said = self.headers.get("content-type", "")
        if said.partition(";")[0].strip().lower() != media_type:
            raise WrongError(f"the Content-Type is {shown(said)}")
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise WrongError(f"the body is no JSON: {shown(self.body[:1000].decode('utf-8', 'replace'))}") from error


class _AsItComes(urllib.request.HTTPErrorProcessor):
    """Lets every answer through; urllib's own raises for most, and follows redirects with all headers."""

    def http_response(self, request: Request, response: HTTPResponse) -> HTTPResponse:
        """Return the answer."""
        del request
        return response

    https_response = http_response


class Wire:
    """Sends requests, one connection each, and remembers how long the last one took."""

    def __init__(self) -> None:
        self._opener = urllib.request.build_opener(_AsItComes)
        self.seconds = 0.0
        """How long all requests took together."""

    def send(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        """The answer to a request.

        Raises WrongError where there is none.
        """
        sent = {"User-Agent": "a2a-lambda-smoke", **(headers or {})}
        request = urllib.request.Request(url, body, sent, method=method)  # noqa: S310 - `settings` takes http and https
        started = time.perf_counter()
        try:
            with self._opener.open(request, timeout=TIMEOUT) as response:
                content = response.read(MAX_ANSWER)
                return Answer(
                    response.status, {name.lower(): value for name, value in response.headers.items()}, content
                )
        except urllib.error.URLError as error:
            raise WrongError(f"no answer to {method} {url}: {error.reason}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise WrongError(f"no answer to {method} {url}: {error!r}") from error
        finally:
            self.seconds += time.perf_counter() - started
