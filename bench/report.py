"""The table of results: each row's value beside its budget, met or missed. Pure: numbers in, Markdown out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HEADINGS = ("what", "this server", "SDK, memory", "SDK, SQL", "budget", "")


@dataclass(frozen=True)
class Row:
    """One thing that was measured; None where a stack has no such number, or nobody set a limit."""

    what: str
    server: float | None
    memory: float | None = None
    sql: float | None = None
    limit: float | None = None
    limit_text: str = ""
    """How the limit came about, where it is no plain number."""
    unit: str = ""
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether the budget was met; "" where there is none."""
        if self.limit is None or self.server is None:
            return self.note
        return "met" if self.server <= self.limit else "**missed**"

    def cells(self) -> tuple[str, ...]:
        """The row as text, in the order of HEADINGS."""
        budget = f"≤ {number(self.limit)}{self._unit}" if self.limit is not None else ""
        if self.limit_text:
            budget = f"{budget} ({self.limit_text})" if budget else self.limit_text
        values = (self.server, self.memory, self.sql)
        return (self.what, *(self._value(value) for value in values), budget, self.verdict)

    def _value(self, value: float | None) -> str:
        return "–" if value is None else f"{number(value)}{self._unit}"

    @property
    def _unit(self) -> str:
        return f" {self.unit}" if self.unit else ""


def number(value: float) -> str:
    """A number with as many digits as mean something."""
    if value == int(value):
        return f"{value:,.0f}"
    if abs(value) >= 100:  # noqa: PLR2004 - three digits are enough
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"  # noqa: PLR2004 - as above


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose columns line up in a terminal too. All columns but the first are to the right."""
    lines = [tuple(headings), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    rule = [":".rjust(max(width, 2), "-") if column else "-" * width for column, width in enumerate(widths)]
    return "\n".join(_line(line, widths) for line in (lines[0], rule, *lines[1:]))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.rjust(width) if column else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "| " + " | ".join([first, *others]) + " |"
