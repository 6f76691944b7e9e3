"""What the bench does where it cannot lay out what it measures."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from bench import staging

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(staging, "ROOT", tmp_path)
    folder = tmp_path / "requirements"
    folder.mkdir()
    for name in ("constraints.txt", "packages.txt"):
        (folder / name).write_text("")
    return tmp_path


def pip(monkeypatch: pytest.MonkeyPatch, *, fails: bool = False) -> list[Any]:
    """A pip that installs nothing; the commands that it was called with."""
    commands: list[Any] = []

    def run(command: list[str], **_: Any) -> None:
        commands.append(command)
        if fails:
            raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr("bench.staging.subprocess.run", run)
    return commands


def test_packages_that_cannot_be_installed_are_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip(monkeypatch, fails=True)

    with pytest.raises(staging.StageError, match=r"requirements/packages\.txt cannot be installed"):
        staging.install(sys.executable, root / "requirements" / "packages.txt", root / "target")


def test_a_failed_installation_is_begun_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages, target = root / "requirements" / "packages.txt", root / "target"
    pip(monkeypatch)
    staging.install(sys.executable, packages, target)
    packages.write_text("one")
    pip(monkeypatch, fails=True)
    with pytest.raises(staging.StageError):
        staging.install(sys.executable, packages, target)

    packages.write_text("")
    commands = pip(monkeypatch)
    staging.install(sys.executable, packages, target)

    assert len(commands) == 1


def test_packages_that_are_there_are_not_installed_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = pip(monkeypatch)
    for _ in range(2):
        staging.install(sys.executable, root / "requirements" / "packages.txt", root / "target")

    assert len(commands) == 1


def test_a_program_that_is_not_there_is_a_failure_too(root: Path) -> None:
    with pytest.raises(staging.StageError, match="cannot compile"):
        staging.compile_all(str(root / "no-python"), [])


def test_the_bench_measures_without_push_notifications_unless_it_says_so() -> None:
    assert staging.without_push({"PUSH": "on", "A2A_AGENT": "a:B"}) == {"PUSH": "off"}
    assert staging.without_push({"PUSH_QUEUE": "url"}) == {"PUSH_QUEUE": ""}
