"""README.md and docs/ show what really happens: their commands are run here, or it is said where else.

The tour is run in one shell. What an answer must be stands behind its command, whole: no member
may be missing, and none may be there that is not shown. `<name>` stands for any text, the same
text wherever it stands; `<id>` and `<time>` for another one in each answer.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.local.documents import GATEWAY, PAGES, README, Block, Shell, blocks
from tests.local.processes import GATEWAY as GATEWAY_COMMAND
from tests.local.processes import Command
from tests.local.test_running import send

BASH = shutil.which("bash")
CURL = shutil.which("curl")

NEW_IN_EACH_ANSWER: Final = {"<id>", "<time>"}

BY_RUNNING = "tests/local/test_running.py runs what it starts"
BY_ADMIN = "tests/admin/test_running.py runs it with names and databases of its own"
BY_SAM = "needs an AWS account; tests/template validates, builds and translates what it deploys"
BY_TEMPLATE = "needs an AWS account; tests/template resolves the template with such parameters"
BY_DOCKER = "needs Docker; tests/template hands the functions what it would hand them"
BY_AGENTS = "tests/agents runs it with the page's files in a folder of their own"
BY_STUB = "needs an AWS account; tests/agents puts a stub in the place of the model"
BY_SMOKE = "tests/smoke runs it on a gateway with a port of its own"
BY_NOBODY = "needs an AWS account, in which it deletes"

OTHER_COMMANDS: Final = {
    "make run": BY_RUNNING,
    "make test": "runs this",
    "make run A2A_AGENT=greeter:Greeter": "below, with the file in a folder of its own",
    "make run AGENT=slow SECONDS=20 PUSH=on PUSH_ALLOW_LOCAL=on": "tests/local/test_background.py, for less long",
    "make run A2A_AGENT=rooms:RoomBooker": BY_AGENTS,
    "make run A2A_AGENT=advisor:Advisor MODEL_ID=eu.amazon.nova-lite-v1:0": BY_STUB,
    "make smoke": BY_SMOKE,
    "make smoke TEXT='R12, please'": BY_SMOKE,
    "make validate": BY_SMOKE,
    "make run AUTH=api-key": "tests/local/test_callers.py",
    "make key CALLER=alice": BY_ADMIN,
    "make key CALLER=alice STACK=a2a-agent": BY_ADMIN,
    "make redrive STACK=a2a-agent": "tests/admin/test_redriving.py",
    "make forget CALLER=alice": BY_ADMIN,
    "make forget OWNER='jwt:https://issuer.example sub alice'": BY_ADMIN,
    "sam build && sam deploy": BY_SAM,
    "sam build --config-env x86_64 && sam deploy --config-env x86_64": BY_SAM,
    "sam deploy --parameter-overrides Alarms=on": BY_TEMPLATE,
    "sam deploy --parameter-overrides Auth=api-key": BY_TEMPLATE,
    "sam deploy --parameter-overrides Auth=iam": BY_TEMPLATE,
    "sam deploy --parameter-overrides Auth=jwt JwtIssuer=https://issuer.example JwtAudience=agents "
    "RequiredScope=agent:use": BY_TEMPLATE,
    "sam deploy --parameter-overrides PublicUrl=https://agent.example.com": BY_TEMPLATE,
    "sam deploy --parameter-overrides Push=on PushAllowedHosts=hooks.example.com,hooks.example.org": BY_TEMPLATE,
    "sam deploy --parameter-overrides RetentionDays=90 LogLevel=DEBUG": BY_TEMPLATE,
    "sam deploy --parameter-overrides SigningKey=OLD_ARN": BY_TEMPLATE,
    "sam deploy --parameter-overrides SigningKey=create": BY_TEMPLATE,
    "sam deploy --parameter-overrides SigningKey=create,OLD_ARN": BY_TEMPLATE,
    "sam build && sam local start-api": BY_DOCKER,
    "sam build --config-env x86_64 && sam local start-api --config-env x86_64": BY_DOCKER,
    "sam local invoke RpcFunction -e events/send-message.json": BY_DOCKER,
    "sam delete": BY_NOBODY,
    "aws dynamodb delete-table --table-name NAME": BY_NOBODY,
    "aws kms schedule-key-deletion --key-id ARN": BY_NOBODY,
    "aws sns subscribe --topic-arn ARN --protocol email --notification-endpoint you@example.com": BY_NOBODY,
}
"""Every command of README.md and docs/ that is no step of the tour: how it is tested, or why it is not."""


def tour() -> Iterator[tuple[Block, Block | None]]:
    """Each step of the tour, with the answer that is shown behind it."""
    shown = blocks(README)
    for block, following in zip(shown, [*shown[1:], None], strict=True):
        if block.is_a_step_of_the_tour:
            yield block, following if following and following.language == "json" else None


def answers(printed: str) -> list[Any]:
    """The JSON values that stand one behind the other."""
    values = []
    while printed := printed.strip():
        value, end = json.JSONDecoder().raw_decode(printed)
        values.append(value)
        printed = printed[end:]
    return values


def bind(shown: Any, given: Any, meanings: dict[str, Any]) -> Any:
    """What is shown, with the placeholders in it replaced by what stands in their place in what is given."""
    if isinstance(shown, dict) and isinstance(given, dict):
        return {name: bind(value, given.get(name), meanings) for name, value in shown.items()}
    if isinstance(shown, list) and isinstance(given, list):
        return [bind(*each, meanings) for each in zip(shown, given, strict=False)] + shown[len(given) :]
    if isinstance(shown, str) and re.fullmatch(r"<\w+>", shown):
        return meanings.setdefault(shown, given)
    return shown


def fill(text: str, meanings: dict[str, Any]) -> str:
    """A shell block with placeholders replaced by what they have come to stand for."""
    return re.sub(r"<\w+>", lambda found: meanings[found[0]], text)


@pytest.mark.skipif(BASH is None or CURL is None, reason="needs bash and curl")
def test_the_tour_goes_as_it_is_shown() -> None:
    meanings: dict[str, Any] = {}
    with Command(GATEWAY_COMMAND) as running, Shell([str(BASH)]) as shell:
        gateway = running.ready().gateway
        for step, shown in tour():
            printed = answers(shell.run(fill(step.text.replace(GATEWAY, gateway), meanings)))
            assert not [answer for answer in printed if shown is None and "error" in answer]
            if shown is not None:
                assert printed == [bind(json.loads(shown.text), printed[0], meanings)]
            meanings = {name: meaning for name, meaning in meanings.items() if name not in NEW_IN_EACH_ANSWER}
    assert "<task>" in meanings


def test_the_tour_has_steps_with_and_without_an_answer() -> None:
    assert {shown is None for _, shown in tour()} == {True, False}


def test_the_agent_of_the_readme_serves(tmp_path: Path) -> None:
    (agent,) = (block for block in blocks(README) if block.language == "python")
    (tmp_path / "greeter.py").write_text(agent.text, encoding="utf-8")
    (command,) = (command for command in OTHER_COMMANDS if "A2A_AGENT=greeter" in command)
    settings = {"A2A_AGENT": command.partition("A2A_AGENT=")[2], "PYTHONPATH": str(tmp_path)}
    with Command(GATEWAY_COMMAND, settings) as running:
        asked = send(running.ready().gateway, " ", "1")
        assert asked["status"]["message"]["parts"] == [{"text": "Whom shall I greet?"}]
        greeted = send(running.gateway, "Zoë", "2", taskId=asked["id"])
        assert greeted["artifacts"][0]["parts"] == [{"text": "Hello, Zoë!"}]


def test_every_other_command_has_a_row_that_says_how_it_is_tested() -> None:
    others = (block for page in PAGES for block in blocks(page) if block.language == "sh")
    commands = {command for block in others if not block.is_a_step_of_the_tour for command in block.commands}
    assert commands == OTHER_COMMANDS.keys()


def test_every_block_says_what_it_is() -> None:
    assert {block.language for page in PAGES for block in blocks(page)} <= {"sh", "json", "python", "yaml"}


@pytest.mark.parametrize(
    ("shown", "given"),
    [
        ({"a": "<x>", "b": "<x>"}, {"a": "1", "b": "2"}),
        ({"a": "1"}, {"a": "1", "b": "2"}),
        ({"a": "1", "b": "2"}, {"a": "1"}),
        (["<x>"], ["1", "2"]),
        (["<x>", "<y>"], ["1"]),
        ({"a": "<x>"}, {"b": "1"}),
        ([], {}),
        ({"a": {}}, {"a": "1"}),
    ],
)
def test_an_answer_that_is_not_as_shown_is_told_apart(shown: Any, given: Any) -> None:
    assert bind(shown, given, {}) != given


def test_a_placeholder_stands_for_what_it_stood_for_before() -> None:
    meanings: dict[str, Any] = {}
    assert bind(["<x>", "<y>", "<x>"], ["1", "2", "1"], meanings) == ["1", "2", "1"]
    assert bind({"x": "<x>"}, {"x": "3"}, meanings) == {"x": "1"}
    assert fill("TASK=<x>", meanings) == "TASK=1"
