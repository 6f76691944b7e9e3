"""The fenced blocks of README.md and docs/, and a shell to run them in."""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.local.processes import ROOT

README: Final = ROOT / "README.md"
PAGES: Final = [README, *sorted((ROOT / "docs").glob("*.md"))]

GATEWAY: Final = "http://127.0.0.1:3000"

FENCED: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language and its text."""

    language: str
    text: str

    @property
    def is_a_step_of_the_tour(self) -> bool:
        """Whether it is a shell's, and talks to the gateway: itself, or by the function defined for that."""
        return self.language == "sh" and bool(re.search(rf"^a2a |{GATEWAY}", self.text, re.MULTILINE))

    @property
    def commands(self) -> list[str]:
        """Its lines without comments."""
        return [command for line in self.text.splitlines() if (command := line.partition(" # ")[0].strip())]


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in FENCED.findall(page.read_text(encoding="utf-8"))]


class Shell:
    """One session of a shell, which is given one block after the other."""

    END: Final = "--- end of block "

    def __init__(self, words: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
        )

    def run(self, block: str) -> str:
        """What the block prints. Its last command must succeed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{block}\nprintf '\\n%s%s\\n' '{self.END}' $?\n")
        self._process.stdin.flush()
        printed = ""
        for line in self._process.stdout:
            if line.startswith(self.END):
                assert line.removeprefix(self.END) == "0\n", printed
                return printed.rstrip("\n")
            printed += line
        raise AssertionError(f"the shell has ended:\n{printed}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()
