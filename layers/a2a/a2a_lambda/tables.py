"""DynamoDB's calls as this server makes them: consistent, whole, and with its errors told apart.

An item, a key or an attribute is what the low-level client has: {"task_id": {"S": "…"}, …}.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from botocore.exceptions import ClientError

from a2a_lambda import tally
from a2a_lambda.errors import UnavailableError
from a2a_lambda.outages import unavailable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Item = Mapping[str, Any]

BATCH_PUTS: Final = 25
BATCH_GETS: Final = 100
"""Items a call, as many as DynamoDB takes. What it leaves undone of a batch is asked for again."""

BATCH_ATTEMPTS: Final = 6
BACKOFF_SECONDS: Final = 0.05

TRY_AGAIN_TOGETHER: Final = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
"""Why writes that go together are canceled at a wrong moment."""

METERED: Final[Any] = {"ReturnConsumedCapacity": "TOTAL"}


class RefusedError(Exception):
    """A conditional write found its condition broken. `current` is the item as it stands, {} if there is none."""

    def __init__(self, current: Item) -> None:
        self.current = current
        super().__init__("the condition does not hold")


class CanceledError(Exception):
    """Writes that go together found a condition broken. `refused` has the place of each whose own was."""

    def __init__(self, refused: Sequence[int]) -> None:
        self.refused = refused
        super().__init__("a condition does not hold")


class Table:
    """One table. Every call may raise UnavailableError."""

    def __init__(self, client: "DynamoDBClient", name: str) -> None:
        """Args: the name is the table's, as deployed."""
        self._client = client
        self._name = name

    def get(self, key: Item) -> Item | None:
        """Return an item as last written, None where there is none."""
        with unavailable():
            answer = self._client.get_item(TableName=self._name, Key=key, ConsistentRead=True, **METERED)
        tally.current().add_call(answer)
        return answer.get("Item")

    def put(self, item: Item, **condition: Any) -> None:
        """Write an item whole.

        Raises:
            RefusedError: the condition does not hold.
        """
        self._write(self._client.put_item, Item=item, **condition)

    def update(self, key: Item, **update: Any) -> Item:
        """Change an item, and return the attributes that `ReturnValues` asks for.

        Raises:
            RefusedError: the condition does not hold.
        """
        return self._write(self._client.update_item, Key=key, **update)

    def delete(self, key: Item, **condition: Any) -> Item:
        """Delete an item, if it is there, and return the attributes that `ReturnValues` asks for.

        Raises:
            RefusedError: the condition does not hold.
        """
        return self._write(self._client.delete_item, Key=key, **condition)

    def write_together(self, *writes: Mapping[str, Mapping[str, Any]]) -> None:
        """Carry out writes of several items, all or none, for twice their price: {"Delete": {"Key": …}, …}.

        Raises:
            CanceledError: conditions do not hold.
        """
        request: Any = [
            {kind: {"TableName": self._name, **arguments} for kind, arguments in write.items()} for write in writes
        ]
        try:
            with unavailable():
                answer = self._client.transact_write_items(TransactItems=request, **METERED)
        except ClientError as error:
            if error.response["Error"]["Code"] != "TransactionCanceledException":
                raise
            tally.current().add_call({})
            codes = [reason.get("Code") for reason in cast("Any", error.response)["CancellationReasons"]]
            if refused := [place for place, code in enumerate(codes) if code == "ConditionalCheckFailed"]:
                raise CanceledError(refused) from error
            if set(codes) & TRY_AGAIN_TOGETHER:
                raise UnavailableError from error
            raise
        tally.current().add_call(answer)

    def put_all(self, items: Sequence[Item]) -> None:
        """Write items whole, in no order."""
        self._write_all([{"PutRequest": {"Item": item}} for item in items])

    def delete_all(self, keys: Sequence[Item]) -> None:
        """Delete items, in no order."""
        self._write_all([{"DeleteRequest": {"Key": key}} for key in keys])

    def get_all(self, keys: Sequence[Item]) -> list[Item]:
        """Return the items with these keys that there are, in any order, as last written."""
        items: list[Item] = []
        for batch in batches(keys, BATCH_GETS):
            left: Any = {self._name: {"Keys": batch, "ConsistentRead": True}}
            for wait in _backoff():
                with unavailable():
                    answer = self._client.batch_get_item(RequestItems=left, **METERED)
                tally.current().add_call(answer)
                items += answer["Responses"].get(self._name, [])
                left = answer["UnprocessedKeys"]
                if not left:
                    break
                wait()
        return items

    def get_together(self, keys: Sequence[Item]) -> list[Item]:
        """Return items as `get_all` does, all from one call: they are no further apart than its reads."""
        for wait in _backoff():
            with unavailable():
                request: Any = {self._name: {"Keys": keys, "ConsistentRead": True}}
                answer = self._client.batch_get_item(RequestItems=request, **METERED)
            tally.current().add_call(answer)
            if not answer["UnprocessedKeys"]:
                return list(answer["Responses"].get(self._name, []))
            wait()
        raise UnavailableError

    def query(self, **arguments: Any) -> Iterator[Item]:
        """Yield the items that a query finds, over all its pages."""
        for page in self.pages(**arguments):
            yield from page["Items"]

    def pages(self, **arguments: Any) -> Iterator[Item]:
        """Yield the answers of a query, page after page: `Items`, `Count`, `ScannedCount`, `LastEvaluatedKey`."""
        while True:
            with unavailable():
                page = cast("Item", self._client.query(TableName=self._name, **arguments, **METERED))
            tally.current().add_call(page)
            yield page
            if "LastEvaluatedKey" not in page:
                return
            arguments["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _write(self, call: Callable[..., Any], **arguments: Any) -> Item:
        try:
            with unavailable():
                answer: dict[str, Item] = call(
                    TableName=self._name, ReturnValuesOnConditionCheckFailure="ALL_OLD", **METERED, **arguments
                )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            tally.current().add_call({})
            raise RefusedError(cast("Item", error.response.get("Item", {}))) from error
        tally.current().add_call(answer)
        return answer.get("Attributes", {})

    def _write_all(self, requests: Sequence[Any]) -> None:
        for batch in batches(requests, BATCH_PUTS):
            left: Any = {self._name: batch}
            for wait in _backoff():
                with unavailable():
                    answer = self._client.batch_write_item(RequestItems=left, **METERED)
                tally.current().add_call(answer)
                left = answer["UnprocessedItems"]
                if not left:
                    break
                wait()


def number(value: int) -> Item:
    """Return a whole number as an attribute."""
    return {"N": str(value)}


def batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Yield a sequence in pieces of a size, the last one shorter."""
    return (items[at : at + size] for at in range(0, len(items), size))


def _backoff() -> Iterator[Callable[[], None]]:
    """Yield a wait for each try of a batch that DynamoDB carried out in part, a longer one each time.

    The last one raises UnavailableError: the tries are used up.
    """
    for attempt in range(BATCH_ATTEMPTS - 1):
        yield partial(_pause, BACKOFF_SECONDS * 2**attempt)
    yield _give_up


def _give_up() -> None:
    raise UnavailableError


def _pause(longest: float) -> None:
    time.sleep(random.uniform(0, longest))  # noqa: S311 - spreads writers, hides nothing
