"""A table in memory that understands the expressions of rate limits: what two instances share."""

import re
from collections.abc import Mapping
from typing import Any, Final

from a2a_lambda import tally
from a2a_lambda.errors import UnavailableError
from a2a_lambda.tables import RefusedError, Table

ASSIGNMENT: Final = re.compile(r"(\w+) = (?:(\w+) \+ )?(:\w+)")
COMPARISON: Final = re.compile(r"(\w+) (<=|>) (:\w+)")
MISSING: Final = re.compile(r"attribute_not_exists\((\w+)\)")


class FakeTable(Table):
    """Keeps numbers; `writes` counts the calls, the refused ones too."""

    def __init__(self) -> None:
        super().__init__(None, "fake")  # type: ignore[arg-type]
        self.items: dict[str, dict[str, int]] = {}
        self.writes = 0
        self.is_down = False

    def update(self, key: Mapping[str, Any], **update: Any) -> Mapping[str, Any]:
        if self.is_down:
            raise UnavailableError
        self.writes += 1
        tally.current().calls += 1
        item = self.items.setdefault(key["subject"]["S"], {})
        values = {name: int(value["N"]) for name, value in update["ExpressionAttributeValues"].items()}
        if not any(_holds(each, item, values) for each in update["ConditionExpression"].split(" OR ")):
            raise RefusedError(_attributes(item))
        assignments = ASSIGNMENT.findall(update["UpdateExpression"])
        item.update({name: item.get(added, 0) + values[value] for name, added, value in assignments})
        return _attributes(item)


def _holds(clause: str, item: Mapping[str, int], values: Mapping[str, int]) -> bool:
    return all(_is_true(condition, item, values) for condition in clause.split(" AND "))


def _is_true(condition: str, item: Mapping[str, int], values: Mapping[str, int]) -> bool:
    if missing := MISSING.fullmatch(condition):
        return missing[1] not in item
    comparison = COMPARISON.fullmatch(condition)
    assert comparison, condition
    name, operator, value = comparison.groups()
    if name not in item:
        return False
    return item[name] <= values[value] if operator == "<=" else item[name] > values[value]


def _attributes(item: Mapping[str, int]) -> dict[str, Any]:
    return {name: {"N": str(value)} for name, value in item.items()}
