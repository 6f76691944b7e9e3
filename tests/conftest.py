"""What every kind of test may use."""

from collections.abc import Iterator

import pytest

from local.comparisons import make_fast
from local.database import DatabaseProcess
from local.server import listen

make_fast()


@pytest.fixture(scope="session")
def dynamodb() -> Iterator[str]:
    """The address of an embedded DynamoDB, the same for all tests: each makes tables of its own."""
    database = DatabaseProcess(listen(0))
    yield database.endpoint
    database.stop()
