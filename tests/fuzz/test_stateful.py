"""Random steps of several callers and the worker, and every answer compared in full with a reference's.

Each run takes the same steps. `FUZZ_EXAMPLES=10000` takes that many other rows of steps in memory, and a fifth of
that in DynamoDB. A failure is made shorter before it is shown, for five minutes at most.
"""

import os
from collections.abc import Iterator
from typing import Final, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from moto import mock_aws

from a2a_lambda.push_configs import TablePushConfigs
from a2a_lambda.tables import Table
from tests.fuzz import moments
from tests.fuzz.knowledge import DAY, SECOND, WINDOW, Task, as_shown, written
from tests.fuzz.matching import Json, Matcher
from tests.fuzz.reference import Reference
from tests.fuzz.scripted import ENDS, SCENES, STEPS
from tests.fuzz.served import WINDOW_SECONDS, Served
from tests.fuzz.steps import NOBODY, SELF, Ask, Attend, Step
from tests.fuzz.words import INTERRUPTED
from tests.integration.tables import Tasks, new_client
from tests.unit.factories import Clock, Ids
from tests.unit.memory_store import InMemoryTaskStore

EXAMPLES: Final = int(os.environ.get("FUZZ_EXAMPLES", "30"))
MORE: Final = [EXAMPLES, pytest.param(10 * EXAMPLES, marks=pytest.mark.thorough)]

stateful = settings(
    database=None,
    deadline=None,
    derandomize="FUZZ_EXAMPLES" not in os.environ,
    phases=[Phase.generate, Phase.shrink],
    stateful_step_count=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

OWNERS: Final = ("alice", "bob")
HOOK: Final = "https://hook.example/updates"
OPEN: Final = (*INTERRUPTED, "SUBMITTED", "WORKING")
FOREVER: Final = "2020-01-01T00:00:00Z"

T = TypeVar("T")


def mostly(often: st.SearchStrategy[T], seldom: st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    """One of ten from the second."""
    return st.integers(0, 9).flatmap(lambda number: often if number else seldom)


owners = mostly(st.just("alice"), st.just("bob"))
often = st.integers(0, 2).map(lambda number: number > 1)
seldom = st.integers(0, 7).map(lambda number: number > 6)
history_lengths = st.none() | st.integers(0, 5)


@st.composite
def new_texts(draw: st.DrawFn) -> str:
    steps = draw(st.lists(st.sampled_from(STEPS), max_size=4))
    end = draw(st.sampled_from(["ask", "login"]) | st.sampled_from(ENDS))
    too_late = [] if end in {"die", "vanish"} else draw(mostly(st.just([]), st.sampled_from([["say"], ["ask"]])))
    return " ".join([*steps, end, *too_late])


texts = new_texts() | st.sampled_from(SCENES)
"""What a message tells the agent to do: mostly something that ends with a question."""

webhooks = st.fixed_dictionaries(
    {"url": st.sampled_from([HOOK, HOOK, HOOK, f"{HOOK}/2", "http://127.0.0.1"])},
    optional={
        "id": st.sampled_from([f"config-{number}" for number in range(12)]),
        "token": st.just("word"),
        "authentication": st.just({"scheme": "Bearer", "credentials": "word"}),
    },
)


def _just(values: Json) -> dict[str, st.SearchStrategy[Json]]:
    return {name: st.just(value) for name, value in values.items()}


class Callers(RuleBasedStateMachine):
    """Callers of one server."""

    has_push = False

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.matcher = Matcher()
        self.messages: list[tuple[str, Json]] = []
        self.is_equal = False

    def serve(self, *, read_only: bool, background: bool) -> Served:
        store = InMemoryTaskStore(self.clock, window_seconds=WINDOW_SECONDS)
        return Served(store, self.clock, read_only=read_only, background=background)

    @initialize(read_only=st.booleans(), background=seldom, said=st.lists(texts, min_size=2, max_size=2))
    def begin(self, *, read_only: bool, background: bool, said: list[str]) -> None:
        self.served = self.serve(read_only=read_only, background=background)
        self.reference = Reference(read_only=read_only, background=background, push=self.has_push, now=self.clock.now)
        for owner, text in zip(("alice", "alice", "bob"), ["give:a ask", *said], strict=True):
            self.say(owner, text)
        if waiting := [task.task_id for task in self.tasks("alice") if task.state in INTERRUPTED]:
            self.say("alice", "recall more:a ask", taskId=waiting[0])

    def say(self, owner: str, text: str, **more: str) -> None:
        message = {"messageId": f"m{len(self.messages)}", "role": "ROLE_USER", "parts": [{"text": text}], **more}
        self.messages.append((owner, message))
        self.together(Ask(owner, "SendMessage", {"message": message}))

    def together(self, step: Step, meanwhile: list[Step] | None = None) -> None:
        """Have the server and the reference carry a step out, and compare."""
        self.is_equal = False
        answers, ids = self.served.carry_out(step, meanwhile or [])
        expected = self.reference.carry_out(step, meanwhile or [], ids)
        assert len(answers) == len(expected)
        for (asked, should), answer in zip(expected, answers, strict=True):
            self.matcher.match(should, answer, f"{asked} → answer")
        assert self.clock.now == self.reference.now
        self.is_equal = True

    def until(self, time: int) -> None:
        self.clock.now = self.reference.now = max(self.clock.now, time)

    # What there is to choose from

    def tasks(self, owner: str = "") -> list[Task]:
        return [task for task in self.reference.tasks.values() if owner in ("", task.owner)]

    def task_ids(self, owner: str, *states: str) -> st.SearchStrategy[str]:
        """Mostly those of the owner's newest tasks, in these states where there are any."""
        mine = [task for task in self.tasks(owner) if self.reference.alive(owner, task.task_id)]
        fitting = [task for task in mine if task.state in states] or mine or self.tasks()
        ids = [task.task_id for task in self.tasks()]
        return mostly(
            st.sampled_from([task.task_id for task in fitting[-5:]] or [NOBODY]),
            st.sampled_from([*ids, NOBODY, "no-such-id"]),
        )

    def steps(self, owner: str, message: Json) -> st.SearchStrategy[Step]:
        """What may happen meanwhile."""
        other = {**message, "messageId": f"{message['messageId']}-meanwhile", "taskId": SELF}
        copies = [{"message": message}, {"message": message, "configuration": {"returnImmediately": True}}]
        return st.sampled_from(
            [
                Ask(owner, "GetTask", {"id": SELF}),
                Ask(owner, "CancelTask", {"id": SELF}),
                Ask(owner, "ListTasks", {"includeArtifacts": True, "historyLength": 2}),
                *(Ask(owner, "SendMessage", copy) for copy in copies if self.may_send(owner, copy)),
                Ask(owner, "SendMessage", {"message": other}),
                Ask("bob", "GetTask", {"id": SELF}),
                Ask(owner, "CreateTaskPushNotificationConfig", {"taskId": SELF, "url": HOOK, "id": "meanwhile"}),
                Attend(owner, SELF),
                Attend(owner, SELF),
            ]
        )

    def may_send(self, owner: str, params: Json) -> bool:
        """Tell whether a copy of a message may be sent."""
        return not moments.is_unclear(self.reference, owner, params["message"])

    # Messages

    def send(self, data: st.DataObject, owner: str, message: Json, *, is_copy: bool = False) -> None:
        params: Json = {"message": message}
        configuration: Json = {}
        if data.draw(often, "immediately"):
            configuration["returnImmediately"] = True
        if (length := data.draw(history_lengths, "history length")) is not None:
            configuration["historyLength"] = length
        if data.draw(seldom, "modes"):
            configuration["acceptedOutputModes"] = ["text/plain"]
        meanwhile = data.draw(st.lists(self.steps(owner, message), max_size=3), "meanwhile")
        if self.has_push and data.draw(often, "webhook"):
            configuration["taskPushNotificationConfig"] = data.draw(webhooks)
        if data.draw(seldom, "metadata"):
            params["metadata"] = {"a": [1, None]}
        if configuration:
            params["configuration"] = configuration
        if not is_copy:
            self.messages.append((owner, message))
        elif not self.may_send(owner, params):
            return
        self.until(moments.sure_from(self.reference, owner, message))
        if self.has_push:
            self.until(self.clock.now + SECOND)  # No two webhooks of a task are of the same age.
        self.together(Ask(owner, "SendMessage", params), meanwhile)

    def message(self, data: st.DataObject, text: str) -> Json:
        message: Json = {"messageId": f"m{len(self.messages)}", "role": "ROLE_USER", "parts": [{"text": text}]}
        if data.draw(seldom, "second part"):
            message["parts"].append(
                {"text": "ask", "mediaType": data.draw(st.sampled_from(["text/plain", "image/png"]))}
            )
        if data.draw(seldom, "references"):
            message["referenceTaskIds"] = [data.draw(self.task_ids("alice"))]
        if data.draw(seldom, "big"):
            message["metadata"] = {"big": "y" * 9000}
        return message

    @rule(data=st.data(), owner=owners, text=texts)
    def begin_a_task(self, data: st.DataObject, owner: str, text: str) -> None:
        message = self.message(data, text)
        if data.draw(st.booleans(), "context"):
            message["contextId"] = data.draw(st.sampled_from(["c1", "c2"]))
        self.send(data, owner, message)

    @rule(data=st.data(), owner=owners, text=texts)
    def continue_a_task(self, data: st.DataObject, owner: str, text: str) -> None:
        message = self.message(data, text)
        message["taskId"] = data.draw(self.task_ids(owner, *INTERRUPTED))
        if data.draw(seldom, "context"):
            message["contextId"] = data.draw(st.sampled_from(["c1", "c2"]))
        self.send(data, owner, message)

    @precondition(lambda self: self.messages)
    @rule(data=st.data(), change=seldom)
    def send_a_copy(self, data: st.DataObject, *, change: bool) -> None:
        taken = [(task.owner, turn.sent.message) for task in self.tasks()[-4:] for turn in task.turns]
        owner, message = data.draw(mostly(st.sampled_from(taken or self.messages), st.sampled_from(self.messages)))
        if change:
            owner, message = data.draw(
                st.sampled_from([(owner, {**message, "parts": [{"text": "ask"}]}), ("bob", message)])
            )
        self.send(data, owner, message, is_copy=True)

    # Tasks

    @rule(data=st.data(), owner=owners, length=history_lengths)
    def get_a_task(self, data: st.DataObject, owner: str, length: int | None) -> None:
        params = {"id": data.draw(self.task_ids(owner, *OPEN))}
        self.together(Ask(owner, "GetTask", params if length is None else {**params, "historyLength": length}))

    @rule(data=st.data(), owner=owners)
    def cancel_a_task(self, data: st.DataObject, owner: str) -> None:
        self.together(Ask(owner, "CancelTask", {"id": data.draw(self.task_ids(owner, "SUBMITTED", "WORKING"))}))

    @precondition(lambda self: self.reference.tasks)
    @rule(data=st.data(), owner=owners, is_filtered=st.booleans())
    def list_tasks(self, data: st.DataObject, owner: str, *, is_filtered: bool) -> None:
        params: Json = {}
        if is_filtered:
            task = data.draw(st.sampled_from(self.tasks()))
            since = written(task.since + data.draw(st.integers(-1, 1)))
            filters = {"contextId": as_shown(task.context), "status": f"TASK_STATE_{task.state}"}
            params = data.draw(st.fixed_dictionaries({}, optional=_just({**filters, "statusTimestampAfter": since})))
        if data.draw(mostly(st.just(value=True), st.just(value=False)), "in pages"):
            params["pageSize"] = data.draw(st.sampled_from([1, 1, 2, 3]))
        shown = {"historyLength": st.integers(0, 3), "includeArtifacts": st.booleans()}
        self.together(Ask(owner, "ListTasks", params | data.draw(st.fixed_dictionaries({}, optional=shown))))

    @precondition(lambda self: self.reference.tokens)
    @rule(data=st.data(), length=st.integers(0, 3), other=seldom)
    def go_on_in_a_list(self, data: st.DataObject, length: int, *, other: bool) -> None:
        token = data.draw(st.sampled_from(self.reference.tokens[-4:]))
        params = {name: value for name, value in token.walk.wanted.items() if value is not None}
        if other:
            params |= data.draw(st.sampled_from([{"contextId": "c1"}, {"statusTimestampAfter": FOREVER}]))
        page = {"pageToken": token.value, "pageSize": data.draw(st.integers(1, 3)), "historyLength": length}
        owner = data.draw(st.sampled_from([token.walk.owner] * 5 + ["bob"]))
        self.together(Ask(owner, "ListTasks", params | page))

    # The worker

    @precondition(lambda self: any(task.deadline for task in self.reference.tasks.values()))
    @rule(data=st.data(), stale=seldom)
    def attend_to_a_turn(self, data: st.DataObject, *, stale: bool) -> None:
        task = data.draw(st.sampled_from([task for task in self.reference.tasks.values() if task.deadline]))
        turn, run = len(task.turns), task.run
        if stale:
            turn, run = data.draw(st.sampled_from([(turn - 1, run), (turn, run - 1), (turn + 1, run), (turn, run + 1)]))
        meanwhile = data.draw(st.lists(self.steps(task.owner, task.turns[-1].sent.message), max_size=3), "meanwhile")
        self.until(moments.sure_from(self.reference, task.owner, task.turns[-1].sent.message))
        self.until(self.clock.now + SECOND)
        self.together(Attend(task.owner, task.task_id, turn, run), meanwhile)

    @precondition(lambda self: bool(moments.deadlines(self.reference)))
    @rule(data=st.data(), attends=st.booleans(), reads=st.sampled_from(["GetTask", "ListTasks", "Attend"]))
    def let_a_deadline_pass(self, data: st.DataObject, *, attends: bool, reads: str) -> None:
        task = data.draw(st.sampled_from([task for task in self.tasks() if task.deadline]))
        step = Attend(task.owner, task.task_id, len(task.turns), task.run)
        if attends:
            self.together(step)
        self.until(task.deadline or 0)
        if reads == "GetTask":
            self.together(Ask(task.owner, reads, {"id": task.task_id}))
        elif reads == "ListTasks":
            state = {"status": f"TASK_STATE_{task.state}"} if data.draw(st.booleans(), "filter") else {}
            self.together(Ask(task.owner, reads, state))
        else:
            self.together(step)

    # Time

    @rule(seconds=st.sampled_from([0, 1, 5, 60, 299]))
    def let_time_pass(self, seconds: int) -> None:
        self.until(self.clock.now + seconds * SECOND)

    @rule(days=st.sampled_from([1, 9, 25]))
    def let_days_pass(self, days: int) -> None:
        self.until(self.clock.now + days * DAY)

    @precondition(lambda self: bool(moments.deadlines(self.reference)))
    @rule(before=st.booleans())
    def go_to_a_deadline(self, *, before: bool) -> None:
        self.until(moments.deadlines(self.reference)[0] - before * SECOND)

    @precondition(lambda self: bool(moments.edges(self.reference)))
    @rule(data=st.data(), before=st.booleans())
    def go_to_an_edge(self, data: st.DataObject, *, before: bool) -> None:
        edges = moments.edges(self.reference)
        self.until(data.draw(mostly(st.just(edges[0]), st.sampled_from(edges))) - before * SECOND)

    def teardown(self) -> None:
        if not self.is_equal:
            return
        for owner in OWNERS:
            for task in self.tasks(owner):
                self.together(Ask(owner, "GetTask", {"id": task.task_id}))
                if self.has_push:
                    self.together(Ask(owner, "ListTaskPushNotificationConfigs", {"taskId": task.task_id}))
            self.together(Ask(owner, "ListTasks", {"historyLength": 9, "includeArtifacts": True}))


class CallersOfDynamoDB(Callers):
    """Callers of a server that keeps its tasks in DynamoDB, and knows webhooks."""

    has_push = True

    def serve(self, *, read_only: bool, background: bool) -> Served:
        self.table = Tasks(new_client(), self.clock)
        configs = TablePushConfigs(Table(self.table.client, self.table.name), clock=self.clock, new_id=Ids())
        return Served(self.table.store(), self.clock, read_only=read_only, background=background, configs=configs)

    def together(self, step: Step, meanwhile: list[Step] | None = None) -> None:
        self.until(moments.counted_from(self.reference))
        super().together(step, meanwhile)

    @precondition(lambda self: not any(task.configs for task in self.tasks()))
    @rule()
    def delete_what_has_expired(self) -> None:
        """Not while a copy may come of a message that has begun a task again: docs/decisions.md, Retries."""
        self.until(self.clock.now + WINDOW)
        self.table.sweep()
        self.reference.sweep()

    # Webhooks

    @precondition(lambda self: self.reference.tasks)
    @rule(data=st.data(), owner=owners, webhook=webhooks, count=mostly(st.just(1), st.just(10)))
    def create_webhooks(self, data: st.DataObject, owner: str, webhook: Json, count: int) -> None:
        task_id = data.draw(self.task_ids(owner))
        for number in range(count):
            self.until(self.clock.now + SECOND)
            params = {**webhook, "taskId": task_id} | ({"id": f"config-{number}"} if count > 1 else {})
            self.together(Ask(owner, "CreateTaskPushNotificationConfig", params))

    @precondition(lambda self: self.reference.tasks)
    @rule(data=st.data(), owner=owners, what=st.sampled_from(["Get", "Get", "Delete"]))
    def get_or_delete_a_webhook(self, data: st.DataObject, owner: str, what: str) -> None:
        task_id = data.draw(self.task_ids(owner))
        task = self.reference.tasks.get(task_id)
        known = list(task.configs) if task else []
        config_id = data.draw(st.sampled_from([*known, *known, "config-0", task_id]))
        self.together(Ask(owner, f"{what}TaskPushNotificationConfig", {"taskId": task_id, "id": config_id}))

    @precondition(lambda self: self.reference.tasks)
    @rule(data=st.data(), owner=owners, size=st.integers(0, 3))
    def list_webhooks(self, data: st.DataObject, owner: str, size: int) -> None:
        params = {"taskId": data.draw(self.task_ids(owner)), "pageSize": size}
        self.together(Ask(owner, "ListTaskPushNotificationConfigs", params))

    @precondition(lambda self: self.reference.config_tokens)
    @rule(data=st.data(), other=seldom)
    def go_on_in_a_list_of_webhooks(self, data: st.DataObject, *, other: bool) -> None:
        token = data.draw(st.sampled_from(self.reference.config_tokens))
        owner, task_id = token.walk.wanted
        if other:
            task_id = data.draw(self.task_ids(owner))
        params = {"taskId": task_id, "pageToken": token.value, "pageSize": 2}
        self.together(Ask(owner, "ListTaskPushNotificationConfigs", params))


@pytest.fixture
def _aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "local")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        yield


@pytest.mark.parametrize("examples", MORE)
def test_in_memory_every_answer_is_the_references(examples: int) -> None:
    run_state_machine_as_test(Callers, settings=settings(stateful, max_examples=examples))


@pytest.mark.usefixtures("_aws")
@pytest.mark.parametrize("examples", MORE)
def test_in_dynamodb_every_answer_is_the_references(examples: int) -> None:
    run_state_machine_as_test(CallersOfDynamoDB, settings=settings(stateful, max_examples=-(-examples // 5)))
