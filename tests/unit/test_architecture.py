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
    {"model", "errors", "timestamps"},
    {"agent"},
    {"task"},
    {"store", "turns", "validation"},
    {"operations"},
    {"jsonrpc", "card"},
    {"apigateway", "settings", "loading", "dynamodb"},
    {"bootstrap"},
]
KNOWING_BOTOCORE: Final = {"dynamodb", "bootstrap"}
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
def test_only_the_store_and_the_bootstrap_know_botocore(module: str) -> None:
    knows = bool(packages(PACKAGE / f"{module}.py") & {"boto3", "botocore"})

    assert knows == (module in KNOWING_BOTOCORE)


@pytest.mark.parametrize("module", [each for each in MODULES if each != "bootstrap"])
def test_only_the_bootstrap_reads_the_environment(module: str) -> None:
    assert "os" not in packages(PACKAGE / f"{module}.py")


@pytest.mark.parametrize("module", ["agent", "errors", "model", "store", "task", "validation"])
def test_the_rules_know_msgspec_and_the_standard_library_alone(module: str) -> None:
    foreign = packages(PACKAGE / f"{module}.py") - set(sys.stdlib_module_names) - {"a2a_lambda", "msgspec"}

    assert foreign == set()


@pytest.mark.parametrize("module", ["model", "errors", "agent", "task", "validation", "store"])
def test_the_rules_know_neither_the_time_nor_chance(module: str) -> None:
    assert not packages(PACKAGE / f"{module}.py") & {"time", "datetime", "random", "uuid", "secrets", "os"}


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
