"""Dependencies point inwards, and only the outer ring knows AWS."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = ROOT / "layers" / "a2a" / "a2a_lambda"

# The rings from the inside out. A module may import those of its own ring and of the rings before it.
RINGS: Final = [
    {"model", "errors", "timestamps", "tally", "portable", "es256", "jcs", "calls"},
    {"agent"},
    {"outcome"},
    {"task"},
    {"store", "turns", "validation", "capabilities", "callers", "pages", "retries", "addresses", "notifications"},
    {"presentation", "listing"},
    {"ledger"},
    {"progress"},
    {"running"},
    {"sending", "working", "pushing"},
    {"operations"},
    {"jsonrpc", "card"},
    {"apigateway", "settings", "loading", "observation", "security", "signing"},
    {
        "tables",
        "items",
        "dynamodb",
        "keys",
        "rates",
        "kms",
        "clients",
        "parsers",
        "outages",
        "queues",
        "webhooks",
        "places",
        "push_configs",
    },
    {"relaying", "delivering"},
    {"bootstrap"},
    {"background"},
]
KNOWING_BOTOCORE: Final = {"tables", "kms", "clients", "parsers", "outages", "queues", "bootstrap"}
READING_THE_ENVIRONMENT: Final = {"bootstrap", "observation"}
RULES: Final = sorted(
    module for members in RINGS[: RINGS.index({"operations"}) + 1] for module in members - {"timestamps", "tally"}
)
ASKING_FOR_THE_TIME: Final = {"now", "utcnow", "today"}
MODULES: Final = sorted(path.stem for path in PACKAGE.glob("*.py") if path.stem != "__init__")


def imports(path: Path) -> set[str]:
    """Return the modules that a file imports when it is run, and those that it imports for its types alone."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def names(path: Path) -> set[str]:
    """Return the names of all attributes that a file uses."""
    return {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}


def ours(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imports(path) if name.startswith("a2a_lambda.")} & set(MODULES)


def packages(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(path)}


def ring(module: str) -> int:
    return next(number for number, members in enumerate(RINGS) if module in members)


def test_every_module_has_a_ring() -> None:
    assert sorted(module for members in RINGS for module in members) == MODULES


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_nothing_from_a_ring_around_its_own(module: str) -> None:
    outer = {each for each in ours(PACKAGE / f"{module}.py") if ring(each) > ring(module)}

    assert outer == set()


@pytest.mark.parametrize("module", MODULES)
def test_only_the_calls_of_aws_and_the_bootstrap_know_botocore(module: str) -> None:
    knows = bool(packages(PACKAGE / f"{module}.py") & {"boto3", "botocore"})

    assert knows == (module in KNOWING_BOTOCORE)


@pytest.mark.parametrize("module", [each for each in MODULES if each not in READING_THE_ENVIRONMENT])
def test_only_the_bootstrap_and_the_metrics_switch_read_the_environment(module: str) -> None:
    assert "os" not in packages(PACKAGE / f"{module}.py")


@pytest.mark.parametrize("module", RULES)
def test_the_rules_know_msgspec_and_the_standard_library_alone(module: str) -> None:
    foreign = packages(PACKAGE / f"{module}.py") - set(sys.stdlib_module_names) - {"a2a_lambda", "msgspec"}

    assert foreign == set()


@pytest.mark.parametrize("module", RULES)
def test_the_rules_know_neither_the_time_nor_chance(module: str) -> None:
    assert not packages(PACKAGE / f"{module}.py") & {"time", "random", "uuid", "secrets", "os"}
    assert not ASKING_FOR_THE_TIME & names(PACKAGE / f"{module}.py")


def test_an_agent_needs_the_agent_api_and_the_wire_types_alone() -> None:
    assert ours(ROOT / "layers" / "agent" / "order_status.py") == {"agent", "model"}


@pytest.mark.parametrize("unwanted", ["botocore", "boto3", "aws_lambda_powertools", "urllib3", "http.client"])
def test_the_card_function_loads_no_aws_client(unwanted: str) -> None:
    program = f"import sys, app; sys.exit({unwanted!r} in sys.modules)"
    paths = [ROOT / "functions" / "card", ROOT / "layers" / "a2a", ROOT / "layers" / "agent"]
    environ = {
        "A2A_AGENT": "order_status:OrderStatusAgent",
        "PYTHONPATH": ":".join(str(path) for path in paths),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    finished = subprocess.run([sys.executable, "-c", program], env=environ, check=False, cwd=ROOT)

    assert finished.returncode == 0
