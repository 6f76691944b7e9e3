"""Turns that outlive their request, and what webhooks are told of them, through the whole local stack."""

import json
import shutil
import signal
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.local.processes import GATEWAY, Command, eventually
from tests.local.webhooks import Webhooks

MAKE = shutil.which("make")

FINISHED = {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED"}
WHOLE = ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]
CHAPTERS = 3


class Caller:
    """Asks for reports, and has webhooks."""

    def __init__(self, gateway: str, hooks: Webhooks, folder: Path) -> None:
        self._gateway = gateway
        self._folder = folder
        self.hooks = hooks

    def call(self, method: str, **params: Any) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
        with urllib.request.urlopen(  # noqa: S310 - the gateway's own address
            urllib.request.Request(f"{self._gateway}/a2a", json.dumps(request).encode(), headers),  # noqa: S310
            timeout=60,
        ) as response:
            answer = json.load(response)
        assert "result" in answer, answer
        return answer["result"]

    def ask(self, topic: str, **configuration: Any) -> Any:
        """Ask for a report, with a webhook that is named like its topic; the task."""
        hook = {"url": self.hooks.url(topic)}
        return self.call(
            "SendMessage",
            message={"messageId": topic, "role": "ROLE_USER", "parts": [{"text": topic}]},
            configuration={"taskPushNotificationConfig": hook} | configuration,
        )["task"]

    def state(self, task: Any) -> str:
        state: str = self.call("GetTask", id=task["id"])["status"]["state"]
        return state

    def report(self, task: Any) -> str:
        """The file that the agent has written for the task."""
        file = self._folder / f"{task['id']}.txt"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def states(self, topic: str) -> list[str]:
        """What the webhook has been told of the task's state, each change once."""
        told = [update["statusUpdate"]["status"]["state"] for update in self.updates(topic) if "statusUpdate" in update]
        return [state for index, state in enumerate(told) if told[index - 1 : index] != [state]]

    def chapters(self, topic: str) -> str:
        """What the webhook has been told of the report, as a client puts it together."""
        text = ""
        for update in self.updates(topic):
            if given := update.get("artifactUpdate"):
                text = text * given.get("append", False) + "".join(part["text"] for part in given["artifact"]["parts"])
        return text

    def updates(self, topic: str) -> list[Any]:
        return self.hooks.updates(topic)

    def is_told_of_the_end(self, topic: str) -> bool:
        return not FINISHED.isdisjoint(self.states(topic))


@contextmanager
def running(folder: Path, seconds: str) -> Iterator[Caller]:
    """A gateway that serves the report writer, and somebody who calls it."""
    settings = {
        "A2A_AGENT": "report_writer:ReportWriter",
        "SECONDS": seconds,
        "REPORTS_FOLDER": str(folder),
        "PUSH": "on",
        "PUSH_ALLOW_LOCAL": "on",
    }
    with Webhooks() as hooks, Command(GATEWAY, settings) as gateway:
        yield Caller(gateway.ready().gateway, hooks, folder)


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    """A caller of a quick report writer, the same for all tests: each asks for reports of its own."""
    with running(tmp_path_factory.mktemp("reports"), "0.3") as made:
        yield made


def report_on(topic: str) -> str:
    return "".join(f"Chapter {number}: {topic}\n" for number in range(1, CHAPTERS + 1))


def test_a_turn_goes_on_behind_its_answer(caller: Caller) -> None:
    task = caller.ask("coffee", returnImmediately=True)
    assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
    assert eventually(lambda: caller.state(task) == "TASK_STATE_COMPLETED")
    (artifact,) = caller.call("GetTask", id=task["id"])["artifacts"]
    assert "".join(part["text"] for part in artifact["parts"]) == report_on("coffee")
    assert caller.report(task) == report_on("coffee")


def test_a_call_that_waits_is_answered_at_the_end(caller: Caller) -> None:
    assert caller.ask("cocoa")["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_webhook_is_told_everything_in_order(caller: Caller) -> None:
    caller.ask("mate", returnImmediately=True)
    assert eventually(lambda: caller.is_told_of_the_end("mate"))
    assert caller.states("mate") == WHOLE
    assert caller.chapters("mate") == report_on("mate")


def test_a_hundred_turns_all_finish_each_exactly_once(caller: Caller) -> None:
    topics = [f"tea-{number}" for number in range(100)]
    with ThreadPoolExecutor(8) as callers:
        tasks = list(callers.map(lambda topic: caller.ask(topic, returnImmediately=True), topics))
    assert eventually(lambda: [caller.report(task) for task in tasks] == [report_on(topic) for topic in topics])
    assert eventually(lambda: all(map(caller.is_told_of_the_end, topics)))
    assert {caller.state(task) for task in tasks} == {"TASK_STATE_COMPLETED"}
    assert [caller.report(task) for task in tasks] == [report_on(topic) for topic in topics]
    assert [caller.chapters(topic) for topic in topics] == [report_on(topic) for topic in topics]
    assert {tuple(caller.states(topic)) for topic in topics} == {tuple(WHOLE)}


def test_a_turn_that_is_canceled_ends_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with running(tmp_path, "60") as caller:
        task = caller.ask("wine", returnImmediately=True)
        assert eventually(lambda: caller.report(task) != "")
        assert caller.call("CancelTask", id=task["id"])["status"]["state"] == "TASK_STATE_CANCELED"
        assert eventually(lambda: caller.report(task) == "")
        assert eventually(lambda: caller.is_told_of_the_end("wine"))
        assert caller.states("wine")[-1] == "TASK_STATE_CANCELED"
        assert caller.state(task) == "TASK_STATE_CANCELED"


@pytest.mark.skipif(MAKE is None, reason="needs make")
def test_make_runs_the_slow_agent(tmp_path: Path) -> None:
    settings = ["AGENT=slow", "SECONDS=0.3", f"REPORTS_FOLDER={tmp_path}", "PORT=0", "DB_PORT=0"]
    with Webhooks() as hooks, Command([str(MAKE), "--silent", "run", *settings]) as command:
        caller = Caller(command.ready().gateway, hooks, tmp_path)
        message = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "milk"}]}
        task = caller.call("SendMessage", message=message)["task"]
        assert caller.report(task) == report_on("milk")
        command.send(signal.SIGTERM)


def test_a_time_that_no_report_takes_is_one_clear_line() -> None:
    with Command(GATEWAY, {"A2A_AGENT": "report_writer:ReportWriter", "SECONDS": "soon"}) as refused:
        assert refused.end() == 1
        assert "SECONDS: must be a number" in refused.output
        assert refused.output.count("\n") == 1
