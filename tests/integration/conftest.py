"""A DynamoDB in this process, with the template's table."""

from collections.abc import Iterator

import pytest
from moto import mock_aws

from tests.integration.tables import Tasks, new_client


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every client the same credentials, which are nobody's."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "local")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.fixture
def tasks() -> Iterator[Tasks]:
    """Return a tasks table of its own."""
    with mock_aws():
        yield Tasks(new_client())
