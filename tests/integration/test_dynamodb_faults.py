"""A DynamoDB that is down, throttles, does half of the work, or does it and cannot say so."""

import json
import socket
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError

from a2a_lambda import tables
from a2a_lambda.agent import Turn, Updates, artifact, input_required
from a2a_lambda.errors import TaskNotCancelableError, UnavailableError
from a2a_lambda.jsonrpc import Endpoint
from a2a_lambda.model import TaskState
from a2a_lambda.store import ConflictError
from tests.integration.tables import Tasks, error, new_client, response
from tests.unit.factories import (
    VALIDATOR,
    Json,
    Server,
    agent,
    asking,
    call,
    ended,
    followed,
    in_state,
    message,
    send_params,
    texts,
    yielding,
)

URL: Final = "http://dynamodb"
MOMENTARY: Final = {
    "throttled": lambda: error("ProvisionedThroughputExceededException"),
    "throttled by the control plane": lambda: error("ThrottlingException"),
    "over the account's limit": lambda: error("RequestLimitExceeded"),
    "an internal error": lambda: error("InternalServerError", 500),
    "unavailable": lambda: error("ServiceUnavailable", 503),
    "a proxy's error": lambda: error("Whatever", 502),
    "no connection": lambda: EndpointConnectionError(endpoint_url=URL),
    "no connection in time": lambda: ConnectTimeoutError(endpoint_url=URL),
    "no answer in time": lambda: ReadTimeoutError(endpoint_url=URL),
}
PERMANENT: Final = ["AccessDeniedException", "ResourceNotFoundException", "ValidationException"]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try a batch again without a pause."""
    monkeypatch.setattr(tables, "BACKOFF_SECONDS", 0)


def ask(served: Server, method: str, params: Json) -> Json:
    """Call a method over JSON-RPC, and return the response object."""
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    answer = Endpoint(served.operations, VALIDATOR, max_body_bytes=10**6).answer(body, version="1.0", admit=call)
    return msgspec.json.decode(answer.body)


def requests(task_id: str) -> dict[str, tuple[str, Json]]:
    """Return a request for each of DynamoDB's operations, which it makes first."""
    return {
        "PutItem": ("SendMessage", send_params()),
        "GetItem": ("GetTask", {"id": task_id}),
        "UpdateItem": ("CancelTask", {"id": task_id}),
        "BatchWriteItem": ("SendMessage", send_params(parts=[{"text": "x" * 9000}])),
        "BatchGetItem": ("GetTask", {"id": task_id}),
        "Query": ("GetTask", {"id": task_id}),
    }


OPERATIONS: Final = list(requests(""))
TRIES: Final = {"PutItem": 2}
"""How often a call is made that is not answered: the one that makes a write count is tried a second time."""


def conversation(tasks: Tasks) -> tuple[Server, str]:
    """Return a server and a task, the reading of which takes every kind of read."""
    served = tasks.serve(asking())
    task_id = served.task("x" * 9000).id
    served.task("x" * 9000, to=task_id)
    return served, task_id


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("fault", MOMENTARY.values(), ids=MOMENTARY)
def test_a_dynamodb_that_cannot_answer_now_is_told_with_a_time_to_retry(
    tasks: Tasks, operation: str, fault: Callable[[], Any]
) -> None:
    served, task_id = conversation(tasks)
    before = tasks.all_items()
    tasks.answer(operation, *[fault() for _ in range(TRIES.get(operation, 1))])

    assert ask(served, *requests(task_id)[operation])["error"] == {
        "code": -32603,
        "message": "Internal error",
        "data": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}],
    }
    assert tasks.all_items() == before


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("code", PERMANENT)
def test_a_dynamodb_that_refuses_is_an_internal_error_in_the_log(
    tasks: Tasks, operation: str, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    served, task_id = conversation(tasks)
    before = tasks.all_items()
    tasks.answer(operation, error(code))

    assert ask(served, *requests(task_id)[operation])["error"] == {"code": -32603, "message": "Internal error"}
    assert code in caplog.text
    assert tasks.all_items() == before


def test_nobody_listening_is_unavailable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        client = new_client(f"http://127.0.0.1:{unused.getsockname()[1]}")

        with pytest.raises(UnavailableError):
            tables.Table(client, "t").get({"task_id": {"S": "t"}, "entry": {"S": "head"}})


def test_a_write_that_fails_behind_the_items_beside_it_changes_nothing_that_counts(tasks: Tasks) -> None:
    served, task_id = conversation(tasks)
    before = served.get(task_id)
    tasks.answer("PutItem", *[error("InternalServerError", 500)] * 2)
    with pytest.raises(UnavailableError):
        served.task("y" * 9000, to=task_id)

    assert served.get(task_id) == before
    assert texts(served.task("z", to=task_id).history)[-2:] == ["z", "Which one?"]
    assert len(texts(served.get(task_id).history)) == 6


def test_a_writer_that_dies_before_the_head_leaves_the_task_as_it_was(tasks: Tasks) -> None:
    served, task_id = conversation(tasks)
    before = served.get(task_id)
    tasks.answer("PutItem", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        served.task("y" * 9000, to=task_id)

    assert served.get(task_id) == before
    assert texts(served.task("z", to=task_id).history)[-2:] == ["z", "Which one?"]


@pytest.mark.parametrize("operation", ["Query", "BatchGetItem"])
def test_a_message_whose_answer_cannot_be_read_does_not_count_and_may_be_sent_again(
    tasks: Tasks, operation: str
) -> None:
    served, task_id = conversation(tasks)
    before = served.get(task_id)
    mine = send_params(taskId=task_id, parts=[{"text": "mine"}])
    tasks.before("BatchWriteItem", lambda: tasks.answer(operation, error("ThrottlingException")))

    assert "RetryInfo" in str(ask(served, "SendMessage", mine)["error"])
    assert served.get(task_id) == before
    assert "result" in ask(served, "SendMessage", mine)
    assert texts(served.get(task_id).history).count("mine") == 1


@pytest.mark.parametrize("operation", ["Query", "BatchGetItem"])
def test_a_cancel_whose_answer_cannot_be_read_does_not_count(tasks: Tasks, operation: str) -> None:
    served, task_id = conversation(tasks)
    before = served.get(task_id)
    tasks.answer(operation, error("ThrottlingException"))

    assert "RetryInfo" in str(ask(served, "CancelTask", {"id": task_id})["error"])
    assert served.get(task_id) == before


@pytest.mark.parametrize(
    ("method", "last"), [("SendMessage", "PutItem"), ("CancelTask", "UpdateItem")], ids=["message", "cancel"]
)
def test_nothing_is_read_once_it_counts(tasks: Tasks, method: str, last: str) -> None:
    served, task_id = conversation(tasks)
    params = {"SendMessage": send_params(taskId=task_id), "CancelTask": {"id": task_id}}

    assert tasks.calls_of(lambda: ask(served, method, params[method]))[-1] == last


# Batches that are carried out in part


def unprocessed(tasks: Tasks, count: int) -> None:
    """Have the next write of a batch leave that many of its items out."""
    event = "before-send.dynamodb.BatchWriteItem"
    sent: list[Any] = []

    def cut(request: Any, **_rest: Any) -> None:
        whole = json.loads(request.body)["RequestItems"][tasks.name]
        sent.append(whole[:count])
        request.body = json.dumps({"RequestItems": {tasks.name: whole[count:]}}).encode()
        tasks.client.meta.events.unregister(event, cut)

    def confess(parsed: Any, **_rest: Any) -> None:
        tasks.client.meta.events.unregister("after-call.dynamodb.BatchWriteItem", confess)
        parsed["UnprocessedItems"] = {tasks.name: [_with_bytes(each) for each in sent[0]]}

    tasks.client.meta.events.register_first(event, cut)
    tasks.client.meta.events.register("after-call.dynamodb.BatchWriteItem", confess)


def _with_bytes(put: Any) -> Any:
    content = put["PutRequest"]["Item"]["content"]
    if "B" in content:
        content["B"] = msgspec.convert(content["B"], bytes)
    return put


@pytest.mark.parametrize("count", [1, 2])
def test_items_that_were_not_processed_are_written_again(tasks: Tasks, count: int) -> None:
    served = tasks.serve(yielding(artifact("y" * 700_000), input_required("?")))
    unprocessed(tasks, count)
    task = served.task("x" * 9000)

    assert served.get(task.id) == task
    assert tasks.calls[:3] == ["BatchWriteItem", "BatchWriteItem", "PutItem"]


def test_items_that_are_never_processed_make_the_write_fail(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    left = {tasks.name: [{"PutRequest": {"Item": {"task_id": {"S": "t"}, "entry": {"S": "e"}}}}]}
    tasks.answer("BatchWriteItem", *[response(UnprocessedItems=left)] * tables.BATCH_ATTEMPTS)
    with pytest.raises(UnavailableError):
        served.task("x" * 9000)

    assert tasks.all_items() == []


def test_keys_that_were_not_processed_are_read_again(tasks: Tasks) -> None:
    served, task_id = conversation(tasks)
    expected = served.get(task_id)
    tasks.answer("BatchGetItem", _no_keys_processed(tasks, task_id), _no_keys_processed(tasks, task_id))

    assert served.get(task_id) == expected


def _no_keys_processed(tasks: Tasks, task_id: str) -> Any:
    head = tasks.items(task_id)["head"]
    key = {"task_id": {"S": task_id}, "entry": {"S": f"{head['messages']['L'][0]['S']}#0"}}
    return response(Responses={}, UnprocessedKeys={tasks.name: {"Keys": [key], "ConsistentRead": True}})


def test_keys_that_are_never_processed_make_the_read_fail(tasks: Tasks) -> None:
    served, task_id = conversation(tasks)
    tasks.answer("BatchGetItem", *[_no_keys_processed(tasks, task_id)] * tables.BATCH_ATTEMPTS)
    with pytest.raises(UnavailableError):
        served.get(task_id)


@pytest.mark.parametrize("left_out", ["head", "message#"])
def test_a_look_at_a_task_and_a_note_is_one_reading_of_both(tasks: Tasks, left_out: str) -> None:
    """A copy is taken, and then another message, between the reading of one and of the other."""
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        yield input_required("?")

    rival = tasks.serve(agent(respond, read_only=False))
    task = rival.task("Hello")
    copy = message("copy", message_id="copy", task_id=task.id)
    incomplete = Incomplete(tasks, left_out, lambda: [rival.task(copy), rival.task("other", to=task.id)])
    answered = tasks.serve(agent(respond, read_only=False), incomplete).task(copy)

    assert runs == ["Hello", "copy", "other"]
    assert answered == rival.get(task.id)


class Incomplete:
    """A client whose next BatchGetItem leaves out a key, while something happens."""

    def __init__(self, tasks: Tasks, left_out: str, meanwhile: Callable[[], object]) -> None:
        self._client = tasks.client
        self._left_out = left_out
        self._meanwhile = iter([meanwhile])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def batch_get_item(self, **request: Any) -> Any:
        for meanwhile in self._meanwhile:
            ((table, wanted),) = request["RequestItems"].items()
            left = [key for key in wanted["Keys"] if key["entry"]["S"].startswith(self._left_out)]
            read: Any = {table: {**wanted, "Keys": [key for key in wanted["Keys"] if key not in left]}}
            answer = self._client.batch_get_item(**{**request, "RequestItems": read})
            meanwhile()
            return {**answer, "UnprocessedKeys": {table: {**wanted, "Keys": left}}}
        return self._client.batch_get_item(**request)


# Answers that are lost


class Repeating:
    """A client whose every write arrives, whose answer is lost, and which sends the write again."""

    def __init__(self, client: Any, between: Callable[[], object] = lambda: None) -> None:
        self._client = client
        self._between = between

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if name not in {"put_item", "update_item"}:
            return method

        def twice(**arguments: Any) -> Any:
            method(**arguments)
            self._between()
            return method(**arguments)

        return twice


def test_a_new_task_whose_answer_was_lost_is_stored_once(tasks: Tasks) -> None:
    served = tasks.serve(asking(), Repeating(tasks.client))
    task = served.task("Hello")

    assert texts(served.get(task.id).history) == ["Hello", "Which one?"]


@pytest.mark.parametrize("read_only", [True, False])
def test_a_follow_up_whose_answer_was_lost_is_stored_once(tasks: Tasks, read_only: bool) -> None:  # noqa: FBT001
    served = tasks.serve(asking(read_only=read_only), Repeating(tasks.client))
    task = served.task("Hello")
    task = served.task("more", to=task.id)

    assert texts(task.history) == ["Hello", "Which one?", "more", "Which one?"]
    assert served.get(task.id) == task


def test_a_cancel_whose_answer_was_lost_is_answered_as_canceled(tasks: Tasks) -> None:
    task = tasks.serve(asking()).task()
    canceled = tasks.serve(asking(), Repeating(tasks.client)).cancel(task.id)

    assert canceled.status.state is TaskState.CANCELED


@pytest.mark.parametrize("fault", MOMENTARY.values(), ids=MOMENTARY)
@pytest.mark.parametrize("read_only", [True, False])
def test_a_write_that_is_not_taken_is_tried_again(
    tasks: Tasks,
    read_only: bool,  # noqa: FBT001
    fault: Callable[[], Any],
) -> None:
    served = tasks.serve(asking(read_only=read_only))
    task = served.task("Hello")
    tasks.answer("PutItem", fault())
    task = served.task("more", to=task.id)

    assert texts(task.history) == ["Hello", "Which one?", "more", "Which one?"]
    assert served.get(task.id) == task


class Silent:
    """A client whose `lost`th PutItem arrives, and is never answered."""

    def __init__(self, client: Any, lost: int) -> None:
        self._client = client
        self._lost = lost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def put_item(self, **arguments: Any) -> Any:
        answer = self._client.put_item(**arguments)
        self._lost -= 1
        if self._lost == 0:
            raise ReadTimeoutError(endpoint_url=URL)
        return answer


@pytest.mark.parametrize("lost", [1, 2, 3, 4])
@pytest.mark.parametrize("read_only", [True, False])
def test_a_write_whose_every_answer_is_lost_has_counted_and_its_agent_runs_once(
    tasks: Tasks,
    read_only: bool,  # noqa: FBT001
    lost: int,
) -> None:
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        yield input_required("?")

    served = tasks.serve(agent(respond, read_only=read_only), Silent(tasks.client, lost))
    task = served.task("Hello")
    task = served.task("more", to=task.id)

    assert runs == ["Hello", "more"]
    assert texts(task.history) == ["Hello", "?", "more", "?"]
    assert served.get(task.id) == task


def test_a_repeated_write_does_not_take_anothers_for_its_own(tasks: Tasks) -> None:
    head = in_state(TaskState.INPUT_REQUIRED)
    tasks.store().prepare(None, head)()
    tasks.store().prepare(head, followed(head, "another")[0])()
    with pytest.raises(ConflictError):
        tasks.store(Repeating(tasks.client)).prepare(head, followed(head, "mine")[0])()


def test_a_repeated_cancel_of_a_finished_task_is_refused(tasks: Tasks) -> None:
    head = in_state(TaskState.COMPLETED)
    tasks.store().prepare(None, head)()
    with pytest.raises(TaskNotCancelableError):
        tasks.store(Repeating(tasks.client)).cancel(head, 0)


def test_a_message_is_not_said_twice_when_another_follows_before_the_write_is_repeated(tasks: Tasks) -> None:
    first = tasks.serve(asking())
    task = first.task("Hello")
    rivals = iter(["rival"])

    def follow() -> None:
        for said in rivals:
            first.task(said, to=task.id)

    tasks.serve(asking(), Repeating(tasks.client, follow)).task("mine", to=task.id)

    assert texts(first.get(task.id).history).count("mine") == 1


def test_an_acting_agent_runs_once_when_its_claim_is_sent_twice(tasks: Tasks) -> None:
    served = tasks.serve(yielding(artifact("done"), read_only=False), Repeating(tasks.client))

    assert len(served.task().artifacts or []) == 1


def test_what_a_refused_write_says_is_not_lost_on_the_way(tasks: Tasks) -> None:
    head = in_state(TaskState.INPUT_REQUIRED)
    store = tasks.store()
    store.prepare(None, head)()
    with pytest.raises(ConflictError) as conflict:
        store.prepare(None, head)()

    assert isinstance(conflict.value.__cause__, Exception)
    assert conflict.value.current == store.read(head.owner, head.task_id)
    assert ended(head, message_=message()).revision == head.revision + 1


def test_an_error_without_a_code_of_its_own_is_raised_as_it_is(tasks: Tasks) -> None:
    tasks.answer("GetItem", error("SomethingNew"))
    with pytest.raises(ClientError):
        tasks.store().read("anonymous", "t")
