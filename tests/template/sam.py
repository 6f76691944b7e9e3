"""The SAM environment: a virtual environment of its own with `sam`, `cfn-lint` and `awslambdaric`.

Its packages would contradict the project's, so tests run its programs and never import from it.
"""

import atexit
import functools
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
SCRIPTS: Final = Path(__file__).resolve().parent

# The samconfig.toml environment that builds for each architecture.
CONFIG_ENVIRONMENTS: Final = {"arm64": "default", "x86_64": "x86_64"}


def environment() -> Path:
    """The SAM environment's folder: `.venv-sam`, unless SAM_ENVIRONMENT names another."""
    return Path(os.environ.get("SAM_ENVIRONMENT", ROOT / ".venv-sam")).absolute()


def run(program: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program of the SAM environment in the project's folder, without an AWS account."""
    folder = environment() / "bin"
    variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_PROFILE")}
    variables |= {
        "PATH": os.pathsep.join([str(folder), os.environ["PATH"]]),
        "SAM_CLI_TELEMETRY": "0",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    return subprocess.run(
        [str(folder / program), *arguments],
        cwd=ROOT,
        env=variables,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def run_script(name: str, *arguments: str, stdin: str = "") -> Any:
    """Run a script of this folder with the SAM environment's Python; what it prints, as JSON."""
    finished = run("python", str(SCRIPTS / name), *arguments, stdin=stdin)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


@functools.cache
def deployed_template() -> dict[str, Any]:
    """template.yaml as CloudFormation gets it: with SAM's resources translated and every tag spelt out."""
    template: dict[str, Any] = run_script("translate.py", str(ROOT / "template.yaml"))
    return template


def require_python() -> None:
    """Skip the test that asks where the SAM environment had to be made without the runtime's Python."""
    if not (environment() / "bin" / "python3.13").exists():
        pytest.skip("sam build and Lambda's runtime need Python 3.13, and make found none for .venv-sam")


@functools.cache
def build(architecture: str) -> Path:
    """Build the project for an architecture once a test run; the folder with the built functions and layers."""
    workshop = tempfile.TemporaryDirectory(prefix="sam-build-")
    atexit.register(workshop.cleanup)
    output = Path(workshop.name, architecture)
    options = ["--config-env", CONFIG_ENVIRONMENTS[architecture], "--no-cached", "--build-dir", str(output)]
    finished = run("sam", "build", *options)
    assert finished.returncode == 0, finished.stderr
    return output
