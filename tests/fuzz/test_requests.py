"""Whole requests through the rpc function: whatever is sent, the answer is one of the protocol's.

Each run sends the same requests. `FUZZ_EXAMPLES=10000` sends that many others to each test.
"""

import base64
import copy
import functools
import json
import logging
import operator
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from moto import mock_aws

from tests.integration.functions import Context, Event, Handler, http_event, load
from tests.integration.tables import Tasks, new_client
from tests.schema import check_answer

Json = Any
Answer = dict[str, Any]

EXAMPLES: Final = int(os.environ.get("FUZZ_EXAMPLES", "50"))

fuzzed = settings(
    database=None,
    deadline=None,
    derandomize="FUZZ_EXAMPLES" not in os.environ,
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)

PYTHON: Final = re.compile(r"Traceback|File \"|0x[0-9a-f]{6}|<class|NoneType|[a-z]Error\b|Exception|msgspec|botocore")
"""What would betray the language that the server is written in."""


class Faults(logging.Handler):
    """The errors that the server logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(self.format(record))


@dataclass
class Agent:
    """The rpc function, with what is true of each of its answers."""

    handler: Handler
    faults: Faults = field(default_factory=Faults)

    def answer(self, event: Event) -> Answer:
        answer = self.handler(event, Context())

        assert not self.faults.messages
        assert answer["statusCode"] in {200, 204, 413}
        check_answer(event, answer)
        if answer["statusCode"] != 204:
            error = json.loads(answer["body"]).get("error", {})
            assert error.get("code") != -32603
            assert error.get("code") == -32009 or not PYTHON.search(json.dumps(error))
        return answer

    def waiting_task(self) -> Json:
        """A new task that waits for an order's number."""
        message = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": "Where?"}]}
        return self.ask("SendMessage", {"message": message})["result"]["task"]

    def ask(self, method: str, params: Json, identity: Json = 1) -> Json:
        """The answer to a request that is no notification."""
        request = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
        return json.loads(self.answer(rpc(json.dumps(request)))["body"])


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "local")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        tables = {"TASKS_TABLE": Tasks(new_client()).name, "CALLERS_TABLE": "callers"}
        running = Agent(load("rpc", tables, patch))
        logging.getLogger("a2a").addHandler(running.faults)
        yield running
        logging.getLogger("a2a").removeHandler(running.faults)


# What is sent

NUMBERS: Final = (
    *("0", "-0", "1", "-1", "0.5", "2.0", "1e2", "-1.5", "2147483647", "2147483648", "-2147483649", "1e-400", "5e-324"),
    *("9007199254740993", "9223372036854775808", "18446744073709551616", "-9223372036854775809", "1e308", "1e309"),
    *("-1e400", "1" + "0" * 308, "9" * 400, "0." + "3" * 400, "NaN", "Infinity", "01", "+1", ".5", "1.", "1e"),
)
"""Numbers at the edges of what somebody on the way can hold, and some that are not JSON's."""

TEXTS: Final = (
    "",
    " ",
    "\0",
    "\u2028",
    "\ufeff",
    "\ud800",
    "\udfff",
    "e\u0301",
    "🎈",
    "A-1001",
    "1",
    "1.0",
    "null",
    "x" * 600,
)


@dataclass(frozen=True)
class Raw:
    """What is written as it is, whether it is JSON or not."""

    text: str


numbers = st.sampled_from(NUMBERS).map(Raw)
texts = st.sampled_from(TEXTS) | st.text(st.characters())
scalars = st.none() | st.booleans() | numbers | st.integers() | st.floats(allow_nan=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)


def written(value: Json) -> str:
    """The value as JSON, with what is raw in it as it is."""
    match value:
        case Raw(text):
            return text
        case list():
            return f"[{','.join(map(written, value))}]"
        case dict():
            return f"{{{','.join(f'{json.dumps(name)}:{written(each)}' for name, each in value.items())}}}"
    return json.dumps(value)


def nested(value: Json, levels: int, opening: str, closing: str) -> Raw:
    """The value, so many levels down."""
    return Raw(opening * levels + written(value) + closing * levels)


PART: Final = {"text": "Where is A-1001?", "mediaType": "text/plain", "filename": "a.txt", "metadata": {"a": [1, None]}}
MESSAGE: Final = {
    "messageId": "m",
    "role": "ROLE_USER",
    "contextId": "c",
    "parts": [PART, {"data": {"orderId": "A-1002"}}, {"text": "and this"}],
    "metadata": {"deep": {"er": [1.5, "é"]}},
    "extensions": ["https://example.com/extension"],
    "referenceTaskIds": ["00000000-0000-4000-8000-000000000000"],
}
CONFIGURATION: Final = {"acceptedOutputModes": ["text/plain"], "historyLength": 3, "returnImmediately": False}
LIST: Final = {
    "tenant": "",
    "contextId": "c",
    "status": "TASK_STATE_COMPLETED",
    "pageSize": 3,
    "pageToken": "",
    "historyLength": 2,
    "statusTimestampAfter": "2026-09-26T20:37:31.121Z",
    "includeArtifacts": True,
}
TASK_ID: Final = "00000000-0000-4000-8000-000000000000"
VALID: Final[Json] = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": {"message": MESSAGE, "configuration": CONFIGURATION},
    },
    {"jsonrpc": "2.0", "id": "a", "method": "SendMessage", "params": {"message": {**MESSAGE, "taskId": TASK_ID}}},
    {"jsonrpc": "2.0", "id": None, "method": "GetTask", "params": {"id": TASK_ID, "historyLength": 1}},
    {"jsonrpc": "2.0", "id": 1.5, "method": "CancelTask", "params": {"id": TASK_ID, "metadata": {"a": 1}}},
    {"jsonrpc": "2.0", "id": 2, "method": "ListTasks", "params": LIST},
    {"jsonrpc": "2.0", "method": "ListTasks"},
    {"jsonrpc": "2.0", "id": 3, "method": "SendStreamingMessage", "params": {"message": MESSAGE}},
]


def places(value: Json, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value, as the way there."""
    yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield from places(each, (*at, key))


def snake(name: str) -> str:
    return re.sub(r"([A-Z])", lambda match: f"_{match[0].lower()}", name)


@st.composite
def near_valid(draw: st.DrawFn) -> Json:
    """A valid request with up to three things in its id and parameters changed."""
    request = copy.deepcopy(draw(st.sampled_from(VALID)))
    for _ in range(draw(st.integers(0, 3))):
        choices = [place for place in places(request) if place and place[0] in {"id", "params"}]
        if choices:
            *way, last = draw(st.sampled_from(choices))
            change(draw, functools.reduce(operator.getitem, way, request), last)
    return request


def change(draw: st.DrawFn, holder: Json, at: Any) -> None:
    """Change what a list or an object holds at a place."""
    kind = draw(st.sampled_from(["replace", "remove", "null", "wrap", "number", "proto name", "both names", "deepen"]))
    value = holder[at]
    match kind:
        case "replace":
            holder[at] = draw(values)
        case "remove":
            del holder[at]
        case "null":
            holder[at] = None
        case "wrap":
            holder[at] = [value]
        case "number":
            holder[at] = draw(numbers)
        case "proto name" if isinstance(at, str):
            holder[snake(at)] = holder.pop(at)
        case "both names" if isinstance(at, str):
            holder[snake(at)] = draw(st.none() | st.just(value) | scalars)
        case _:
            levels = draw(st.sampled_from([1, 20, 40, 100, 101, 2000]))
            holder[at] = nested(value, levels, *draw(st.sampled_from([("[", "]"), ('{"a":', "}")])))


header_texts = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF), max_size=40)
headers = st.fixed_dictionaries(
    {},
    optional={
        "a2a-version": st.sampled_from(["1.0", "1.0.1", " 1.0 ", "1", "1.1", "0.3", "1.0.", "1.0.x", "1.\u0660", ""])
        | header_texts,
        "A2A-Extensions": header_texts | st.just(",,https://example.com/extension, ,"),
        "content-type": st.sampled_from(["application/json", "text/plain", ""]) | header_texts,
        "x-api-key": header_texts,
        "authorization": header_texts,
        "host": header_texts,
    },
)


def rpc(body: str | None) -> Event:
    return http_event("POST", "/a2a", {"A2A-Version": "1.0"}, body)


# What is answered


@fuzzed
@given(st.binary(max_size=200) | st.text(st.characters()).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_answered(agent: Agent, body: bytes) -> None:
    event = rpc(base64.b64encode(body).decode()) | {"isBase64Encoded": True}
    answer = json.loads(agent.answer(event)["body"])

    assert answer["id"] is None
    assert answer["error"]["code"] in {-32700, -32600}


@fuzzed
@given(st.none() | texts, st.booleans())
def test_any_body_of_an_event_is_answered(agent: Agent, body: str | None, is_base64: bool) -> None:  # noqa: FBT001
    agent.answer(rpc(body) | {"isBase64Encoded": is_base64})


@fuzzed
@given(values)
def test_any_json_is_answered(agent: Agent, value: Json) -> None:
    agent.answer(rpc(written(value)))


@fuzzed
@given(
    st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0") | values, "method": st.sampled_from([each["method"] for each in VALID]) | values},
        optional={"id": values, "params": values},
    )
)
def test_any_request_object_is_answered(agent: Agent, request: Json) -> None:
    agent.answer(rpc(written(request)))


@fuzzed
@given(near_valid())
def test_what_is_nearly_a_valid_request_is_answered(agent: Agent, request: Json) -> None:
    body = written(request)
    if TASK_ID in body:
        body = body.replace(TASK_ID, agent.waiting_task()["id"])
    agent.answer(rpc(body))


@fuzzed
@given(st.data())
def test_what_is_cut_or_spliced_anywhere_is_answered(agent: Agent, data: st.DataObject) -> None:
    body = written(data.draw(st.sampled_from(VALID)))
    at = data.draw(st.integers(0, len(body)))
    agent.answer(rpc(body[:at] + data.draw(texts) + body[data.draw(st.integers(at, len(body))) :]))


@fuzzed
@given(headers, st.dictionaries(st.sampled_from(["A2A-Version", "a2a-version", "x"]), header_texts) | st.none())
def test_any_headers_and_parameters_are_answered(agent: Agent, sent: dict[str, str], query: Json) -> None:
    event = rpc(written(VALID[2])) | {"headers": sent}
    agent.answer(event if query is None else event | {"queryStringParameters": query})


@fuzzed
@given(st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text())
def test_an_id_is_repeated(agent: Agent, identity: Json) -> None:
    for method in ("GetTask", "NoSuchMethod"):
        answer = agent.ask(method, {"id": "x"}, identity)
        assert (type(answer["id"]), answer["id"]) == (type(identity), identity)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@fuzzed
@given(json_values, st.dictionaries(st.text(), json_values, max_size=3), st.text(max_size=512))
def test_what_is_sent_is_what_is_read(agent: Agent, data: Json, metadata: Json, context: str) -> None:
    part = {"data": data, "metadata": metadata}
    sent = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [part, {"text": "?"}], "metadata": metadata}
    task = agent.ask("SendMessage", {"message": sent | ({"contextId": context} if context else {})})["result"]["task"]
    read = agent.ask("GetTask", {"id": task["id"]})["result"]

    expected = sent | {"taskId": task["id"], "contextId": context or task["contextId"]}
    assert read == task
    assert read["history"][0] == expected


# What the SDK's client cannot read must not get into a task


def test_an_integer_beyond_a_double_does_not_get_into_a_task(agent: Agent) -> None:
    agent.answer(sending('{"data": 1' + "0" * 309 + "}"))


@pytest.mark.parametrize("levels", [48, 60, 84])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_json_that_nests_too_deep_does_not_get_into_a_task(
    agent: Agent, levels: int, opening: str, closing: str
) -> None:
    agent.answer(sending(f'{{"data": {opening * levels}1{closing * levels}}}'))


def sending(part: str) -> Event:
    """The event of a message with one part, which is given as JSON."""
    message = f'{{"messageId": "{uuid4()}", "role": "ROLE_USER", "parts": [{part}]}}'
    return rpc(f'{{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {{"message": {message}}}}}')
