"""What stands on the console."""

import json
import shlex
import subprocess

import pytest

from local.console import PARSED_BYTES, describe_call, request_line
from local.welcome import try_it

SEND = b'{"jsonrpc":"2.0","id":1,"method":"SendMessage"}'


def answer(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1} | members).encode()


@pytest.mark.parametrize(
    ("response", "description"),
    [
        (answer(result={"task": {"status": {"state": "TASK_STATE_COMPLETED"}}}), "SendMessage TASK_STATE_COMPLETED"),
        (answer(result={"status": {"state": "TASK_STATE_CANCELED"}}), "SendMessage TASK_STATE_CANCELED"),
        (answer(result={"message": {"parts": []}}), "SendMessage"),
        (answer(error={"code": -32001}), "SendMessage error -32001"),
        (answer(result=[]), "SendMessage"),
        (b'{"message":"Not Found"}', ""),
        (b"[]", ""),
        (b"", ""),
        (b"[" * 100_000, ""),
        (answer(padding="x" * PARSED_BYTES), ""),
    ],
)
def test_a_call_is_described_by_its_method_and_outcome(response: bytes, description: str) -> None:
    assert describe_call(SEND, response) == description


@pytest.mark.parametrize(
    "request_body", [b"{", b"[]", b'{"method":1}', b'{"method":"a b"}', b'{"method":"a\\nb"}', b"\xff"]
)
def test_a_method_that_is_none_is_not_shown(request_body: bytes) -> None:
    assert describe_call(request_body, answer(error={"code": -32600})) == "error -32600"


def test_a_line_has_method_path_call_status_and_time() -> None:
    assert request_line("POST", "/a2a", "GetTask", 200, 3.4) == "POST /a2a GetTask 200 3 ms"
    assert request_line("GET", "/", "", 404, 0.4) == "GET / 404 0 ms"


def test_nothing_in_a_request_breaks_out_of_its_line() -> None:
    assert "\n" not in request_line("GET", "/a\nPOST /b 200 1 ms\x1b[31m", "", 404, 1)
    assert request_line("GET", "/a\n\x1b", "", 404, 1) == "GET /a\\n\\x1b 404 1 ms"


@pytest.mark.parametrize("example", ["Where is order A-1001?", 'It\'s "quoted" $HOME `date` \\ é'])
def test_the_command_to_try_sends_the_example_under_a_fresh_message_id(example: str) -> None:
    command = try_it("http://127.0.0.1:3000", example)
    words = subprocess.run(
        ["/bin/sh", "-c", f"curl() {{ printf '%s\\0' \"$@\"; }}; date() {{ echo 17; }}; {command}"],
        check=True,
        capture_output=True,
    ).stdout.decode()
    message = json.loads(words.rstrip("\0").split("\0")[-1])["params"]["message"]
    assert message == {"messageId": "try-17", "role": "ROLE_USER", "parts": [{"text": example}]}
    assert "$(date" in command
    assert "\n" not in command
    assert len(shlex.split(command)) > 0
