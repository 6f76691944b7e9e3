"""The template as it is deployed, for the tests of this folder."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.template import sam
from tests.template.database import running_database


@pytest.fixture(scope="session")
def template() -> dict[str, Any]:
    return sam.deployed_template()


@pytest.fixture(scope="session")
def resources(template: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = template["Resources"]
    return found


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    with running_database() as endpoint:
        yield endpoint
