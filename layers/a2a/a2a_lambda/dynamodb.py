"""The task store in DynamoDB. How the items look is in `items`, how the calls are made in `tables`.

A follow-up turn, by two writers (time runs down):

    read head (turn 7, revision 12)     read head (turn 7, revision 12)
    put turn#000007                     put turn#000007, the same bytes
    put head if revision 12  → counts
                                        put head if revision 12  → ConflictError, with the head as it stands

Items beside the head are written before the head that makes them count, under keys that nothing else ever has. So
a writer that dies leaves nothing but items that nobody looks for, and DynamoDB deletes those in time.

The `write` of a head names the call that put it: when an answer is lost and botocore sends the write again, the
head that is in its way is the call's own.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from a2a_lambda import items
from a2a_lambda.errors import InvalidParamsError, TaskNotCancelableError, TaskNotFoundError
from a2a_lambda.model import Artifact, Message
from a2a_lambda.outcome import TERMINAL, ArtifactDelta
from a2a_lambda.presentation import MAX_SHOWN_BYTES
from a2a_lambda.store import ConflictError, Page, TaskFilter
from a2a_lambda.tables import Item, RefusedError, Table, batches, number
from a2a_lambda.task import Beside, Content, DirectReply, Head, Request, fold_artifacts, within

INDEX: Final = "tasks-by-owner"

FILTERED_LIMIT: Final = 500
FILTERED_PAGES: Final = 4
"""What a page of a filtered list reads of the index: entries a query, and queries."""

MAX_COUNT: Final = 10_000
"""How many of an owner's tasks are counted."""

CONTENT_GROUP: Final = 10
"""Contents of a task whose pieces are read together."""

FULL_BYTES: Final = MAX_SHOWN_BYTES
"""How much of a history fills an answer, as JSON."""

HISTORY_TURNS: Final = 100
"""Turns of a list's tasks that are read together."""

DAY_SECONDS: Final = 24 * 3600

TERMINAL_VALUES: Final = {f":{state.name.lower()}": {"S": state.value} for state in sorted(TERMINAL, key=str)}
NOT_TERMINAL: Final = f"NOT #state IN ({', '.join(TERMINAL_VALUES)})"

_messages: Final = msgspec.json.Decoder(list[Message])
_deltas: Final = msgspec.json.Decoder(list[ArtifactDelta])
_message: Final = msgspec.json.Decoder(Message)
_request: Final = msgspec.json.Decoder(Request)


class DynamoDBTaskStore:
    """Keeps tasks as `store.TaskStore` says."""

    def __init__(
        self,
        table: Table,
        *,
        retention_days: int,
        window_seconds: int,
        clock: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        """Args: the clock gives milliseconds since the epoch; new_id gives ids never given before.

        The window is how long a message is remembered, so that it is not taken twice; 0 for not at all.
        """
        self._table = table
        self._retention = retention_days * DAY_SECONDS
        self._window = window_seconds
        self._clock = clock
        self._new_id = new_id

    # One task

    def read(self, owner: str, task_id: str) -> Head | None:
        """Return the task as last written (never an older state), or None where it does not exist."""
        return _task(self._visible(self._table.get(items.key(task_id, items.HEAD)), owner))

    def find(self, owner: str, task_id: str, message_key: str) -> tuple[Head | None, bool]:
        """Return the task as `read` does, and whether it has this message already, sent within the window.

        A note says at which turn a writer tried to commit the message. If it was committed, then at that turn or a
        later one: no writer that has not seen it committed tries later. The note is written before the head, so it
        is looked for once more where the head has changed while both were read.
        """
        began, note_key = self._clock(), items.key(task_id, items.note_entry(message_key))
        together = self._table.get_together([items.key(task_id, items.HEAD), note_key])
        found = {item["entry"]["S"]: item for item in together if item["owner"]["S"] == owner}
        head = _task(self._visible(found.get(items.HEAD), owner))
        if head is None:
            return None, False
        note = found.get(items.note_entry(message_key))
        if note is None and head.status_at >= began:
            note = self._table.get(note_key)
        now = self._clock()
        if head.message_key == message_key and self._is_recent(head, now):
            return head, True
        if note is None or int(note["expires_at"]["N"]) <= now // 1000:
            return head, False
        turns = self._range(head, items.turn_entry(int(note["turn"]["N"])), items.turn_entry(head.turn - 1))
        return head, head.message_key == message_key or any(turn["message_key"]["S"] == message_key for turn in turns)

    def _is_recent(self, head: Head, now: int) -> bool:
        """Tell whether the newest turn's message may have copies: within the window, or while the turn is open."""
        return self._window > 0 and (head.deadline is not None or now < head.status_at + self._window * 1000)

    def prepare(self, previous: Head | None, following: Head) -> Callable[[], None]:
        """Write what lies beside `following`, which changes nothing yet, and return the call that makes it count.

        The call puts `following` in the place of `previous`; None says that the task is new. It raises ConflictError
        where the task is no longer at `previous`.
        """
        write = following.write or self._new_id()
        writer = items.Writer(replace(following, retention=following.retention or self._retention), write)
        if previous and following.turn > previous.turn:
            writer.move(previous)
            if self._window:
                writer.note(self._clock() // 1000 + self._window)
        head = writer.head()
        self._table.put_all(writer.beside)

        def commit() -> None:
            try:
                self._table.put(head, **_condition_at(previous))
            except RefusedError as refused:
                if not self._has_counted(following, write, refused.current):
                    raise ConflictError(self._visible(refused.current, following.owner)) from refused

        return commit

    def _has_counted(self, following: Head, write: str, current: Item) -> bool:
        """Tell whether a write that was refused had counted before: its answer was lost, and botocore tried again."""
        if current.get("write") == {"S": write}:
            return True
        head = _task(self._visible(current, following.owner))
        if head is None or head.turn <= following.turn:
            return False
        turn = self._table.get(items.key(following.task_id, items.turn_entry(following.turn)))
        return turn is not None and turn["write"] == {"S": write}

    def begin_again(self, owner: str, first_id: str, candidate_id: str) -> str:
        """Return the id under which a message begins a task again, whose first id is taken since before the window.

        An item beside the first task decides between copies of the message: the first to put it says the id.
        """
        now = self._clock()
        item = {
            **items.key(first_id, items.AGAIN),
            "owner": {"S": owner},
            "again_id": {"S": candidate_id},
            "begun_at": number(now),
            "expires_at": number(now // 1000 + self._window),
        }
        same_owner, missing, over = "#owner = :owner", "attribute_not_exists(task_id)", "begun_at <= :before"
        try:
            self._table.put(
                item,
                ConditionExpression=f"{missing} OR ({same_owner} AND {over})",
                ExpressionAttributeNames={"#owner": "owner"},
                ExpressionAttributeValues={":owner": {"S": owner}, ":before": number(now - self._window * 1000)},
            )
        except RefusedError as refused:
            again_id: str = refused.current["again_id"]["S"]
            return again_id
        return candidate_id

    def keep_reply(self, reply: DirectReply) -> None:
        """Keep a direct reply, for as long as a copy of its message may come.

        Raises:
            ConflictError: the message has come to something already.
        """
        write = self._new_id()
        item = items.reply_item(reply, self._clock() // 1000 + self._window, write)
        try:
            self._table.put(item, **_condition_at(None))
        except RefusedError as refused:
            if refused.current.get("write") != {"S": write}:
                raise ConflictError(self._visible(refused.current, reply.owner)) from refused

    def cancel(self, head: Head, now: int) -> Head:
        """Cancel the task whatever it is doing, and return it.

        The revision is raised, so that a turn that is running loses its next write.

        Raises:
            TaskNotFoundError: it is gone.
            TaskNotCancelableError: it is finished.
        """
        write = self._new_id()
        while True:
            try:
                return self._cancel_at(head, max(now, head.status_at), write)
            except RefusedError as refused:
                current = _task(self._visible(refused.current, head.owner))
                if current is None:
                    raise TaskNotFoundError from refused
                if current.write == write:
                    return current
                if current.state in TERMINAL:
                    state = current.state.value
                    raise TaskNotCancelableError(f"The task is finished ({state})", state=state) from refused
                head = current

    def _cancel_at(self, head: Head, status_at: int, write: str) -> Head:
        """Cancel the task with this time of its state, which never goes back: lists rely on that.

        Raises:
            RefusedError: the task is gone, is finished, or changed its state after that time.
        """
        same_owner, not_expired, not_later = "#owner = :owner", "expires_at > :now", "status_at <= :status_at"
        canceled = self._table.update(
            items.key(head.task_id, items.HEAD),
            UpdateExpression=(
                "SET #state = :canceled, status_at = :status_at, status_order = :status_order, "
                "expires_at = :expires_at, #write = :write, revision = revision + :one, "
                "#sequence = if_not_exists(#sequence, :none) + :one, outbox = :outbox "
                "REMOVE deadline, queued, #request, status_message"
            ),
            ConditionExpression=f"{same_owner} AND {not_expired} AND {not_later} AND {NOT_TERMINAL}",
            ExpressionAttributeNames={
                "#state": "state",
                "#owner": "owner",
                "#write": "write",
                "#sequence": "sequence",
                "#request": "request",
            },
            ExpressionAttributeValues={
                ":outbox": {"S": items.canceled_outbox(status_at)},
                ":none": number(0),
                ":status_at": number(status_at),
                ":status_order": {"S": items.status_order(head.task_id, status_at)},
                ":expires_at": number(items.head_expiry(head, status_at)),
                ":write": {"S": write},
                ":one": number(1),
                ":owner": {"S": head.owner},
                ":now": number(self._clock() // 1000),
                **TERMINAL_VALUES,
            },
            ReturnValues="ALL_NEW",
        )
        return items.read_head(canceled)

    def watch(self, head: Head) -> None:
        """Have webhooks told of the task's changes from now on; nothing happens where it is finished or gone.

        The revision is raised: a turn that is running tells its next updates.
        """
        same_owner, unwatched = "#owner = :owner", "attribute_not_exists(push)"
        try:
            self._table.update(
                items.key(head.task_id, items.HEAD),
                # What is in the outbox has been told of already, by the write that put it there.
                UpdateExpression="SET push = :yes, #sequence = :none, revision = revision + :one REMOVE outbox",
                ConditionExpression=f"{same_owner} AND {unwatched} AND {NOT_TERMINAL}",
                ExpressionAttributeNames={"#owner": "owner", "#state": "state", "#sequence": "sequence"},
                ExpressionAttributeValues={
                    ":owner": {"S": head.owner},
                    ":yes": {"BOOL": True},
                    ":none": number(0),
                    ":one": number(1),
                    **TERMINAL_VALUES,
                },
            )
        except RefusedError:
            return

    def history(self, head: Head, limit: int | None = None) -> list[Message]:
        """Return the task's newest messages, `limit` (at least 1) at most, in chronological order.

        With a limit, what is read ends where an answer is full; an answer could not carry more.
        """
        newest = self._content(head, head.messages)
        messages, size = _messages.decode(newest), len(newest)
        if head.turn > 1 and (limit is None or len(messages) < limit):
            first = 1 if limit is None else max(1, head.turn - (limit - len(messages)))
            turns = self._range(head, items.turn_entry(first), items.turn_entry(head.turn - 1), ScanIndexForward=False)
            contents = (items.read_content(turn["content"]) for turn in turns)
            for content in self._contents(head, contents):
                messages[:0] = _messages.decode(content)
                size += len(content)
                if limit is not None and (len(messages) >= limit or size > FULL_BYTES):
                    break
        return [within(head, message) for message in (messages if limit is None else messages[-limit:])]

    def artifacts(self, head: Head) -> list[Artifact]:
        """Return all artifacts of the task, in the order in which they were first given."""
        contents: list[Content] = []
        if head.artifact_turns:
            turns = self._range(head, items.artifacts_entry(1), items.artifacts_entry(head.artifact_turns))
            contents += [items.read_content(turn["content"]) for turn in turns]
        if head.artifacts is not None:
            contents.append(head.artifacts)
        return fold_artifacts(_deltas.decode(content) for content in self._contents(head, contents))

    def status_message(self, head: Head) -> Message | None:
        """Return what was said with the task's state, unless it is the last message of the history."""
        if head.status_message is None:
            return None
        return within(head, _message.decode(self._content(head, head.status_message)))

    def request(self, head: Head) -> Request:
        """Return what the client sent beside the message of the task's newest turn, while that is under way."""
        return Request() if head.request is None else _request.decode(self._content(head, head.request))

    # Lists

    def page(self, owner: str, wanted: TaskFilter, cursor: str | None, size: int) -> Page:
        """Return the next tasks of a list, `size` at most, the newest change of state first.

        The index is eventually consistent and only says which tasks to read. Its entry counts while the task is
        still where the entry says: one that has moved since stands at its new place, or has been shown there.

        Raises:
            InvalidParamsError: the cursor is not one of a list.
        """
        query = self._index_query(owner, wanted)
        query["Limit"] = FILTERED_LIMIT if "FilterExpression" in query else size + 1
        if cursor is not None and not items.PLACE.fullmatch(cursor):
            raise InvalidParamsError.at("pageToken", "is not a page token of this server")
        if cursor is not None and cursor < query["ExpressionAttributeValues"][":since"]["S"]:
            return Page([], None)  # What is left has expired. DynamoDB refuses to start outside of a query.
        if cursor is not None:
            query["ExclusiveStartKey"] = items.index_key(owner, cursor)
        found: list[str] = []
        behind = None
        for _, answer in zip(range(FILTERED_PAGES), self._table.pages(**query), strict=False):
            found += [entry["status_order"]["S"] for entry in answer["Items"]]
            behind = answer.get("LastEvaluatedKey")
            if len(found) > size:
                break
        entries = list(self._listed(owner, wanted, found[:size]))
        if len(found) > size:
            return Page(entries, found[size - 1])
        return Page(entries, behind["status_order"]["S"] if behind else None)

    def place(self, head: Head) -> str:
        """Return the cursor behind a task, where lists have it."""
        return items.status_order(head.task_id, head.status_at)

    def count(self, owner: str, wanted: TaskFilter) -> int:
        """Return how many tasks a list has, counted among the owner's newest 10,000."""
        total = examined = 0
        for answer in self._table.pages(**self._index_query(owner, wanted), Select="COUNT", Limit=MAX_COUNT):
            total += answer["Count"]
            examined += answer["ScannedCount"]
            if examined >= MAX_COUNT:
                break
        return min(total, MAX_COUNT)

    def histories(self, heads: Sequence[Head], limit: int) -> Iterator[list[Message]]:
        """Yield the newest messages of each task, `limit` (at least 1) at most: earlier turns by their keys."""
        for group in batches(heads, max(1, HISTORY_TURNS // limit)):
            newest = [_messages.decode(self._content(head, head.messages)) for head in group]
            keys = [
                items.key(head.task_id, items.turn_entry(turn))
                for head, messages in zip(group, newest, strict=True)
                for turn in range(max(1, head.turn - (limit - len(messages))), head.turn)
            ]
            turns = {(item["task_id"]["S"], item["entry"]["S"]): item for item in self._owned(group[0].owner, keys)}
            for head, messages in zip(group, newest, strict=True):
                turn, size = head.turn - 1, 0
                while turn and len(messages) < limit and size <= FULL_BYTES:
                    kept = turns[head.task_id, items.turn_entry(turn)]
                    content = self._content(head, items.read_content(kept["content"]))
                    messages[:0] = _messages.decode(content)
                    turn, size = turn - 1, size + len(content)
                yield [within(head, message) for message in messages[-limit:]]

    def _index_query(self, owner: str, wanted: TaskFilter) -> dict[str, Any]:
        """Return the arguments of a query for an owner's tasks that are not expired and match the filter."""
        not_expired = self._clock() - self._retention * 1000 + 1
        since = not_expired if wanted.since is None else max(not_expired, wanted.since)
        names = {"#owner": "owner"}
        values: dict[str, Item] = {":owner": {"S": owner}, ":since": {"S": items.status_order("", since)}}
        clauses = []
        if wanted.context_id:
            clauses.append("context_id = :context_id")
            values[":context_id"] = {"S": wanted.context_id}
        if wanted.state:
            clauses.append("#state = :state")
            names["#state"] = "state"
            values[":state"] = {"S": wanted.state.value}
        return {
            "IndexName": INDEX,
            "ScanIndexForward": False,
            "KeyConditionExpression": "#owner = :owner AND status_order >= :since",
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
            **({"FilterExpression": " AND ".join(clauses)} if clauses else {}),
        }

    def _listed(self, owner: str, wanted: TaskFilter, places: Sequence[str]) -> Iterator[tuple[Head, str]]:
        """Yield the tasks that are still where the index says, in its order.

        The index may name a task twice, at its old place and at its new one, where two queries made the page.
        """
        keys = [items.key(task_id, items.HEAD) for task_id in dict.fromkeys(map(items.task_of, places))]
        heads = {item["task_id"]["S"]: _task(self._visible(item, owner)) for item in self._owned(owner, keys)}
        for place in places:
            task_id = items.task_of(place)
            head = heads.get(task_id)
            if head and items.status_order(task_id, head.status_at) == place and wanted.state in (None, head.state):
                yield head, place

    # Items

    def _visible(self, item: Item | None, owner: str) -> Head | DirectReply | None:
        """Return an item as what it holds, unless it is missing, another owner's or expired."""
        if not item or item["owner"]["S"] != owner or int(item["expires_at"]["N"]) <= self._clock() // 1000:
            return None
        return items.read_begun(item)

    def _owned(self, owner: str, keys: Sequence[Item]) -> Iterator[Item]:
        return (item for item in self._table.get_all(keys) if item["owner"]["S"] == owner)

    def _range(self, head: Head, first: str, last: str, **more: Any) -> Iterator[Item]:
        """Yield a task's items from one entry to another, both included."""
        if first > last:
            return iter(())
        return self._table.query(
            ConsistentRead=True,
            KeyConditionExpression="task_id = :task_id AND entry BETWEEN :first AND :last",
            FilterExpression="#owner = :owner",
            ExpressionAttributeNames={"#owner": "owner"},
            ExpressionAttributeValues={
                ":task_id": {"S": head.task_id},
                ":first": {"S": first},
                ":last": {"S": last},
                ":owner": {"S": head.owner},
            },
            **more,
        )

    def _content(self, head: Head, content: Content) -> bytes:
        """Return content as bytes, put together from its pieces where it lies beside the head."""
        return next(self._contents(head, [content]))

    def _contents(self, head: Head, contents: Iterable[Content]) -> Iterator[bytes]:
        """Yield contents as bytes, in their order. The pieces of several are read together."""
        waiting = iter(contents)
        while group := list(islice(waiting, CONTENT_GROUP)):
            entries = [
                entry for content in group if isinstance(content, Beside) for entry in items.piece_entries(content)
            ]
            found = self._owned(head.owner, [items.key(head.task_id, entry) for entry in entries])
            pieces: dict[str, bytes] = {item["entry"]["S"]: item["content"]["B"] for item in found}
            for content in group:
                if isinstance(content, bytes):
                    yield content
                else:
                    yield b"".join(pieces[entry] for entry in items.piece_entries(content))


def _task(begun: Head | DirectReply | None) -> Head | None:
    return begun if isinstance(begun, Head) else None


def _condition_at(previous: Head | None) -> dict[str, Any]:
    """Return the arguments that make a write count only while the task is at `previous`."""
    if previous is None:
        return {"ConditionExpression": "attribute_not_exists(task_id)"}
    same_owner, same_revision = "#owner = :owner", "revision = :revision"
    return {
        "ConditionExpression": f"{same_owner} AND {same_revision} AND {NOT_TERMINAL}",
        "ExpressionAttributeNames": {"#owner": "owner", "#state": "state"},
        "ExpressionAttributeValues": {
            ":owner": {"S": previous.owner},
            ":revision": number(previous.revision),
            **TERMINAL_VALUES,
        },
    }
