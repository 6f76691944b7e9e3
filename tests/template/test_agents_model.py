"""What docs/writing-an-agent.md adds to the template for an agent with a model fits, and is what is deployed then."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.local.documents import blocks
from tests.template import sam

PAGE: Final = sam.ROOT / "docs" / "writing-an-agent.md"
RUNNING_AGENTS: Final = ["Rpc", "Worker"]

REST: Final = r"(?:(?!  \w).*\n)*?"
"""Lines of the resource that has begun."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The template with both blocks where the page says."""
    variable, statement = (block.text for block in blocks(PAGE) if block.language == "yaml")
    text = (sam.ROOT / "template.yaml").read_text()
    for name in RUNNING_AGENTS:
        text = inserted(text, rf"^  {name}Function:\n{REST}( +)A2A_AGENT: !Ref Agent\n", variable)
        text = inserted(text, rf"^  {name}Role:\n{REST} +PolicyDocument:\n.*\n( +)Statement:\n", statement, "  ")
    path = tmp_path_factory.mktemp("template") / "template.yaml"
    path.write_text(text)
    return path


def inserted(text: str, before: str, block: str, deeper: str = "") -> str:
    """Text with a block behind the place that a pattern finds, as far to the right as its group, or deeper."""
    (found,) = re.finditer(before, text, re.MULTILINE)
    lines = [found[1] + deeper + line for line in block.splitlines(keepends=True)]
    return text[: found.end()] + "".join(lines) + text[found.end() :]


@pytest.mark.thorough
def test_the_template_with_a_model_is_valid(template: Path) -> None:
    finished = sam.run("sam", "validate", "--lint", "--template-file", str(template))
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_the_roles_of_the_functions_that_run_agents_may_ask_the_model(template: Path) -> None:
    deployed: dict[str, Any] = sam.run_script("translate.py", str(template))
    for name in RUNNING_AGENTS:
        (policy,) = deployed["Resources"][f"{name}Role"]["Properties"]["Policies"]
        (allowed,) = [each for each in policy["PolicyDocument"]["Statement"] if "bedrock" in json.dumps(each)]
        assert allowed["Action"] == "bedrock:InvokeModel"
        assert len(allowed["Resource"]) == 2
        variables = deployed["Resources"][f"{name}Function"]["Properties"]["Environment"]["Variables"]
        assert "MODEL_ID" in variables


@pytest.mark.thorough
def test_what_an_agent_brings_along_is_built_into_its_layer(tmp_path: Path) -> None:
    sam.require_python()
    (tmp_path / "template.yaml").write_text((sam.ROOT / "template.yaml").read_text())
    layer = tmp_path / "layers" / "agent"
    layer.mkdir(parents=True)
    (layer / "mine.py").write_text("")
    (layer / "requirements.txt").write_text("six==1.17.0\n")
    options = [
        "--template-file",
        str(tmp_path / "template.yaml"),
        "--build-dir",
        str(tmp_path / "built"),
        "--no-cached",
    ]
    finished = sam.run("sam", "build", "AgentLayer", "--config-env", "x86_64", *options)
    assert finished.returncode == 0, finished.stderr
    assert {"mine.py", "six.py"} <= {file.name for file in (tmp_path / "built" / "AgentLayer" / "python").iterdir()}
