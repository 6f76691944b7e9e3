"""The commands as programs: by make, and how they end."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from admin.__main__ import TEMPLATE
from local.deployment import read_deployment
from local.queues import create_missing_queues
from local.server import listen, port_of
from tests.admin.cloudformation import cloudformation
from tests.local.processes import ROOT, Command

MAKE = shutil.which("make")

with_make = pytest.mark.skipif(MAKE is None, reason="needs make")


def run(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    return subprocess.run(words, cwd=ROOT, env=inherited | settings, text=True, capture_output=True, check=False)


def admin(command: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "admin", command, **settings)


@with_make
def test_make_prints_a_key_as_its_last_line_and_hands_names_on_as_they_are(dynamodb: str) -> None:
    assert MAKE is not None
    name = "Zoë 'O' \"N\" `x` (sales);"
    made = run(MAKE, "key", f"CALLER={name}", "DAYS=3", f"DYNAMODB_ENDPOINT={dynamodb}", PYTHONUTF8="1")
    assert made.returncode == 0
    assert made.stdout.splitlines()[-1].startswith("a2a_")
    assert name in run(MAKE, "keys", f"DYNAMODB_ENDPOINT={dynamodb}", PYTHONUTF8="1").stdout
    forgotten = run(MAKE, "forget", f"CALLER={name}", f"DYNAMODB_ENDPOINT={dynamodb}", PYTHONUTF8="1")
    assert f"Deleted of key:{name}: 0 tasks, 1 key" in forgotten.stdout


@with_make
def test_make_hands_owners_on_as_they_are(dynamodb: str) -> None:
    assert MAKE is not None
    owner = "jwt:https://issuer.example sub alice"
    forgotten = run(MAKE, "forget", f"OWNER={owner}", f"DYNAMODB_ENDPOINT={dynamodb}")
    assert forgotten.stdout.startswith(f"Deleted of {owner}: 0 tasks, ")


@with_make
def test_make_works_on_a_deployed_stack(dynamodb: str) -> None:
    assert MAKE is not None
    assert run(MAKE, "keys", f"DYNAMODB_ENDPOINT={dynamodb}").returncode == 0
    tables = {"TasksTableName": "TasksTable", "CallersTableName": "CallersTable"}
    with cloudformation({"agent": tables}) as address:
        account = {
            "AWS_ENDPOINT_URL_CLOUDFORMATION": address,
            "AWS_ENDPOINT_URL_DYNAMODB": dynamodb,
            "AWS_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
        }
        made = run(MAKE, "key", "CALLER=deployed", "STACK=agent", **account)
        assert made.stdout.splitlines()[-1].startswith("a2a_")
        assert " deployed " in run(MAKE, "keys", "STACK=agent", **account).stdout


@with_make
def test_make_puts_dead_letters_back_also_where_make_run_had_push_on(dynamodb: str) -> None:
    assert MAKE is not None
    create_missing_queues(dynamodb, read_deployment(TEMPLATE, {"PUSH": "on"}).queues)
    redriven = run(MAKE, "redrive", f"DYNAMODB_ENDPOINT={dynamodb}")
    assert (redriven.returncode, sorted(redriven.stdout.splitlines())) == (
        0,
        [
            "Passed on again: 0 changes that the relay had given up.",
            "Put back into PushQueue.fifo: 0 messages.",
            "Put back into WorkQueue: 0 messages.",
        ],
    )


@with_make
def test_make_fails_where_there_is_no_such_key(dynamodb: str) -> None:
    assert MAKE is not None
    refused = run(MAKE, "revoke", "KEY=x", f"DYNAMODB_ENDPOINT={dynamodb}")
    assert refused.returncode != 0
    assert refused.stderr.startswith("Error: there is no key 'x'")


def test_ctrl_c_is_one_clear_line() -> None:
    with listen(0) as silent:
        settings = {"DYNAMODB_ENDPOINT": f"http://127.0.0.1:{port_of(silent)}"}
        with Command([sys.executable, "-m", "admin", "keys"], settings) as waiting, silent.accept()[0]:
            assert waiting.send(signal.SIGINT) == 130
            assert waiting.output == "Interrupted. Run it again to finish.\n"


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        ("key", {}),
        ("key", {"CALLER": " "}),
        ("key", {"CALLER": "alice", "DAYS": "0"}),
        ("revoke", {"KEY": "x"}),
        ("forget", {"OWNER": "nobody"}),
        ("keys", {"DYNAMODB_ENDPOINT": "x"}),
        ("keys", {"STACK": "x", "DYNAMODB_ENDPOINT": ""}),
        ("keys", {"AUTH": "jwt"}),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(dynamodb: str, command: str, settings: dict[str, str]) -> None:
    refused = admin(command, **({"DYNAMODB_ENDPOINT": dynamodb} | settings))
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.startswith("Error: ")
    assert refused.stderr.count("\n") == 1
