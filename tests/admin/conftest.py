"""A DynamoDB in this process."""

from collections.abc import Iterator

import pytest
from moto import mock_aws

from tests.admin.deployment import Deployed


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every client the same credentials, which are nobody's, and take away what the terminal has set."""
    for name in (
        "CALLER",
        "DAYS",
        "KEY",
        "OWNER",
        "STACK",
        "DYNAMODB_ENDPOINT",
        "SQS_ENDPOINT",
        "DB_PORT",
        "AWS_REGION",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "local")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.fixture
def deployed() -> Iterator[Deployed]:
    with mock_aws():
        yield Deployed()
