"""The walk through local gateways in which nothing is wrong, and what it cannot look at there."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from smoke.walk import CHECKS
from tests.local.processes import GATEWAY, ROOT, Command
from tests.smoke.walks import walked

MAKE = shutil.which("make")

SKIPPED_WHERE_NOTHING_IS_DECLARED = {"card's signatures", "extensions", "push configs", "push inwards", "push, no task"}
WITHOUT_KEYS = {"no credentials", "a wrong key"}

ENDED_AT_ONCE = {"next turn", "CancelTask"}

AGENTS = """
from a2a_lambda.agent import (
    Agent, AgentProfile, artifact, auth_required, failed, input_required, rejected, reply, working,
)
from a2a_lambda.model import AgentExtension, AgentSkill


class Card:
    card = AgentProfile(name="Test", description="For tests.", version="1", skills=[
        AgentSkill("test", "Test", "For tests.", ["test"])])


class Replies(Card, Agent):
    read_only = True
    def respond(self, turn):
        yield reply("Hello")


class Acts(Card, Agent):
    def respond(self, turn):
        yield working("On it")
        yield artifact("one", name="a")


class Asks(Card, Agent):
    def respond(self, turn):
        yield auth_required("Show your ticket") if turn.earlier_messages() else input_required("Really?")


class Refuses(Card, Agent):
    def respond(self, turn):
        yield rejected("No")


class Fails(Card, Agent):
    def respond(self, turn):
        raise ValueError("a bug")


class Waits(Card, Agent):
    background = True
    def respond(self, turn):
        yield artifact("done")


class Extended(Agent):
    read_only = True
    card = AgentProfile(name="Test", description="For tests.", version="1", skills=[],
        extensions=[AgentExtension("https://example.com/extension", "A must.", True)])
    def respond(self, turn):
        yield artifact("done")
"""


@pytest.fixture(scope="module")
def guarded() -> Iterator[Command]:
    """A gateway that asks for API keys."""
    with Command(GATEWAY, {"AUTH": "api-key"}) as running:
        yield running.ready()


def new_key(gateway: Command) -> str:
    made = subprocess.run(
        [sys.executable, "-m", "admin", "key"],
        cwd=ROOT,
        env={"DYNAMODB_ENDPOINT": gateway.database, "CALLER": "smoke"},
        text=True,
        capture_output=True,
        check=True,
    )
    return made.stdout.splitlines()[-1]


def smoke(**settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "smoke"], cwd=ROOT, env=settings, text=True, capture_output=True, check=False
    )


def test_nothing_is_wrong_with_the_demo_agent() -> None:
    with Command(GATEWAY) as gateway:
        address = gateway.ready().gateway
        asked = walked(address)
        assert asked.failures == {}
        assert asked.skipped == SKIPPED_WHERE_NOTHING_IS_DECLARED | WITHOUT_KEYS
        assert "INPUT_REQUIRED" in asked.said["SendMessage"][1]
        answered = walked(address, TEXT="Where is A-1001?")
        assert answered.failures == {}
        assert answered.skipped == asked.skipped | {"next turn", "CancelTask"}
        assert "COMPLETED" in answered.said["SendMessage"][1]


@pytest.mark.skipif(MAKE is None, reason="needs make")
def test_make_prints_a_line_for_each_check_and_ends_well() -> None:
    with Command(GATEWAY) as gateway:
        words = [str(MAKE), "--silent", "smoke", f"URL={gateway.ready().gateway}"]
        with Command(words) as walking:
            assert walking.end() == 0
        first, *lines, last = walking.output.splitlines()
        assert first == f"Walking {gateway.gateway}"
        assert len(lines) == len(CHECKS)
        assert last.endswith(" 0 failed")


def test_a_key_lets_the_walk_in(guarded: Command) -> None:
    passed = walked(guarded.gateway, KEY=new_key(guarded))
    assert passed.failures == {}
    assert passed.skipped == SKIPPED_WHERE_NOTHING_IS_DECLARED


def test_without_a_key_the_walk_says_so_and_is_no_success(guarded: Command) -> None:
    finished = smoke(URL=guarded.gateway)
    assert finished.returncode == 1
    assert "FAILED  credentials" in finished.stdout
    assert "KEY=" in finished.stdout
    assert "nobody is let in without credentials" in finished.stdout


def test_a_key_that_is_none_fails(guarded: Command) -> None:
    refused = walked(guarded.gateway, KEY="a2a_" + "x" * 43)
    assert "SendMessage" in refused.failed
    assert "401" in refused.failures["SendMessage"]


@pytest.mark.parametrize(
    ("agent", "state", "unseen"),
    [
        pytest.param("Acts", "COMPLETED, 1 artifact", ENDED_AT_ONCE, marks=pytest.mark.thorough),
        ("Asks", "INPUT_REQUIRED", set()),
        pytest.param("Refuses", "REJECTED", ENDED_AT_ONCE, marks=pytest.mark.thorough),
        pytest.param("Fails", "FAILED", ENDED_AT_ONCE, marks=pytest.mark.thorough),
        pytest.param("Replies", "without a task", ENDED_AT_ONCE, marks=pytest.mark.thorough),
        ("Waits", "COMPLETED", ENDED_AT_ONCE),
    ],
)
def test_any_agent_can_be_walked(agent: str, state: str, unseen: set[str], tmp_path: Path) -> None:
    (tmp_path / "walked_agents.py").write_text(AGENTS, encoding="utf-8")
    with Command(GATEWAY, {"A2A_AGENT": f"walked_agents:{agent}", "PYTHONPATH": str(tmp_path)}) as gateway:
        passed = walked(gateway.ready().gateway)
    assert passed.failures == {}
    assert passed.skipped == SKIPPED_WHERE_NOTHING_IS_DECLARED | WITHOUT_KEYS | unseen
    assert state in passed.said["SendMessage"][1]


def test_a_required_extension_and_a_signed_card_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "walked_agents.py").write_text(AGENTS, encoding="utf-8")
    settings = {"A2A_AGENT": "walked_agents:Extended", "PYTHONPATH": str(tmp_path), "SIGNING_KEY": "create"}
    with Command(GATEWAY, settings) as gateway:
        passed = walked(gateway.ready().gateway)
    assert passed.failures == {}
    assert not passed.skipped & {"extensions", "card's signatures"}


def test_push_notifications_that_are_declared_are_looked_at() -> None:
    with Command(GATEWAY, {"PUSH": "on", "PUSH_ALLOW_LOCAL": "on"}) as gateway:
        passed = walked(gateway.ready().gateway, WEBHOOK="http://127.0.0.1:9/never-called")
        assert passed.failures == {}
        assert passed.skipped == {"card's signatures", "extensions", "push undeclared"} | WITHOUT_KEYS
        elsewhere = walked(gateway.gateway, WEBHOOK="https://nowhere.invalid/")
        assert elsewhere.failures == {}
        assert "WEBHOOK=" in elsewhere.said["push configs"][1]


@pytest.mark.parametrize("url", ["", "/.well-known/agent-card.json", "/a2a", "/"])
def test_the_addresses_that_a_deployment_prints_will_do(url: str, guarded: Command) -> None:
    assert not walked(guarded.gateway + url).failed & {"card", "card's address"}


@pytest.mark.parametrize("setting", [{"URL": "ftp://x"}, {"URL": "https://u:p@x"}, {"URL": "x"}, {"KEY": "a\nb"}])
def test_a_setting_that_cannot_be_used_is_one_clear_line(setting: dict[str, str]) -> None:
    refused = smoke(**setting)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"Error: {next(iter(setting))}")
    assert refused.stderr.count("\n") == 1
