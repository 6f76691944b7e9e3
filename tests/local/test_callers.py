"""Callers at a local gateway: who gets in under each AUTH, and whose tasks they see."""

import base64
import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from typing import Any

import pytest

from tests.local.processes import GATEWAY, ROOT, Command

MAKE = shutil.which("make")

ISSUER = "https://issuer.example/pool"
PREFLIGHT = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}


@pytest.fixture(scope="module")
def gateway() -> Iterator[Command]:
    """A gateway that asks for API keys."""
    with Command(GATEWAY, {"AUTH": "api-key"}) as running:
        yield running.ready()


@pytest.fixture(scope="module")
def with_tokens() -> Iterator[Command]:
    settings = {"AUTH": "jwt", "JWT_ISSUER": ISSUER, "JWT_AUDIENCE": "agents,people", "REQUIRED_SCOPE": "use"}
    with Command(GATEWAY, settings) as running:
        yield running.ready()


@pytest.fixture(scope="module")
def with_signatures() -> Iterator[Command]:
    with Command(GATEWAY, {"AUTH": "iam"}) as running:
        yield running.ready()


def admin(gateway: Command, command: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run an operator's command on the gateway's database."""
    environ = {"DYNAMODB_ENDPOINT": gateway.database, **settings}
    return subprocess.run(
        [sys.executable, "-m", "admin", command], cwd=ROOT, env=environ, text=True, capture_output=True, check=False
    )


def new_key(gateway: Command, caller: str) -> str:
    return admin(gateway, "key", CALLER=caller).stdout.splitlines()[-1]


def post(gateway: Command, method: str, params: Any, headers: Mapping[str, str]) -> tuple[int, Any, Message]:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    sent = {"Content-Type": "application/json", "A2A-Version": "1.0", **headers}
    return ask(urllib.request.Request(f"{gateway.gateway}/a2a", body, sent))  # noqa: S310 - the gateway's own address


def ask(request: urllib.request.Request) -> tuple[int, Any, Message]:
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - the gateway's own address
            return response.status, json.loads(response.read() or b"null"), response.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read()), error.headers


def send(gateway: Command, headers: Mapping[str, str], text: str = "A-1001", **message: str) -> Any:
    content = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": text}], **message}
    return post(gateway, "SendMessage", {"message": content}, headers)


def task_ids(gateway: Command, headers: Mapping[str, str]) -> set[str]:
    _, answer, _ = post(gateway, "ListTasks", {}, headers)
    return {task["id"] for task in answer["result"]["tasks"]}


def segment(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def bearer(**claims: Any) -> dict[str, str]:
    """The header of an unsigned token, which a local gateway takes."""
    given = {"iss": ISSUER, "aud": "agents", "scope": "read use", "exp": 4_000_000_000, **claims}
    return {"Authorization": f"Bearer {segment({'alg': 'RS256'})}.{segment(given)}."}


def signed(access_key: str) -> dict[str, str]:
    credential = f"AWS4-HMAC-SHA256 Credential={access_key}/20260926/us-east-1/execute-api/aws4_request"
    return {"Authorization": f"{credential}, SignedHeaders=host, Signature={'0' * 64}"}


# API keys


def test_without_a_key_nobody_gets_in(gateway: Command) -> None:
    status, answer, headers = send(gateway, {})
    assert status == 401
    assert answer["error"]["code"]
    assert headers["WWW-Authenticate"].startswith("Bearer")


def test_a_wrong_key_does_not_get_in(gateway: Command) -> None:
    assert send(gateway, {"x-api-key": "a2a_" + "x" * 43})[0] == 401


@pytest.mark.parametrize("scheme", [{"x-api-key": "{}"}, {"Authorization": "Bearer {}"}])
def test_a_key_gets_in(gateway: Command, scheme: dict[str, str]) -> None:
    key = new_key(gateway, "alice")
    assert send(gateway, {name: value.format(key) for name, value in scheme.items()})[0] == 200


def test_two_callers_at_once_do_not_meet(gateway: Command) -> None:
    callers = [{"x-api-key": new_key(gateway, caller)} for caller in ("one", "other")]

    def work(caller: Mapping[str, str]) -> set[str]:
        answers = [send(gateway, caller, messageId=str(number))[1] for number in range(20)]
        return {answer["result"]["task"]["id"] for answer in answers}

    with ThreadPoolExecutor(2) as both:
        one, other = both.map(work, callers)
    assert len(one) == len(other) == 20
    assert [task_ids(gateway, caller) for caller in callers] == [one, other]


def test_a_foreign_task_does_not_exist(gateway: Command) -> None:
    mine, theirs = ({"x-api-key": new_key(gateway, caller)} for caller in ("me", "them"))
    _, sent, _ = send(gateway, theirs, "Where is my order?")
    _, foreign, _ = post(gateway, "GetTask", {"id": sent["result"]["task"]["id"]}, mine)
    _, missing, _ = post(gateway, "GetTask", {"id": "00000000-0000-4000-8000-000000000000"}, mine)
    assert foreign == missing
    assert foreign["error"]["code"] == -32001


def test_two_keys_of_a_caller_are_one_owner(gateway: Command) -> None:
    first, second = ({"x-api-key": new_key(gateway, "rotating")} for _ in range(2))
    _, sent, _ = send(gateway, first)
    assert task_ids(gateway, second) == {sent["result"]["task"]["id"]}


def test_a_revoked_key_that_was_never_used_does_not_get_in(gateway: Command) -> None:
    key = new_key(gateway, "revoked")
    (line,) = (line for line in admin(gateway, "keys").stdout.splitlines() if " revoked " in line)
    assert admin(gateway, "revoke", KEY=line.split()[0]).returncode == 0
    assert send(gateway, {"x-api-key": key})[0] == 401


def test_what_is_forgotten_is_gone_and_the_rest_is_not(gateway: Command) -> None:
    forgotten, kept = ({"x-api-key": new_key(gateway, caller)} for caller in ("forgotten", "kept"))
    for caller in (forgotten, kept):
        send(gateway, caller)
        send(gateway, caller, messageId="2")
    done = admin(gateway, "forget", CALLER="forgotten")
    assert done.stdout.startswith("Deleted of key:forgotten: 2 tasks, 1 key, ")
    assert task_ids(gateway, forgotten) == set()
    assert len(task_ids(gateway, kept)) == 2
    assert admin(gateway, "forget", CALLER="forgotten").stdout.startswith("Deleted of key:forgotten: 0 tasks, 0 keys, ")


def test_the_card_needs_no_key_and_says_what_does(gateway: Command) -> None:
    status, card, _ = ask(urllib.request.Request(f"{gateway.gateway}/.well-known/agent-card.json"))  # noqa: S310
    assert status == 200
    assert len(card["securitySchemes"]) == 2


@pytest.mark.skipif(MAKE is None, reason="needs make")
def test_the_printed_commands_let_one_in(gateway: Command) -> None:
    printed = {line[:12].strip(): line[12:] for line in gateway.output.splitlines() if line.startswith(("Make", "Try"))}
    script = f"API_KEY=$({printed['Make a key']} | tail -1); {printed['Try it']}"
    answered = subprocess.run(["/bin/sh", "-c", script], cwd=ROOT, check=True, capture_output=True).stdout
    assert json.loads(answered)["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


# Tokens


def test_it_is_said_that_tokens_are_not_verified(with_tokens: Command) -> None:
    assert "Warning: AUTH=jwt: the signatures of tokens are NOT verified here" in with_tokens.output


def test_a_subject_sees_its_own_tasks(with_tokens: Command) -> None:
    _, sent, _ = send(with_tokens, bearer(sub="alice"))
    assert task_ids(with_tokens, bearer(sub="alice", aud="people")) == {sent["result"]["task"]["id"]}
    assert task_ids(with_tokens, bearer(sub="bob")) == set()
    assert task_ids(with_tokens, bearer(client_id="alice")) == set()


def test_a_token_that_does_not_fit_is_the_gateways_to_refuse(with_tokens: Command) -> None:
    for headers in ({}, bearer(iss="https://other.example"), bearer(aud="others"), bearer(exp=1)):
        status, answer, answered = send(with_tokens, headers | {"Origin": "https://page.example"})
        assert (status, answer) == (401, {"message": "Unauthorized"})
        assert answered["WWW-Authenticate"].startswith("Bearer")
        assert answered["Access-Control-Allow-Origin"] == "*"


def test_a_token_without_the_required_scope_is_forbidden(with_tokens: Command) -> None:
    status, answer, _ = send(with_tokens, bearer(sub="alice", scope="read"))
    assert status == 403
    assert "use" in answer["error"]["message"]


def test_a_token_of_nobody_is_refused(with_tokens: Command) -> None:
    assert send(with_tokens, bearer(sub=" "))[0] == 401


@pytest.mark.parametrize("missing", ["JWT_ISSUER", "JWT_AUDIENCE"])
def test_tokens_need_issuer_and_audience(missing: str) -> None:
    given = {"AUTH": "jwt", "JWT_ISSUER": ISSUER, "JWT_AUDIENCE": "agents"}
    with Command(GATEWAY, {name: value for name, value in given.items() if name != missing}) as refused:
        assert refused.end() == 1
        assert refused.output.count("\n") == 1
        assert missing.replace("_", "").lower() in refused.output.lower()


# Signatures


def test_an_access_key_sees_its_own_tasks(with_signatures: Command) -> None:
    _, sent, _ = send(with_signatures, signed("ALICE"))
    assert task_ids(with_signatures, signed("ALICE")) == {sent["result"]["task"]["id"]}
    assert task_ids(with_signatures, signed("BOB")) == set()


def test_what_is_not_signed_is_the_gateways_to_refuse(with_signatures: Command) -> None:
    assert "Warning: AUTH=iam: the signatures of requests are NOT verified here" in with_signatures.output
    status, answer, _ = send(with_signatures, {"x-api-key": "a2a_" + "x" * 43})
    assert (status, answer) == (403, {"message": "Forbidden"})


# All


@pytest.mark.parametrize("running", ["gateway", "with_tokens", "with_signatures"])
def test_a_preflight_needs_no_credential(running: str, request: pytest.FixtureRequest) -> None:
    command: Command = request.getfixturevalue(running)
    asked = urllib.request.Request(f"{command.gateway}/a2a", None, PREFLIGHT, method="OPTIONS")  # noqa: S310
    status, _, headers = ask(asked)
    assert status == 204
    assert "authorization" in headers["Access-Control-Allow-Headers"].lower()
    assert "www-authenticate" in headers["Access-Control-Expose-Headers"].lower()


def test_an_auth_that_there_is_not_is_one_clear_line() -> None:
    with Command(GATEWAY, {"AUTH": "password"}) as refused:
        assert refused.end() == 1
        assert refused.output.startswith("Error: ")
        assert "AUTH" in refused.output
        assert refused.output.count("\n") == 1
