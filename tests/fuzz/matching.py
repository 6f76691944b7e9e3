"""Answers against what is expected of them, where the server chooses some of the words."""

import re
from dataclasses import dataclass, field
from typing import Any, Final

Json = Any

MADE: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The form of ids that the server makes."""

NOT_FOUND: Final = {
    "code": -32001,
    "message": "Task not found",
    "data": [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "TASK_NOT_FOUND",
            "domain": "a2a-protocol.org",
        }
    ],
}
"""The whole error, whether a task is missing or another's."""


@dataclass(eq=False)
class Made:
    """An id that the server makes: what it is, the first answer tells that shows it."""

    value: str = ""


@dataclass(eq=False)
class Token:
    """A page token: what it is, the answer tells that gives it."""

    walk: Any
    """Where it leads on."""
    value: str = ""


@dataclass(frozen=True)
class Containing:
    """A text of the server's own, of which only this is expected."""

    word: str


@dataclass(frozen=True)
class Refusal:
    """An error."""

    code: int
    word: str
    """What its message contains."""
    field: str = ""
    """The path of the only field that breaks a rule."""
    state: str = ""
    """The state that the task is in, where that is why."""


@dataclass
class Matcher:
    """Compares; remembers the ids that were made, none of which may come twice."""

    made: set[str] = field(default_factory=set)

    def match(self, expected: Json, actual: Json, where: str = "answer") -> None:
        match expected:
            case Made():
                self._match_made(expected, actual, where)
            case Token():
                assert isinstance(actual, str), f"{where}: {actual!r}"
                assert actual, f"{where} is empty"
                expected.value = actual
            case Containing(word):
                assert word in actual, f"{where}: {actual!r} without {word!r}"
            case Refusal():
                self._match_refusal(expected, actual, where)
            case dict():
                assert isinstance(actual, dict), f"{where}: {actual!r}"
                assert set(actual) == set(expected), f"{where} has {sorted(actual)} and not {sorted(expected)}"
                for name, value in expected.items():
                    self.match(value, actual[name], f"{where}.{name}")
            case list():
                assert isinstance(actual, list), f"{where}: {actual!r}"
                assert len(actual) == len(expected), f"{where} has {actual} and not {expected}"
                for index, value in enumerate(expected):
                    self.match(value, actual[index], f"{where}[{index}]")
            case _:
                assert (type(actual), actual) == (type(expected), expected), f"{where}: {actual!r}, not {expected!r}"

    def _match_made(self, expected: Made, actual: Json, where: str) -> None:
        if not expected.value:
            assert MADE.fullmatch(actual), f"{where}: {actual!r}"
            assert actual not in self.made, f"{where} is not new"
            self.made.add(actual)
            expected.value = actual
        assert actual == expected.value, f"{where}: {actual}, not {expected.value}"

    def _match_refusal(self, expected: Refusal, actual: Json, where: str) -> None:
        assert set(actual) == {"error"}, f"{where}: {actual}, not {expected}"
        error = actual["error"]
        assert error["code"] == expected.code, f"{where}: {error}, not {expected}"
        assert expected.word in error["message"], f"{where}: {error}, not {expected}"
        if expected.field:
            (detail,) = error["data"]
            assert [each["field"] for each in detail["fieldViolations"]] == [expected.field], f"{where}: {error}"
        if expected.state:
            assert error["data"][0]["metadata"] == {"state": expected.state}, f"{where}: {error}"
