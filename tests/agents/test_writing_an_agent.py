"""docs/writing-an-agent.md: its files serve and pass their tests and the linters, and its tables are complete."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from a2a_lambda import agent as api
from a2a_lambda.agent import ArtifactUpdate, Reply, StatusUpdate, Turn
from tests.local.documents import Block, blocks
from tests.local.processes import GATEWAY, ROOT, Command
from tests.local.test_running import send

PAGE: Final = ROOT / "docs" / "writing-an-agent.md"

FILE: Final = re.compile(r"# ((?:layers/agent|tests/unit)/\w+\.py)\n")
ROW: Final = re.compile(r"^\| ((?:`[\w()]+`(?:, )?)+) \|", re.MULTILINE)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that has this one's library, and the page's files where their first lines say."""
    house = tmp_path_factory.mktemp("house")
    (house / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    for folder in ("layers/agent", "tests/unit"):
        (house / folder).mkdir(parents=True)
    (house / "layers/a2a").symlink_to(ROOT / "layers" / "a2a")
    for block in python_blocks():
        (house / file_of(block)).write_text(block.text.partition("\n")[2])
    return house


def python_blocks() -> list[Block]:
    return [block for block in blocks(PAGE) if block.language == "python"]


def file_of(block: Block) -> str:
    found = FILE.match(block.text)
    assert found, block.text
    return found[1]


def run(house: Path, *words: str) -> tuple[int, str]:
    finished = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=house,
        env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
        text=True,
        capture_output=True,
        check=False,
    )
    return finished.returncode, finished.stdout + finished.stderr


def serving(house: Path, agent: str) -> Command:
    return Command(GATEWAY, {"A2A_AGENT": agent, "PYTHONPATH": str(house / "layers" / "agent")})


def rows(heading: str) -> set[str]:
    """The names in the first column of the table under a heading."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return {name for row in ROW.findall(section) for name in re.findall(r"\w+", row)}


def test_the_room_booker_asks_and_books(house: Path) -> None:
    with serving(house, "rooms:RoomBooker") as gateway:
        asked = send(gateway.ready().gateway, "R12, please", "1")
        assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        booked = send(gateway.gateway, "At 14:00", "2", taskId=asked["id"])
        assert booked["artifacts"][0]["parts"][0] == {"text": "R12 is yours at 14:00."}
        assert send(gateway.gateway, "R12 at 14:00", "3")["status"]["state"] == "TASK_STATE_REJECTED"


def test_the_counter_gives_its_artifact_in_pieces(house: Path) -> None:
    with serving(house, "counting:Counter") as gateway:
        (numbers,) = send(gateway.ready().gateway, "Count", "1")["artifacts"]
        assert numbers == {"artifactId": "numbers", "parts": [{"text": "1"}, {"text": "2"}, {"text": "3"}]}


def test_the_advisor_is_served_without_a_client_for_its_card(house: Path) -> None:
    program = "import sys, advisor; advisor.Advisor(); sys.exit('botocore' in sys.modules)"
    paths = os.pathsep.join([str(house / "layers" / "agent"), str(ROOT / "layers" / "a2a")])
    finished = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": paths}, check=False)
    assert finished.returncode == 0


def test_the_pages_own_tests_pass(house: Path) -> None:
    status, said = run(house, "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert status == 0, said
    assert re.search(r"\b\d+ passed", said)


@pytest.mark.parametrize(
    "words",
    [("ruff", "check", "--no-cache"), ("ruff", "format", "--check", "--no-cache"), ("mypy", "--no-incremental")],
)
def test_the_pages_files_pass_what_make_lint_runs(words: tuple[str, ...], house: Path) -> None:
    status, said = run(house, *words, "layers/agent", "tests")
    assert status == 0, said


def test_every_update_has_a_row() -> None:
    updates = {
        name
        for name, function in vars(api).items()
        if getattr(function, "__annotations__", {}).get("return") in {StatusUpdate, ArtifactUpdate, Reply}
        and not name.startswith("_")
    }
    assert rows("Updates") == updates


def test_everything_that_a_turn_knows_has_a_row() -> None:
    assert rows("What a turn knows") == {*Turn.__struct_fields__, "text"}


def test_every_way_to_run_has_a_row() -> None:
    assert {"read_only", "background"} <= set(vars(api.Agent))
    page = PAGE.read_text()
    assert "| `read_only = True` |" in page
    assert "| `background = True` |" in page
