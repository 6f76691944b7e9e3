"""The task store in DynamoDB: one table, `task_id` (partition key) and `entry` (sort key).

    entry                     holds
    head                      the task's state and its newest turn: the item whose write makes a change count
    turn#000001 …             the messages of each earlier turn
    artifacts#000001 …        what each earlier turn that left artifacts did to them
    content#<write>#<what>#0… content too large for the item that it belongs to, in pieces

A follow-up turn, seen by three writers (time runs down):

    read head (turn 7, revision 12)     read head (turn 7, revision 12)
    put turn#000007                     put turn#000007, the same bytes
    put head if revision 12  → counts
                                        put head if revision 12  → ConflictError, with the head as it stands

Items beside the head are written before the head that makes them count, under keys that no other content ever
has. So a writer that dies leaves nothing but items that nobody looks for, and DynamoDB deletes those in time.

Content is kept as JSON bytes, not as DynamoDB's own types: numbers come back as they were. The `write` of a head
names the call that put it: when an answer is lost and botocore sends the write again, the head that is in its
way is the call's own.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError

from a2a_lambda.errors import TaskNotCancelableError, TaskNotFoundError, UnavailableError
from a2a_lambda.model import Artifact, Message, TaskState
from a2a_lambda.store import ConflictError
from a2a_lambda.task import (
    MESSAGE_WINDOW,
    TERMINAL,
    ArtifactDelta,
    Beside,
    Content,
    Head,
    fold_artifacts,
    within,
)
from a2a_lambda.timestamps import format_timestamp

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Item = Mapping[str, Any]
"""An item, a key or an attribute as the low-level client has it: {"task_id": {"S": "…"}, …}."""

RIDE_BYTES: Final = 8 * 1024
"""Content up to this size rides in the item that it belongs to."""

PIECE_BYTES: Final = 300_000
"""The size of a piece of larger content. An item holds 400 KB."""

BATCH_WRITES: Final = 25
BATCH_READS: Final = 40
"""Items a call. DynamoDB takes 25 and 100; 40 pieces stay under its 16 MB."""

BATCH_ATTEMPTS: Final = 6
BACKOFF_SECONDS: Final = 0.05

DAY_SECONDS: Final = 24 * 3600

TRY_AGAIN: Final = frozenset(
    {
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestTimeout",
        "ServiceUnavailable",
        "ThrottlingException",
        "TransactionInProgressException",
    }
)
"""The error codes that say nothing about the request, only about the moment."""

_messages: Final = msgspec.json.Decoder(list[Message])
_deltas: Final = msgspec.json.Decoder(list[ArtifactDelta])
_message: Final = msgspec.json.Decoder(Message)


class DynamoDBTaskStore:
    """Keeps tasks as `store.TaskStore` says."""

    def __init__(
        self,
        client: "DynamoDBClient",
        table: str,
        *,
        retention_days: int,
        clock: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        """Args: the clock gives milliseconds since the epoch; new_id gives ids never given before."""
        self._client = client
        self._table = table
        self._retention = retention_days * DAY_SECONDS
        self._clock = clock
        self._new_id = new_id

    def read(self, owner: str, task_id: str) -> Head | None:
        """Return the task as last written (never an older state), or None where it does not exist."""
        with _unavailable():
            answer = self._client.get_item(TableName=self._table, Key=_key(task_id, "head"), ConsistentRead=True)
        return self._visible(answer.get("Item"), owner)

    def commit(self, previous: Head | None, following: Head) -> None:
        """Put `following` in the place of `previous`; None says that the task is new.

        Raises:
            ConflictError: the task is no longer at `previous`.
        """
        write = self._new_id()
        beside: list[Item] = []
        if previous and following.turn > previous.turn:
            self._move(previous, write, beside)
        head = self._head_item(following, write, beside)
        self._put_beside(beside)
        try:
            self._write_head(self._client.put_item, write, Item=head, **_condition_at(previous))
        except _RefusedError as refused:
            raise ConflictError(self._visible(refused.current, following.owner)) from refused

    def cancel(self, owner: str, task_id: str, now: int) -> Head:
        """Cancel the task whatever it is doing, and return it.

        The revision is raised, so that a turn that is running loses its next write.

        Raises:
            TaskNotFoundError: it does not exist.
            TaskNotCancelableError: it is finished.
        """
        write = self._new_id()
        try:
            item = self._write_head(
                self._client.update_item,
                write,
                Key=_key(task_id, "head"),
                UpdateExpression=(
                    "SET #state = :canceled, status_at = :status_at, status_order = :status_order, "
                    "expires_at = :expires_at, #write = :write, revision = revision + :one "
                    "REMOVE deadline, status_message"
                ),
                ConditionExpression=f"#owner = :owner AND expires_at > :now AND {NOT_TERMINAL}",
                ExpressionAttributeNames={"#state": "state", "#owner": "owner", "#write": "write"},
                ExpressionAttributeValues={
                    ":status_at": _number(now),
                    ":status_order": {"S": _status_order(task_id, now)},
                    ":expires_at": self._head_expiry(now),
                    ":write": {"S": write},
                    ":one": _number(1),
                    ":owner": {"S": owner},
                    ":now": _number(now // 1000),
                    **TERMINAL_VALUES,
                },
                ReturnValues="ALL_NEW",
            )
        except _RefusedError as refused:
            head = self._visible(refused.current, owner)
            if head is None:
                raise TaskNotFoundError from refused
            raise TaskNotCancelableError(
                f"The task is finished ({head.state.value})", state=head.state.value
            ) from refused
        return _head(item)

    def history(self, head: Head, limit: int | None = None) -> list[Message]:
        """Return the task's newest messages, `limit` (at least 1) at most, in chronological order."""
        messages = _messages.decode(self._content(head, head.messages))
        earlier = head.turn - 1
        if earlier and (limit is None or len(messages) < limit):
            first = 1 if limit is None else max(1, head.turn - (limit - len(messages)))
            for content in self._query(head, "turn", first, earlier, newest_first=True):
                messages[:0] = _messages.decode(self._content(head, content))
                if limit is not None and len(messages) >= limit:
                    break
        return [within(head, message) for message in (messages if limit is None else messages[-limit:])]

    def artifacts(self, head: Head) -> list[Artifact]:
        """Return all artifacts of the task, in the order in which they were first given."""
        contents: list[Content] = []
        if head.artifact_turns:
            contents += self._query(head, "artifacts", 1, head.artifact_turns)
        if head.artifacts is not None:
            contents.append(head.artifacts)
        return fold_artifacts(_deltas.decode(self._content(head, content)) for content in contents)

    def status_message(self, head: Head) -> Message | None:
        """Return what was said with the task's state, unless it is the last message of the history."""
        if head.status_message is None:
            return None
        return within(head, _message.decode(self._content(head, head.status_message)))

    # Writing

    def _head_item(self, head: Head, write: str, beside: list[Item]) -> Item:
        """Return the item for a head; pieces of content too large for it are added to `beside`."""
        item: dict[str, Any] = {
            **_key(head.task_id, "head"),
            "owner": {"S": head.owner},
            "context_id": {"S": head.context_id},
            "state": {"S": head.state.value},
            "status_at": _number(head.status_at),
            "status_order": {"S": _status_order(head.task_id, head.status_at)},
            "created_at": _number(head.created_at),
            "expires_at": self._head_expiry(head.status_at),
            "revision": _number(head.revision),
            "turn": _number(head.turn),
            "artifact_turns": _number(head.artifact_turns),
            "write": {"S": write},
        }
        if head.deadline is not None:
            item["deadline"] = _number(head.deadline)
        for name in CONTENT_OF_A_HEAD:
            content: Content | None = getattr(head, name)
            if content is not None:
                item[name] = self._place(head, content, f"content#{write}#{name}", beside)
        return item

    def _move(self, head: Head, write: str, beside: list[Item]) -> None:
        """Add to `beside` the items that keep a head's newest turn once the next turn takes its place."""
        kept = [(f"turn#{head.turn:06}", head.messages), (f"artifacts#{head.artifact_turns + 1:06}", head.artifacts)]
        for entry, content in kept:
            if content is not None:
                placed = self._place(head, content, f"content#{write}#{entry}", beside)
                beside.append(self._beside_item(head, entry, placed))

    def _place(self, head: Head, content: Content, key: str, beside: list[Item]) -> Item:
        """Return content as an attribute: itself while small, or where it lies, with its pieces in `beside`."""
        if isinstance(content, Beside):
            return {"L": [{"S": content.key}, _number(content.items)]}
        if len(content) <= RIDE_BYTES:
            return {"B": content}
        pieces = [content[at : at + PIECE_BYTES] for at in range(0, len(content), PIECE_BYTES)]
        beside += [self._beside_item(head, f"{key}#{i}", {"B": piece}) for i, piece in enumerate(pieces)]
        return {"L": [{"S": key}, _number(len(pieces))]}

    def _beside_item(self, head: Head, entry: str, content: Item) -> Item:
        expires_at = (head.created_at + MESSAGE_WINDOW) // 1000 + self._retention
        return {
            **_key(head.task_id, entry),
            "owner": {"S": head.owner},
            "expires_at": _number(expires_at),
            "content": content,
        }

    def _put_beside(self, items: Sequence[Item]) -> None:
        for batch in _batches(items, BATCH_WRITES):
            left: Any = {self._table: [{"PutRequest": {"Item": item}} for item in batch]}
            for wait in _backoff():
                with _unavailable():
                    left = self._client.batch_write_item(RequestItems=left)["UnprocessedItems"]
                if not left:
                    break
                wait()

    def _write_head(self, call: Callable[..., Any], write: str, **arguments: Any) -> Item:
        """Write a head under a condition, and return the attributes that the call was asked for.

        Raises:
            _RefusedError: the condition does not hold, and not because this very call has written already.
        """
        try:
            with _unavailable():
                answer: dict[str, Item] = call(TableName=self._table, ReturnValuesOnConditionCheckFailure="ALL_OLD", **arguments)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            current = cast("Item", error.response.get("Item", {}))
            if current.get("write") == {"S": write}:
                return current
            raise _RefusedError(current) from error
        return answer.get("Attributes", {})

    def _head_expiry(self, status_at: int) -> Item:
        return _number(status_at // 1000 + self._retention)

    # Reading

    def _visible(self, item: Item | None, owner: str) -> Head | None:
        """Return an item as a head, unless it is missing, another owner's or expired."""
        if not item or item["owner"]["S"] != owner or int(item["expires_at"]["N"]) <= self._clock() // 1000:
            return None
        return _head(item)

    def _query(self, head: Head, kind: str, first: int, last: int, *, newest_first: bool = False) -> Iterator[Content]:
        """Yield the content of a task's items `kind#first` to `kind#last`."""
        arguments: dict[str, Any] = {
            "TableName": self._table,
            "ConsistentRead": True,
            "ScanIndexForward": not newest_first,
            "KeyConditionExpression": "task_id = :task_id AND entry BETWEEN :first AND :last",
            "FilterExpression": "#owner = :owner",
            "ExpressionAttributeNames": {"#owner": "owner"},
            "ExpressionAttributeValues": {
                ":task_id": {"S": head.task_id},
                ":first": {"S": f"{kind}#{first:06}"},
                ":last": {"S": f"{kind}#{last:06}"},
                ":owner": {"S": head.owner},
            },
        }
        while True:
            with _unavailable():
                page = self._client.query(**arguments)
            for item in page["Items"]:
                yield _content(item["content"])
            if "LastEvaluatedKey" not in page:
                return
            arguments["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _content(self, head: Head, content: Content) -> bytes:
        """Return content as bytes, put together from its pieces where it lies beside the head."""
        if isinstance(content, bytes):
            return content
        entries = [f"{content.key}#{index}" for index in range(content.items)]
        pieces: dict[str, bytes] = {}
        for batch in _batches(entries, BATCH_READS):
            left: Any = {self._table: {"Keys": [_key(head.task_id, entry) for entry in batch], "ConsistentRead": True}}
            for wait in _backoff():
                with _unavailable():
                    answer = self._client.batch_get_item(RequestItems=left)
                for item in answer["Responses"].get(self._table, []):
                    if item["owner"]["S"] == head.owner:
                        pieces[item["entry"]["S"]] = item["content"]["B"]
                left = answer["UnprocessedKeys"]
                if not left:
                    break
                wait()
        return b"".join(pieces[entry] for entry in entries)


class _RefusedError(Exception):
    """A conditional write found its condition broken. `current` is the item as it stands, {} if there is none."""

    def __init__(self, current: Item) -> None:
        self.current = current
        super().__init__("the condition does not hold")


TERMINAL_VALUES: Final = {f":{state.name.lower()}": {"S": state.value} for state in sorted(TERMINAL, key=str)}
NOT_TERMINAL: Final = f"NOT #state IN ({', '.join(TERMINAL_VALUES)})"
CONTENT_OF_A_HEAD: Final = ("messages", "artifacts", "status_message")


def _condition_at(previous: Head | None) -> Item:
    """Return the arguments that make a write count only while the task is at `previous`."""
    if previous is None:
        return {"ConditionExpression": "attribute_not_exists(task_id)"}
    return {
        "ConditionExpression": f"#owner = :owner AND revision = :revision AND {NOT_TERMINAL}",
        "ExpressionAttributeNames": {"#owner": "owner", "#state": "state"},
        "ExpressionAttributeValues": {
            ":owner": {"S": previous.owner},
            ":revision": _number(previous.revision),
            **TERMINAL_VALUES,
        },
    }


def _head(item: Item) -> Head:
    contents: dict[str, Any] = {name: _content(item[name]) for name in CONTENT_OF_A_HEAD if name in item}
    return Head(
        task_id=item["task_id"]["S"],
        owner=item["owner"]["S"],
        context_id=item["context_id"]["S"],
        state=TaskState(item["state"]["S"]),
        status_at=int(item["status_at"]["N"]),
        created_at=int(item["created_at"]["N"]),
        revision=int(item["revision"]["N"]),
        turn=int(item["turn"]["N"]),
        artifact_turns=int(item["artifact_turns"]["N"]),
        deadline=int(item["deadline"]["N"]) if "deadline" in item else None,
        **contents,
    )


def _content(attribute: Item) -> Content:
    if "B" in attribute:
        inline: bytes = attribute["B"]
        return inline
    key, items = attribute["L"]
    return Beside(key["S"], int(items["N"]))


def _key(task_id: str, entry: str) -> Item:
    return {"task_id": {"S": task_id}, "entry": {"S": entry}}


def _number(value: int) -> Item:
    return {"N": str(value)}


def _status_order(task_id: str, status_at: int) -> str:
    """Return the index's sort key: by the status's time, then by id, so that no two tasks are equal."""
    return f"{format_timestamp(status_at)}#{task_id}"


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (items[at : at + size] for at in range(0, len(items), size))


def _backoff() -> Iterator[Callable[[], None]]:
    """Yield a wait for each try of a batch that DynamoDB carried out in part, a longer one each time.

    Raises:
        UnavailableError: the tries are used up.
    """
    for attempt in range(BATCH_ATTEMPTS):
        yield partial(_pause, BACKOFF_SECONDS * 2**attempt)
    raise UnavailableError


def _pause(longest: float) -> None:
    time.sleep(random.uniform(0, longest))  # noqa: S311 - spreads writers, hides nothing


@contextmanager
def _unavailable() -> Iterator[None]:
    """Translate what DynamoDB says when the moment is wrong and not the request."""
    try:
        yield
    except (BotoConnectionError, HTTPClientError) as error:
        raise UnavailableError from error
    except ClientError as error:
        if error.response["Error"]["Code"] in TRY_AGAIN or error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500:
            raise UnavailableError from error
        raise
