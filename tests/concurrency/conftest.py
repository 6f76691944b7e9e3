"""A DynamoDB in a process of its own, as in `tests/integration`."""

import pytest


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every client the same credentials, which are nobody's."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "local")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
