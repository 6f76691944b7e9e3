"""Who calls: from a request's credentials to the owner, in every mode, and what is told to nobody."""

import hashlib
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_lambda.callers import (
    ANONYMOUS,
    KEY_CACHE_MS,
    KEY_CACHE_SIZE,
    MAX_OWNER_LENGTH,
    ApiKeyAuthentication,
    Authenticator,
    Credentials,
    IamAuthentication,
    JwtAuthentication,
    NoAuthentication,
    owner_of_caller,
)
from a2a_lambda.errors import PermissionDeniedError, ProtocolError, RateLimitedError, UnauthenticatedError
from tests.unit.factories import Clock

KEY: Final = "a2a_" + "k" * 43
OTHER_KEY: Final = "a2a_" + "o" * 43
ADDRESS: Final = "192.0.2.7"


class Keys:
    """Keys in memory; `asked` has the hashes that were looked up."""

    def __init__(self, **callers: str) -> None:
        self.callers = {_hash(key): caller for caller, key in callers.items()}
        self.asked: list[str] = []

    def caller_of(self, key_hash: str) -> str | None:
        self.asked.append(key_hash)
        return self.callers.get(key_hash)


class Failures:
    """A limit of failures an address; `taken` has the addresses that failed."""

    def __init__(self, burst: int = 1000) -> None:
        self.burst = burst
        self.taken: list[str] = []

    def check(self, subject: str) -> None:
        if self.taken.count(subject) >= self.burst:
            raise RateLimitedError(7)

    def take(self, subject: str) -> None:
        self.check(subject)
        self.taken.append(subject)


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def by_key(
    keys: Keys | None = None, failures: Failures | None = None, clock: Callable[[], int] | None = None
) -> ApiKeyAuthentication:
    return ApiKeyAuthentication(keys or Keys(alice=KEY, bob=OTHER_KEY), failures or Failures(), clock or Clock())


def shown(api_key: str = "", authorization: str = "", address: str = ADDRESS) -> Credentials:
    return Credentials(api_key=api_key, authorization=authorization, source_address=address)


def refusal(authenticator: Authenticator, credentials: Credentials) -> ProtocolError:
    with pytest.raises(ProtocolError) as error:
        authenticator.owner(credentials)
    return error.value


# Nobody is told apart


def test_without_authentication_everybody_is_the_same_owner() -> None:
    everybody = NoAuthentication()

    assert everybody.owner(Credentials()) == everybody.owner(shown(KEY, f"Bearer {OTHER_KEY}")) == ANONYMOUS


# API keys


@pytest.mark.parametrize(
    "credentials",
    [
        shown(api_key=KEY),
        shown(authorization=f"Bearer {KEY}"),
        shown(authorization=f"bearer {KEY}"),
        shown(authorization=f"BEARER   {KEY} "),
        shown(api_key=KEY, authorization=f"Bearer {KEY}"),
        shown(api_key=KEY, authorization="Basic eDp5"),
    ],
)
def test_a_key_is_shown_as_header_or_as_bearer_token_or_as_both(credentials: Credentials) -> None:
    assert by_key().owner(credentials) == "key:alice"


def test_two_keys_of_a_caller_are_one_owner() -> None:
    keys = Keys(alice=KEY)
    keys.callers[_hash(OTHER_KEY)] = "alice"

    assert by_key(keys).owner(shown(KEY)) == by_key(keys).owner(shown(OTHER_KEY)) == owner_of_caller("alice")


NO_KEYS: Final = {
    "nothing": shown(),
    "an unknown key": shown("a2a_" + "x" * 43),
    "an unknown bearer token": shown(authorization="Bearer a2a_" + "x" * 43),
    "two that disagree": shown(KEY, f"Bearer {OTHER_KEY}"),
    "a right one and a wrong one": shown(KEY, "Bearer a2a_" + "x" * 43),
    "a wrong one and a right one": shown("x" * 43, f"Bearer {KEY}"),
    "another scheme": shown(authorization=f"Basic {KEY}"),
    "no scheme": shown(authorization=KEY),
    "a scheme alone": shown(authorization="Bearer"),
    "a scheme with a blank": shown(authorization="Bearer "),
    "a key in front of a blank": shown(KEY + " "),
    "a key behind a blank": shown(" " + KEY),
    "a key with a tab": shown(KEY[:10] + "\t" + KEY[10:]),
    "a key with a line end": shown(KEY + "\n"),
    "a bearer token with a blank": shown(authorization=f"Bearer {KEY} {KEY}"),
    "two keys with a comma": shown(f"{KEY},{KEY}"),
    "a key of another script": shown("ключ" * 10),
    "a key with a digit of another script": shown(KEY[:-1] + "٣"),
    "a lone surrogate": shown("\ud800" * 30),
    "a NUL": shown(KEY + "\x00"),
    "9 KB": shown("k" * 9216),
    "9 KB as bearer token": shown(authorization="Bearer " + "k" * 9216),
    "the hash of the key": shown(_hash(KEY)),
    "a short one": shown("k"),
    "another case": shown(KEY.upper()),
    "verified claims": Credentials(claims={"iss": "https://x", "sub": "alice"}),
    "a signature": Credentials(iam={"userArn": "arn:aws:iam::1:user/alice"}),
}


@pytest.mark.parametrize("credentials", NO_KEYS.values(), ids=NO_KEYS)
def test_anything_else_is_refused_in_the_same_words(credentials: Credentials) -> None:
    error = refusal(by_key(), credentials)

    assert isinstance(error, UnauthenticatedError)
    assert (error.message, error.details(), error.headers()) == (
        "Valid credentials are required",
        UnauthenticatedError("x").details(),
        {"www-authenticate": 'Bearer realm="a2a"'},
    )


@pytest.mark.parametrize(
    "name", ["nothing", "two that disagree", "9 KB", "a key of another script", "a key with a tab"]
)
def test_what_cannot_be_a_key_is_not_looked_up(name: str) -> None:
    keys = Keys(alice=KEY)
    refusal(by_key(keys), NO_KEYS[name])

    assert keys.asked == []


@given(st.text() | st.text(st.characters(min_codepoint=32, max_codepoint=126)), st.text())
def test_whatever_is_shown_is_refused_or_known(api_key: str, authorization: str) -> None:
    error = refusal(by_key(), shown(api_key, authorization))

    assert isinstance(error, UnauthenticatedError)


def test_a_key_is_looked_up_by_its_hash() -> None:
    keys = Keys(alice=KEY)
    by_key(keys).owner(shown(KEY))

    assert keys.asked == [_hash(KEY)]


# The cache


def test_a_key_is_remembered_for_a_minute() -> None:
    clock, keys = Clock(), Keys(alice=KEY)
    authenticator = by_key(keys, clock=clock)
    for _ in range(10):
        authenticator.owner(shown(KEY))
        clock.advance(KEY_CACHE_MS // 10)
    assert len(keys.asked) == 1

    authenticator.owner(shown(KEY))
    assert len(keys.asked) == 2


def test_a_revoked_key_is_taken_for_a_minute_at_most() -> None:
    clock, keys = Clock(), Keys(alice=KEY)
    authenticator = by_key(keys, clock=clock)
    authenticator.owner(shown(KEY))
    keys.callers.clear()
    clock.advance(59_000)
    assert authenticator.owner(shown(KEY)) == "key:alice"
    clock.advance(1000)

    unknown = refusal(authenticator, shown(OTHER_KEY))
    revoked = refusal(authenticator, shown(KEY))
    assert (revoked.message, revoked.details(), revoked.headers()) == (
        unknown.message,
        unknown.details(),
        unknown.headers(),
    )


def test_use_does_not_keep_a_key_in_the_cache() -> None:
    clock, keys = Clock(), Keys(alice=KEY)
    authenticator = by_key(keys, clock=clock)
    authenticator.owner(shown(KEY))
    keys.callers.clear()
    for _ in range(5):
        clock.advance(11_000)
        authenticator.owner(shown(KEY))
    clock.advance(5000)

    assert isinstance(refusal(authenticator, shown(KEY)), UnauthenticatedError)


def test_a_wrong_key_is_not_remembered() -> None:
    keys = Keys()
    authenticator = by_key(keys)
    refusal(authenticator, shown(KEY))
    keys.callers[_hash(KEY)] = "alice"

    assert authenticator.owner(shown(KEY)) == "key:alice"


def test_the_cache_is_as_large_as_it_may_be_and_no_larger() -> None:
    names = {f"caller{number}": f"a2a_{number:043}" for number in range(KEY_CACHE_SIZE + 50)}
    authenticator = by_key(Keys(**names))
    for key in names.values():
        authenticator.owner(shown(key))

    assert len(authenticator._known) <= KEY_CACHE_SIZE  # noqa: SLF001 - no other sign of it


def test_the_cache_holds_no_key_as_it_was_shown() -> None:
    authenticator = by_key()
    authenticator.owner(shown(KEY))

    assert KEY not in str(authenticator._known)  # noqa: SLF001


# Failures


def test_each_failure_counts_for_its_address() -> None:
    failures = Failures()
    authenticator = by_key(failures=failures)
    for credentials in NO_KEYS.values():
        refusal(authenticator, credentials)

    assert failures.taken == [ADDRESS] * (len(NO_KEYS) - 3)


NOTHING_SHOWN: Final = ["nothing", "verified claims", "a signature"]


@pytest.mark.parametrize("name", NOTHING_SHOWN)
def test_who_shows_nothing_is_no_failure_and_shuts_nobody_out(name: str) -> None:
    keys, failures = Keys(alice=KEY), Failures(burst=3)
    authenticator = by_key(keys, failures)
    for _ in range(25):
        assert isinstance(refusal(authenticator, NO_KEYS[name]), UnauthenticatedError)

    assert (failures.taken, keys.asked) == ([], [])
    assert authenticator.owner(shown(KEY)) == "key:alice"


@pytest.mark.parametrize(
    ("addresses", "networks"),
    [
        ([f"2001:db8::{number:x}" for number in range(1, 100)], ["2001:db8::/64"]),
        (["2001:db8:0:0:ffff:ffff:ffff:ffff", "2001:DB8::1"], ["2001:db8::/64"]),
        (["2001:db8::1", "2001:db8:0:1::1"], ["2001:db8::/64", "2001:db8:0:1::/64"]),
        (["192.0.2.7", "192.0.2.8"], ["192.0.2.7", "192.0.2.8"]),
        (["", "x:y"], ["", "x:y"]),
    ],
)
def test_failures_are_counted_by_address_of_ipv6_by_network(addresses: list[str], networks: list[str]) -> None:
    failures = Failures()
    authenticator = by_key(failures=failures)
    for number, address in enumerate(addresses):
        refusal(authenticator, shown(f"a2a_{number:043}", address=address))

    assert list(dict.fromkeys(failures.taken)) == networks


def test_who_changes_the_address_within_a_network_is_told_to_wait_all_the_same() -> None:
    keys = Keys(alice=KEY)
    authenticator = by_key(keys, Failures(burst=20))
    errors = [
        type(refusal(authenticator, shown(f"a2a_{number:043}", address=f"2001:db8::{number:x}")))
        for number in range(2000)
    ]

    assert errors == [UnauthenticatedError] * 20 + [RateLimitedError] * 1980
    assert len(keys.asked) == 20
    assert authenticator.owner(shown(KEY, address="2001:db8:0:1::1")) == "key:alice"


def test_a_key_that_is_right_is_no_failure() -> None:
    failures = Failures()
    by_key(failures=failures).owner(shown(KEY))

    assert failures.taken == []


def test_an_address_with_too_many_failures_is_told_to_wait() -> None:
    authenticator = by_key(failures=Failures(burst=3))
    for _ in range(3):
        assert isinstance(refusal(authenticator, shown("x" * 43)), UnauthenticatedError)
    error = refusal(authenticator, shown("x" * 43))

    assert isinstance(error, RateLimitedError)
    assert error.headers() == {"retry-after": "7"}


def test_an_address_that_must_wait_costs_no_look_up() -> None:
    keys = Keys(alice=KEY)
    authenticator = by_key(keys, Failures(burst=0))
    assert isinstance(refusal(authenticator, shown(OTHER_KEY)), RateLimitedError)

    assert keys.asked == []


def test_a_key_that_is_known_passes_from_an_address_that_must_wait() -> None:
    failures = Failures(burst=3)
    authenticator = by_key(failures=failures)
    authenticator.owner(shown(KEY))
    for _ in range(5):
        refusal(authenticator, shown("x" * 43))

    assert authenticator.owner(shown(KEY)) == "key:alice"


def test_another_address_need_not_wait() -> None:
    authenticator = by_key(failures=Failures(burst=1))
    for _ in range(2):
        refusal(authenticator, shown("x" * 43))

    assert authenticator.owner(shown(KEY, address="192.0.2.8")) == "key:alice"
    assert isinstance(refusal(authenticator, shown("x" * 43, address="192.0.2.9")), UnauthenticatedError)


# Tokens

ISSUER: Final = "https://issuer.example"


def token(**claims: Any) -> Credentials:
    return Credentials(claims={"iss": ISSUER} | claims, source_address=ADDRESS)


@pytest.mark.parametrize(
    ("claims", "owner"),
    [
        ({"sub": "alice"}, f"jwt:{ISSUER} sub alice"),
        ({"sub": "alice", "client_id": "app"}, f"jwt:{ISSUER} sub alice"),
        ({"client_id": "app"}, f"jwt:{ISSUER} client_id app"),
        ({"client_id": "app", "azp": "other"}, f"jwt:{ISSUER} client_id app"),
        ({"sub": "é😀"}, f"jwt:{ISSUER} sub é😀"),
    ],
)
def test_a_tokens_owner_is_issuer_and_subject_or_client(claims: dict[str, str], owner: str) -> None:
    assert JwtAuthentication().owner(token(**claims)) == owner


NOBODY: Final = {
    "no claims": Credentials(),
    "empty claims": Credentials(claims={}),
    "an empty subject": token(sub=""),
    "a blank subject": token(sub=" "),
    "an empty subject and a client": token(sub="", client_id="app"),
    "a subject of null": token(sub=None, client_id="app"),
    "a subject that is a number": token(sub=5),
    "neither subject nor client": token(aud="x"),
    "an empty client": token(client_id="", azp=""),
    "an authorized party alone": token(azp="app"),
    "an authorized party beside an empty client": token(client_id="", azp="app"),
    "an authorized party and a user's name": token(azp="app", preferred_username="alice", sid="alice", scope="openid"),
    "no issuer": Credentials(claims={"sub": "alice"}),
    "an empty issuer": token(iss="", sub="alice"),
    "an unverified header": shown(authorization="Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9."),
    "an API key": shown(api_key=KEY),
    "a signature": Credentials(iam={"userArn": "arn:aws:iam::1:user/alice"}),
}


@pytest.mark.parametrize("credentials", NOBODY.values(), ids=NOBODY)
def test_an_event_whose_claims_name_nobody_is_refused(credentials: Credentials) -> None:
    error = refusal(JwtAuthentication(), credentials)

    assert isinstance(error, UnauthenticatedError)
    assert error.headers() == {"www-authenticate": "Bearer"}


def test_a_client_is_not_the_subject_of_the_same_name() -> None:
    tokens = JwtAuthentication()

    assert tokens.owner(token(sub="app")) != tokens.owner(token(client_id="app"))


def test_a_subject_of_another_issuer_is_another_owner() -> None:
    tokens = JwtAuthentication()

    assert tokens.owner(token(sub="a")) != tokens.owner(token(iss="https://other.example", sub="a"))


@pytest.mark.parametrize(
    "claims",
    [
        {"scope": "a2a"},
        {"scope": "openid a2a email"},
        {"scope": "[openid a2a]"},
        {"scp": "[a2a]"},
        {"scp": "a2a openid"},
        {"scp": "openid", "scope": "a2a"},
    ],
)
def test_a_token_with_the_scope_may_call(claims: dict[str, Any]) -> None:
    assert JwtAuthentication("a2a").owner(token(sub="alice", **claims)).endswith("alice")


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"scope": ""},
        {"scope": "a2a2"},
        {"scope": "xa2a"},
        {"scope": "a2a:read"},
        {"scope": "A2A"},
        {"scope": "a2a,openid"},
        {"scope": None},
        {"scope": 5},
        {"aud": "a2a", "roles": "a2a"},
    ],
)
def test_a_token_without_the_scope_is_denied_naming_it(claims: dict[str, Any]) -> None:
    error = refusal(JwtAuthentication("a2a"), token(sub="alice", **claims))

    assert isinstance(error, PermissionDeniedError)
    assert "a2a" in error.message
    assert error.metadata == {"scope": "a2a"}


def test_nobody_is_told_of_a_scope_before_they_are_known() -> None:
    assert isinstance(refusal(JwtAuthentication("a2a"), token(sub="")), UnauthenticatedError)


# Signatures


@pytest.mark.parametrize(
    ("arn", "owner"),
    [
        ("arn:aws:iam::123456789012:user/alice", "iam:arn:aws:iam::123456789012:user/alice"),
        ("arn:aws:iam::123456789012:user/team/alice", "iam:arn:aws:iam::123456789012:user/team/alice"),
        ("arn:aws:iam::123456789012:root", "iam:arn:aws:iam::123456789012:root"),
        ("arn:aws:sts::123456789012:assumed-role/app/session", "iam:arn:aws:sts::123456789012:assumed-role/app"),
        ("arn:aws:sts::123456789012:assumed-role/app/i-0abc@x=1,2", "iam:arn:aws:sts::123456789012:assumed-role/app"),
        ("arn:aws:sts::123456789012:assumed-role/app/app", "iam:arn:aws:sts::123456789012:assumed-role/app"),
        ("arn:aws:sts::123456789012:federated-user/bob", "iam:arn:aws:sts::123456789012:federated-user/bob"),
        ("arn:aws-cn:sts::123456789012:assumed-role/app/x", "iam:arn:aws-cn:sts::123456789012:assumed-role/app"),
    ],
)
def test_a_signatures_owner_is_the_user_or_the_role_without_its_session(arn: str, owner: str) -> None:
    assert IamAuthentication().owner(Credentials(iam={"userArn": arn})) == owner


@pytest.mark.parametrize(
    "credentials",
    [
        Credentials(),
        Credentials(iam={}),
        Credentials(iam={"userArn": ""}),
        Credentials(iam={"userArn": None}),
        Credentials(iam={"userArn": 5}),
        Credentials(iam={"accountId": "123456789012", "userId": "AIDA"}),
        shown(authorization="AWS4-HMAC-SHA256 Credential=x"),
        shown(api_key=KEY),
        token(sub="alice"),
    ],
)
def test_an_event_without_an_identity_is_refused(credentials: Credentials) -> None:
    error = refusal(IamAuthentication(), credentials)

    assert isinstance(error, UnauthenticatedError)
    assert error.headers() == {"www-authenticate": "AWS4-HMAC-SHA256"}


ROLE: Final = "arn:aws:sts::123456789012:assumed-role/Cognito_Auth_Role/CognitoIdentityCredentials"


def of_cognito(identity: Any, arn: str = ROLE) -> str:
    return IamAuthentication().owner(Credentials(iam={"userArn": arn, "cognitoIdentity": identity}))


def test_identities_of_a_cognito_pool_are_told_apart_though_they_have_one_role() -> None:
    owners = [of_cognito({"identityId": f"eu-west-1:{name}", "identityPoolId": "p"}) for name in ("alice", "bob")]

    assert owners == [
        "iam:arn:aws:sts::123456789012:assumed-role/Cognito_Auth_Role eu-west-1:alice",
        "iam:arn:aws:sts::123456789012:assumed-role/Cognito_Auth_Role eu-west-1:bob",
    ]


@pytest.mark.parametrize("identity", [None, {}, {"identityId": None}, {"identityId": ""}])
def test_who_is_no_identity_of_cognito_is_the_user_or_the_role(identity: Any) -> None:
    assert of_cognito(identity) == IamAuthentication().owner(Credentials(iam={"userArn": ROLE}))


# Owners


def test_no_two_ways_of_authenticating_make_the_same_owner() -> None:
    name = "arn:aws:iam::1:user/alice"
    owners = {
        NoAuthentication().owner(Credentials()),
        owner_of_caller(name),
        owner_of_caller(ANONYMOUS),
        IamAuthentication().owner(Credentials(iam={"userArn": name})),
        JwtAuthentication().owner(Credentials(claims={"iss": "x", "sub": name})),
    }
    assert len(owners) == 5


def test_a_long_owner_is_replaced_by_its_hash() -> None:
    tokens = JwtAuthentication()
    owners = {tokens.owner(token(sub="😀" * 5000 + end)) for end in "ab"} | {tokens.owner(token(sub="s"))}

    assert len(owners) == 3
    assert all(len(owner) <= MAX_OWNER_LENGTH and len(owner.encode()) <= 2048 for owner in owners)
