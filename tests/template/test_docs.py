"""docs/deploying.md describes the template that there is."""

import re
from typing import Any

from tests.template.sam import ROOT

ROW = re.compile(r"^\| `(?P<name>\w+)` \| (?:`(?P<default>[^`]+)`)? ?\|", re.MULTILINE)


def test_the_documentation_lists_every_parameter_with_its_default(template: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "deploying.md").read_text()

    documented = {row["name"]: row["default"] or "" for row in ROW.finditer(page)}

    assert documented == {name: str(parameter["Default"]) for name, parameter in template["Parameters"].items()}
