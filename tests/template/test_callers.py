"""Who may call, for each value of the parameter Auth: what API Gateway checks, and what it leaves to the function."""

import re
from typing import Any

import pytest

from tests.template.deployments import deployed, of_type, refusals

CARD_ROUTES = {
    "GET /.well-known/agent-card.json",
    "HEAD /.well-known/agent-card.json",
    "GET /.well-known/jwks.json",
    "HEAD /.well-known/jwks.json",
}
TOKENS = {"JwtIssuer": "https://issuer.example/pool", "JwtAudience": "agents,people"}

# The authorization type and the authorizer of every route that is not the card's.
CHECKS = {
    "none": ("NONE", None),
    "api-key": ("NONE", None),
    "jwt": ("JWT", "JwtAuthorizer"),
    "iam": ("AWS_IAM", None),
}


def checks(auth: str) -> dict[str, tuple[str, str | None]]:
    routes = of_type(deployed(Auth=auth, **TOKENS), "AWS::ApiGatewayV2::Route").values()
    found = (route["Properties"] for route in routes)
    return {route["RouteKey"]: (route["AuthorizationType"], route.get("AuthorizerId")) for route in found}


def test_every_value_of_auth_is_tried_here(template: dict[str, Any]) -> None:
    assert set(template["Parameters"]["Auth"]["AllowedValues"]) == set(CHECKS)


def test_a_deployment_asks_for_api_keys_unless_it_is_told_otherwise(template: dict[str, Any]) -> None:
    assert template["Parameters"]["Auth"]["Default"] == "api-key"


@pytest.mark.parametrize("auth", CHECKS)
def test_the_card_and_its_keys_are_public(auth: str) -> None:
    assert {key: check for key, check in checks(auth).items() if key in CARD_ROUTES} == dict.fromkeys(
        CARD_ROUTES, ("NONE", None)
    )


@pytest.mark.parametrize("auth", CHECKS)
def test_every_other_route_is_checked_as_auth_says(auth: str) -> None:
    others = {key: check for key, check in checks(auth).items() if key not in CARD_ROUTES}

    assert set(others) == {"POST /a2a", "POST /a2a/{proxy+}"}
    assert set(others.values()) == {CHECKS[auth]}


@pytest.mark.parametrize("auth", CHECKS)
def test_the_functions_know_how_callers_are_told_apart(auth: str) -> None:
    resources = deployed(Auth=auth, **TOKENS)

    for name in ("CardFunction", "RpcFunction"):
        assert resources[name]["Properties"]["Environment"]["Variables"]["AUTH"] == auth


def test_tokens_are_verified_against_the_issuer_and_the_audiences() -> None:
    resources = deployed(Auth="jwt", **TOKENS)

    assert resources["JwtAuthorizer"]["Properties"] == {
        "ApiId": "HttpApi",
        "Name": "jwt",
        "AuthorizerType": "JWT",
        "IdentitySource": ["$request.header.Authorization"],
        "JwtConfiguration": {"Issuer": TOKENS["JwtIssuer"], "Audience": ["agents", "people"]},
    }
    assert resources["CardFunction"]["Properties"]["Environment"]["Variables"]["JWT_ISSUER"] == TOKENS["JwtIssuer"]


@pytest.mark.parametrize("auth", sorted(set(CHECKS) - {"jwt"}))
def test_without_tokens_there_is_no_authorizer(auth: str) -> None:
    assert not of_type(deployed(Auth=auth), "AWS::ApiGatewayV2::Authorizer")


def test_tokens_without_an_issuer_or_an_audience_are_refused_before_anything_is_made() -> None:
    assert refusals(Auth="jwt") == ["Auth=jwt needs JwtIssuer", "Auth=jwt needs JwtAudience"]
    assert refusals(Auth="jwt", JwtIssuer=TOKENS["JwtIssuer"]) == ["Auth=jwt needs JwtAudience"]
    assert refusals(Auth="jwt", JwtAudience=TOKENS["JwtAudience"]) == ["Auth=jwt needs JwtIssuer"]


@pytest.mark.parametrize("parameters", [{}, {"Auth": "none"}, {"Auth": "iam"}, {"Auth": "jwt", **TOKENS}])
def test_every_other_combination_is_taken(parameters: dict[str, str]) -> None:
    assert refusals(**parameters) == []


@pytest.mark.parametrize(
    ("parameter", "value", "is_taken"),
    [
        ("JwtIssuer", "", True),
        ("JwtIssuer", "https://issuer.example/pool", True),
        ("JwtIssuer", "http://issuer.example", False),
        ("JwtIssuer", "issuer.example", False),
        ("JwtAudience", "", True),
        ("JwtAudience", "agents", True),
        ("JwtAudience", "https://agent.example,agents", True),
        ("JwtAudience", "agents, people", False),
        ("JwtAudience", "agents,", False),
        ("JwtAudience", ",", False),
        ("RequiredScope", "", True),
        ("RequiredScope", "agent:use", True),
        ("RequiredScope", "https://agent.example/use", True),
        ("RequiredScope", "agent:use agent:list", False),
        ("RequiredScope", "[agent:use]", False),
    ],
)
def test_a_parameter_takes_only_what_can_work(
    template: dict[str, Any], parameter: str, value: str, *, is_taken: bool
) -> None:
    pattern = template["Parameters"][parameter]["AllowedPattern"]

    assert bool(re.fullmatch(pattern, value)) == is_taken
