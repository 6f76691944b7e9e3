"""Which route answers a request: API Gateway's choice for HTTP APIs.

The most specific path wins: a literal segment before `{name}` before `{name+}` before
`$default`; of two routes with the same path, the one that names the method wins over
`ANY`. A greedy variable also takes nothing at all: `/a2a/{proxy+}` answers `/a2a/`
with an empty `proxy`. API Gateway does not document that last case; this project
builds on it, for the trailing slash that many HTTP clients add.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from local.authorizers import Authorizer

DEFAULT_ROUTE = "$default"

LITERAL, VARIABLE, GREEDY, DEFAULT = range(4)


@dataclass(frozen=True)
class Route:
    """A route key, the function behind it, how long its integration may take in seconds, and who stands before it."""

    key: str
    function: str
    timeout: float
    authorizer: Authorizer | None = None


@dataclass(frozen=True)
class Match:
    """The chosen route, and what the variables in its path stand for."""

    route: Route
    parameters: Mapping[str, str]


def choose(routes: Iterable[Route], method: str, path: str) -> Match | None:
    """The route for a request's method and decoded path, or None where API Gateway answers 404."""
    matches = [match for route in routes if (match := _match(route, method, path))]
    return min(matches, key=lambda match: _generality(match.route), default=None)


def _match(route: Route, method: str, path: str) -> Match | None:
    if route.key == DEFAULT_ROUTE:
        return Match(route, {})
    wanted, _, pattern = route.key.partition(" ")
    if wanted not in {method, "ANY"}:
        return None
    parts = pattern.split("/")
    found = re.fullmatch("/".join(_expression(part) for part in parts), path, re.DOTALL)
    if found is None:
        return None
    names = [part.strip("{+}") for part in parts if _kind(part) != LITERAL]
    return Match(route, dict(zip(names, found.groups(), strict=True)))


def _generality(route: Route) -> tuple[list[int], bool]:
    """How much a route takes, for a choice between those that match: the least wins."""
    wanted, _, pattern = route.key.partition(" ")
    kinds = [DEFAULT] if route.key == DEFAULT_ROUTE else [_kind(part) for part in pattern.split("/")]
    return kinds, wanted == "ANY"


def _kind(part: str) -> int:
    if not (part.startswith("{") and part.endswith("}")):
        return LITERAL
    return GREEDY if part.endswith("+}") else VARIABLE


def _expression(part: str) -> str:
    return {LITERAL: re.escape(part), VARIABLE: "([^/]+)", GREEDY: "(.*)"}[_kind(part)]
