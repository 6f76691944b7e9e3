"""Loading the agent that a deployment serves."""

from pathlib import Path
from typing import Final

import pytest

from a2a_lambda.loading import load_agent
from a2a_lambda.settings import InvalidSettingError
from order_status import OrderStatusAgent

PREAMBLE: Final = """
from a2a_lambda.agent import Agent, AgentProfile
profile = AgentProfile(name="n", description="d", version="1", skills=[])
"""
MODULES: Final = {
    "complete": "class It(Agent):\n    card = profile\n    def respond(self, turn): yield from ()",
    "without_card": "class It(Agent):\n    def respond(self, turn): yield from ()",
    "without_respond": "class It(Agent):\n    card = profile",
    "no_agent": "class It: card = profile",
    "an_instance": "class C(Agent):\n    card = profile\n    def respond(self, turn): yield from ()\nIt = C()",
    "a_function": "def It(): pass",
    "imports_what_is_missing": "import no_such_module_anywhere",
    "raises": "1 / 0",
    "is_no_python": "class It(",
    "needs_arguments": "class It(Agent):\n    card = profile\n    def __init__(self, x): pass\n"
    "    def respond(self, turn): yield from ()",
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the prefix of importable modules, one for each of MODULES."""
    for name, source in MODULES.items():
        (tmp_path / f"{tmp_path.name}_{name}.py").write_text(PREAMBLE + source)
    monkeypatch.syspath_prepend(tmp_path)
    return f"{tmp_path.name}_"


def test_an_agent_is_loaded_by_its_name() -> None:
    assert isinstance(load_agent("order_status:OrderStatusAgent"), OrderStatusAgent)


def test_an_agent_may_be_kept_elsewhere(modules: str) -> None:
    assert load_agent(f"{modules}complete:It").card.name == "n"


@pytest.mark.parametrize(
    "name",
    ["no_such_module:It", "order_status:NoSuchClass", "order_status.inner:It", "json:loads", "a2a_lambda.agent:Agent"],
)
def test_what_is_no_agent_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidSettingError, match=f"A2A_AGENT: {name}"):
        load_agent(name)


@pytest.mark.parametrize("name", ["without_card", "no_agent", "an_instance", "a_function", "imports_what_is_missing"])
def test_a_module_without_an_agent_is_refused_by_name(modules: str, name: str) -> None:
    with pytest.raises(InvalidSettingError, match=f"A2A_AGENT: {modules}{name}:It"):
        load_agent(f"{modules}{name}:It")


@pytest.mark.parametrize("name", ["without_respond", "needs_arguments"])
def test_a_class_that_cannot_be_made_is_refused_by_name(modules: str, name: str) -> None:
    with pytest.raises(InvalidSettingError, match=f"A2A_AGENT: {modules}{name}:It"):
        load_agent(f"{modules}{name}:It")


@pytest.mark.parametrize(("name", "error"), [("raises", ZeroDivisionError), ("is_no_python", SyntaxError)])
def test_a_module_that_is_broken_says_where(modules: str, name: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        load_agent(f"{modules}{name}:It")
