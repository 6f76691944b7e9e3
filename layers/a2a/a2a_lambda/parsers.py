"""Reads DynamoDB's answers to the calls that this server makes, with msgspec.

botocore looks at each attribute of each item ten times, once for each type that it might have. How an answer is read
is a part of a session that may be exchanged, by `Session.register_component`; a parser has one method, `parse`.

What is not an answer to such a call, or not as it should be, is left to botocore.
"""

from typing import Any, Final, TypedDict

import msgspec
from botocore.parsers import JSONParser, ResponseParserFactory

PROTOCOL: Final = "json"
OK: Final = 200

READ: Final = frozenset(
    {
        "GetItemOutput",
        "PutItemOutput",
        "UpdateItemOutput",
        "DeleteItemOutput",
        "QueryOutput",
        "BatchGetItemOutput",
        "BatchWriteItemOutput",
    }
)
"""The answers that `Answer` describes, by the names that botocore has for them."""


class Value(TypedDict, total=False):
    """An attribute's value: one of these."""

    S: str
    N: str
    B: bytes
    BOOL: bool
    NULL: bool
    SS: list[str]
    NS: list[str]
    BS: list[bytes]
    L: "list[Value]"
    M: "dict[str, Value]"


Item = dict[str, Value]


class KeysAndAttributes(TypedDict, total=False):
    """What was not read of a batch."""

    Keys: list[Item]
    AttributesToGet: list[str]
    ConsistentRead: bool
    ProjectionExpression: str
    ExpressionAttributeNames: dict[str, str]


class PutRequest(TypedDict, total=False):
    """An item that was not put."""

    Item: Item


class DeleteRequest(TypedDict, total=False):
    """An item that was not deleted."""

    Key: Item


class WriteRequest(TypedDict, total=False):
    """What was not written of a batch."""

    PutRequest: PutRequest
    DeleteRequest: DeleteRequest


class Answer(TypedDict, total=False):
    """All that there may be in an answer. What DynamoDB may ever add is left out, as botocore does."""

    Item: Item
    Items: list[Item]
    Attributes: Item
    Responses: dict[str, list[Item]]
    Count: int
    ScannedCount: int
    LastEvaluatedKey: Item
    UnprocessedKeys: dict[str, KeysAndAttributes]
    UnprocessedItems: dict[str, list[WriteRequest]]
    ConsumedCapacity: Any
    ItemCollectionMetrics: Any


_answers: Final = msgspec.json.Decoder(Answer)


class FastParser(JSONParser):  # type: ignore[misc] # botocore has no types
    """Reads what botocore's own parser does, to the same result."""

    def parse(self, response: Any, shape: Any) -> Any:
        """Return an answer as botocore's interface says: a dictionary, with `ResponseMetadata`."""
        if response["status_code"] != OK or shape is None or shape.name not in READ:
            return super().parse(response, shape)
        try:
            answer = _answers.decode(response["body"])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return super().parse(response, shape)
        # Without a shape there is nothing in it but the metadata.
        return {**answer, **super().parse(response, None)}


class FastParsers(ResponseParserFactory):  # type: ignore[misc] # as above
    """Gives each call the same parser, which keeps nothing of one."""

    def __init__(self) -> None:
        super().__init__()
        self._parser = FastParser()

    def create_parser(self, protocol_name: str) -> Any:
        """Return what reads answers of a protocol."""
        return self._parser if protocol_name == PROTOCOL else super().create_parser(protocol_name)
