"""Who may reach a route behind API Gateway's authorizers, and what the function is told of them."""

import base64
import json
from typing import Any

import pytest

from local.authorizers import IamAuthorizer, JwtAuthorizer, RefusedError
from local.template import ACCOUNT_ID

NOW = 1_790_000_000
ISSUER = "https://issuer.example/pool"
TOKENS = JwtAuthorizer(ISSUER, ("agents", "people"), "authorization")
CLAIMS = {"iss": ISSUER, "aud": "agents", "sub": "alice", "exp": NOW + 60}
SIGNATURE = f"SignedHeaders=host;x-amz-date, Signature={'0' * 64}"


def segment(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def token(claims: Any) -> str:
    return ".".join((segment({"alg": "RS256", "kid": "1"}), segment(claims), "unverified"))


def told(claims: Any) -> Any:
    identity = TOKENS.identify({"authorization": f"Bearer {token(claims)}"}, NOW)
    jwt = identity["jwt"]
    assert isinstance(jwt, dict)
    assert jwt["scopes"] is None
    return jwt["claims"]


def refusal(authorization: str | None) -> str:
    """The challenge of a 401."""
    with pytest.raises(RefusedError) as refused:
        TOKENS.identify({} if authorization is None else {"authorization": authorization}, NOW)
    answer = refused.value.answer
    assert (answer.status, answer.body) == (401, b'{"message":"Unauthorized"}')
    return dict(answer.headers)["WWW-Authenticate"]


def test_claims_arrive_as_strings() -> None:
    claims = CLAIMS | {"admin": True, "n": 1.5, "none": None, "groups": ["a", "b", 1], "of": {"b": [], "a": {"c": 2}}}
    assert told(claims) == {
        "iss": ISSUER,
        "aud": "agents",
        "sub": "alice",
        "exp": str(NOW + 60),
        "admin": "true",
        "n": "1.5",
        "none": "<nil>",
        "groups": "[a b 1]",
        "of": "map[a:map[c:2] b:[]]",
    }


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "Bearer   ", ""])
def test_a_token_stands_behind_bearer_or_alone(scheme: str) -> None:
    assert TOKENS.identify({"authorization": scheme + token(CLAIMS)}, NOW)


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "people"},
        {"aud": ["others", "agents"]},
        {"aud": None, "client_id": "agents"},
    ],
)
def test_one_of_the_audiences_is_enough(claims: dict[str, Any]) -> None:
    given = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    assert told(given)["sub"] == "alice"


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "agent"},
        {"aud": []},
        {"aud": 1},
        {"aud": {"agents": True}},
        {"aud": "others", "client_id": "agents"},
        {"aud": "AGENTS"},
    ],
)
def test_a_token_for_another_audience_is_refused(claims: dict[str, Any]) -> None:
    assert refusal(f"Bearer {token(CLAIMS | claims)}") == (
        'Bearer scope="" error="invalid_token" error_description="the token does not have a valid audience"'
    )


@pytest.mark.parametrize("name", ["iss", "aud", "exp"])
def test_a_claim_that_is_missing_is_a_refusal(name: str) -> None:
    claims = {other: value for other, value in CLAIMS.items() if other != name}
    assert 'error="invalid_token"' in refusal(f"Bearer {token(claims)}")


@pytest.mark.parametrize("issuer", [f"{ISSUER}/", ISSUER.upper(), "", None, [ISSUER]])
def test_a_token_of_another_issuer_is_refused(issuer: Any) -> None:
    assert "issuer" in refusal(f"Bearer {token(CLAIMS | {'iss': issuer})}")


@pytest.mark.parametrize("until", [NOW, NOW - 1, str(NOW + 60), True, None])
def test_a_token_that_has_expired_is_refused(until: Any) -> None:
    assert "expired" in refusal(f"Bearer {token(CLAIMS | {'exp': until})}")


@pytest.mark.parametrize("name", ["nbf", "iat"])
def test_a_token_of_the_future_is_refused(name: str) -> None:
    assert told(CLAIMS | {name: NOW})
    assert "not valid yet" in refusal(f"Bearer {token(CLAIMS | {name: NOW + 1})}")
    assert "not valid yet" in refusal(f"Bearer {token(CLAIMS | {name: 'now'})}")


@pytest.mark.parametrize("authorization", [None, "", "  ", "Bearer", "Bearer "])
def test_without_a_token_the_challenge_is_bare(authorization: str | None) -> None:
    assert refusal(authorization) == "Bearer"


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer x",
        "Bearer a.b",
        "Bearer a.b.c",
        "Bearer ..",
        "Bearer a.b.c.d",
        f"Basic {token(CLAIMS)}x y",
        f"Bearer {token(CLAIMS)}, Bearer {token(CLAIMS)}",
        f"Bearer {token(['iss', ISSUER])}",
        f"Bearer {token('text')}",
        f"Bearer é.{segment(CLAIMS)}.x",
        f"Bearer {segment([])}.{segment(CLAIMS)}.x",
    ],
)
def test_what_is_no_token_is_refused(authorization: str) -> None:
    assert 'error="invalid_token"' in refusal(authorization)


def test_a_signed_request_is_its_access_keys() -> None:
    signed = f"AWS4-HMAC-SHA256 Credential=ALICE/20260926/us-east-1/execute-api/aws4_request, {SIGNATURE}"
    assert IamAuthorizer().identify({"authorization": signed}, NOW) == {
        "iam": {
            "accessKey": "ALICE",
            "accountId": ACCOUNT_ID,
            "callerId": "ALICE",
            "cognitoIdentity": None,
            "principalOrgId": None,
            "userArn": f"arn:aws:iam::{ACCOUNT_ID}:user/ALICE",
            "userId": "ALICE",
        }
    }


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        f"Bearer {token(CLAIMS)}",
        "AWS4-HMAC-SHA256",
        f"AWS4-HMAC-SHA256 Credential=ALICE/20260926/us-east-1/s3/aws4_request, {SIGNATURE}",
        f"AWS4-HMAC-SHA256 Credential=/20260926/us-east-1/execute-api/aws4_request, {SIGNATURE}",
        "AWS4-HMAC-SHA256 Credential=ALICE/20260926/us-east-1/execute-api/aws4_request",
    ],
)
def test_a_request_that_is_not_signed_is_forbidden(authorization: str) -> None:
    with pytest.raises(RefusedError) as refused:
        IamAuthorizer().identify({"authorization": authorization}, NOW)
    assert (refused.value.answer.status, refused.value.answer.body) == (403, b'{"message":"Forbidden"}')
