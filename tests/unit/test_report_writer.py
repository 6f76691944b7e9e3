"""The agent that works in the background: how it goes on, and what it leaves behind."""

from pathlib import Path

import pytest

from a2a_lambda.agent import ArtifactUpdate, StatusUpdate, Turn, Update
from a2a_lambda.model import Part, TaskState
from a2a_lambda.settings import InvalidSettingError
from report_writer import ReportWriter
from tests.unit.factories import message


class Office:
    """A writer with a folder of its own, whose pauses are counted and not made."""

    def __init__(self, folder: Path, seconds: str = "4") -> None:
        self.pauses: list[float] = []
        self.folder = folder / "reports"
        environ = {"SECONDS": seconds, "REPORTS_FOLDER": str(self.folder)}
        self.writer = ReportWriter(self.pauses.append, environ)

    def write(self, topic: str = "tea", *, steps: int = 1000) -> list[Update]:
        """Return the updates of a turn that is canceled after so many pauses."""
        turn = Turn(message=message([Part(text=topic)]), task_id="task-1", canceled=lambda: len(self.pauses) >= steps)
        return list(self.writer.respond(turn))

    @property
    def files(self) -> dict[str, str]:
        return {path.name: path.read_text(encoding="utf-8") for path in self.folder.glob("**/*")}


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def said(updates: list[Update]) -> list[str]:
    parts = [part for update in updates if isinstance(update, StatusUpdate) for part in update.parts]
    return [str(part.text) for part in parts]


def chunks(updates: list[Update]) -> list[ArtifactUpdate]:
    return [update for update in updates if isinstance(update, ArtifactUpdate)]


def test_the_agent_acts_on_the_world_in_the_background() -> None:
    assert not ReportWriter.read_only
    assert ReportWriter.background


def test_it_says_how_far_it_is(office: Office) -> None:
    assert said(office.write()) == [f"Step {step} of 4" for step in range(1, 5)]


def test_it_takes_the_time_that_it_is_given(office: Office) -> None:
    office.write()
    assert office.pauses == [1, 1, 1, 1]


def test_a_short_report_has_several_steps_too(tmp_path: Path) -> None:
    office = Office(tmp_path, seconds="0.3")
    office.write()
    assert office.pauses == pytest.approx([0.1, 0.1, 0.1])


def test_the_report_is_one_artifact_in_chunks(office: Office) -> None:
    given = chunks(office.write())
    assert [chunk.append for chunk in given] == [False, True, True, True]
    assert [chunk.last_chunk for chunk in given] == [False, False, False, True]
    assert {(chunk.name, chunk.artifact_id) for chunk in given} == {("report", "report")}


def test_the_report_is_a_file_named_after_the_task(office: Office) -> None:
    given = chunks(office.write("../../tea"))
    assert office.files == {"task-1.txt": "".join(str(chunk.parts[0].text) for chunk in given)}
    assert office.files["task-1.txt"].startswith("Chapter 1: ../../tea\nChapter 2: ")


def test_a_canceled_report_is_not_gone_on_with_and_leaves_no_file(office: Office) -> None:
    assert len(chunks(office.write(steps=2))) == 2
    assert len(office.pauses) == 2
    assert office.files == {}


def test_a_report_that_is_not_asked_for_any_more_leaves_no_file(office: Office) -> None:
    updates = office.writer.respond(Turn(message=message([Part(text="tea")]), task_id="task-1"))
    next(updates), next(updates)
    assert office.files
    updates.close()  # type: ignore[attr-defined] # a generator
    assert office.files == {}


@pytest.mark.parametrize("text", ["", "  \n"])
def test_a_topic_is_asked_for(office: Office, text: str) -> None:
    (asked,) = office.write(text)
    assert isinstance(asked, StatusUpdate)
    assert asked.state is TaskState.INPUT_REQUIRED
    assert office.files == {}


def test_a_long_topic_is_cut(office: Office) -> None:
    office.write("x" * 1000)
    assert max(map(len, office.files["task-1.txt"].splitlines())) < 100


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "many", "901"])
def test_a_time_that_cannot_be_taken_is_refused(tmp_path: Path, seconds: str) -> None:
    with pytest.raises(InvalidSettingError, match="SECONDS"):
        Office(tmp_path, seconds)


def test_ten_seconds_are_the_default(tmp_path: Path) -> None:
    office = Office(tmp_path, seconds="")
    office.write()
    assert office.pauses == [1] * 10
