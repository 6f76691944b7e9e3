"""AWS's own checkers have nothing to say about the template."""

import json
from pathlib import Path
from typing import Any

from tests.template import sam


def test_sam_finds_nothing_to_say_about_the_template() -> None:
    finished = sam.run("sam", "validate", "--lint")

    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_the_translated_template_is_clean_too(template: dict[str, Any], tmp_path: Path) -> None:
    """`sam validate` looks at the template before SAM's translation and lets, for one, an unknown runtime pass."""
    translated = tmp_path / "template.json"
    translated.write_text(json.dumps(template))

    finished = sam.run("cfn-lint", str(translated))

    assert (finished.returncode, finished.stdout) == (0, "")
