"""Bad input: a clear error, nothing stored, and not a word of Python in the answer."""

import re
from typing import Final

import msgspec
import pytest

from a2a_lambda.portable import MAX_NESTING
from tests.unit.factories import Json, Rpc, rpc, send_params

PYTHON_WORDS: Final = re.compile(
    r"Traceback|Error\b(?!Info)|Exception|msgspec|UNSET|NoneType|\b(dict|int|str|list)\b|\.py\b|[Ee]xpected|byte \d"
)
UNKNOWN: Final = "00000000-0000-4000-8000-ffffffffffff"


def request(**members: Json) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": send_params()} | members)


def sending(**message_fields: Json) -> bytes:
    return request(params=send_params(**message_fields))


def with_text(json_string: bytes) -> bytes:
    """Return a request whose text is written as given."""
    return sending(parts=[{"text": "TEXT"}]).replace(b'"TEXT"', json_string)


def nested(levels: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    """Return a request whose data is nested, as deep as the whole has levels."""
    inner = opening * (levels - NESTING_OF_DATA) + b"0" + closing * (levels - NESTING_OF_DATA)
    return sending(parts=[{"text": "x", "metadata": {"d": "DATA"}}]).replace(b'"DATA"', inner)


NESTING_OF_DATA: Final = 6
"""The request, params, message, parts, the part and its metadata."""

PARSE_ERRORS: Final = {
    "an empty body": b"",
    "blanks": b"  \n",
    "broken JSON": b'{"jsonrpc":"2.0",',
    "something after it": b"{} {}",
    "no JSON": b"hello",
    "XML": b"<a/>",
    "a byte order mark": b"\xef\xbb\xbf" + request(),
    "UTF-16": request().decode().encode("utf-16"),
    "invalid UTF-8": with_text(b'"\xff"'),
    "a truncated UTF-8 sequence": with_text(b'"\xe2\x82"'),
    "an encoded surrogate": with_text(b'"\xed\xa0\x80"'),
    "an overlong encoding": with_text(b'"\xc0\x80"'),
    "a lone high surrogate": with_text(rb'"\ud800"'),
    "a lone low surrogate": with_text(rb'"\udc00"'),
    "surrogates in the wrong order": with_text(rb'"\udc00\ud800"'),
    "a lone surrogate in a key": request(extra=1).replace(b'"extra"', rb'"\ud83d"'),
    "a control character": with_text(b'"\x01"'),
    "NaN": request(params=0).replace(b":0}", b":NaN}"),
    "Infinity": request(params=0).replace(b":0}", b":Infinity}"),
    "-Infinity": request(params=0).replace(b":0}", b":-Infinity}"),
    "NaN in an ignored field": request(extra=1).replace(b'"extra":1', b'"extra":NaN'),
    "a number beyond all floats": request(id=0).replace(b'"id":0', b'"id":1e400'),
    "an integer beyond a double": request(params=send_params() | {"configuration": {"historyLength": 10**309}}),
    "an integer of 5,000 digits": request(id=0).replace(b'"id":0', b'"id":' + b"9" * 5000),
    "a comma too many": b'{"jsonrpc":"2.0",}',
    "a comment": b"/* hi */" + request(),
    "single quotes": b"{'jsonrpc':'2.0'}",
    "10,000 arrays": b"[" * 10_000 + b"]" * 10_000,
    "10,000 arrays that never end": b"[" * 10_000,
    "10,000 objects": b'{"a":' * 10_000 + b"0" + b"}" * 10_000,
    "10,000 levels of data": nested(10_000),
    "10,000 objects of data": nested(10_000, b'{"a":', b"}"),
    "one level too many": nested(MAX_NESTING + 1),
    "one object too many": nested(MAX_NESTING + 1, b'{"a":', b"}"),
}

INVALID_REQUESTS: Final = {
    "a batch": b"[" + request() + b"]",
    "an empty batch": b"[]",
    "null": b"null",
    "a string": b'"hello"',
    "a number": b"42",
    "true": b"true",
    "an empty object": b"{}",
    "an id that is an object": request(id={}),
    "an id that is an array": request(id=[1]),
    "an id that is a boolean": request(id=True),
    "another id that is a boolean": request(id=False),
    "no jsonrpc": b'{"id":1,"method":"GetTask"}',
    "jsonrpc 1.0": request(jsonrpc="1.0"),
    "jsonrpc as a number": request(jsonrpc=2.0),
    "jsonrpc null": request(jsonrpc=None),
    "no method": b'{"jsonrpc":"2.0","id":1}',
    "a method that is a number": request(method=5),
    "a method that is null": request(method=None),
    "a method that is an array": request(method=["GetTask"]),
}

INVALID_PARAMS: Final = {
    "params that are an array": request(params=[send_params()]),
    "params that are a string": request(params="x"),
    "params that are a number": request(params=5),
    "no params": b'{"jsonrpc":"2.0","id":1,"method":"SendMessage"}',
    "params of null": request(params=None),
    "a number for a messageId": sending(messageId=5),
    "a number for a text": sending(parts=[{"text": 5}]),
    "a number for a taskId": sending(taskId=5),
    "a number for a contextId": sending(contextId=5),
    "a part with two contents": sending(parts=[{"text": "x", "data": 1}]),
    "a part with none": sending(parts=[{}]),
    "a part that is a string": sending(parts=["x"]),
    "an unknown role": sending(role="ROLE_SYSTEM"),
    "a role of version 0.3": sending(role="user"),
    "the agent's role": sending(role="ROLE_AGENT"),
    "the agent's role by its number": sending(role=2),
    "no role": sending(role=None),
    "an empty messageId": sending(messageId=""),
    "no messageId": sending(messageId=None),
    "a messageId of 10 KB": sending(messageId="m" * 10_000),
    "an empty parts list": sending(parts=[]),
    "no parts": sending(parts=None),
    "a negative historyLength": request(params=send_params() | {"configuration": {"historyLength": -1}}),
    "a fractional historyLength": request(params=send_params() | {"configuration": {"historyLength": 1.5}}),
    "an integer of 300 digits": request(params=send_params() | {"configuration": {"historyLength": 10**299}}),
    "a configuration that is an array": request(params=send_params() | {"configuration": []}),
    "metadata that are a string": sending(metadata="x"),
    "a task without an id": request(method="GetTask", params={}),
    "a task's id that is a number": request(method="CancelTask", params={"id": 5}),
}

UNSUPPORTED_CONTENT: Final = {
    "a file by its address": sending(parts=[{"url": "https://example.com/x.pdf", "mediaType": "application/pdf"}]),
    "a file by its bytes": sending(parts=[{"raw": "eA==", "mediaType": "image/png"}]),
    "a file without a media type": sending(parts=[{"raw": ""}]),
    "a text of another media type": sending(parts=[{"text": "x", "mediaType": "text/html"}]),
    "data": sending(parts=[{"data": None}]),
    "a file after a text": sending(parts=[{"text": "x"}, {"url": "x:"}]),
}

ODD_TASK_IDS: Final = [
    "no-such-task",
    "a" * 10_240,
    "../../etc/passwd",
    "' OR 1=1 --",
    "\x00",
    "é😀",
    " ",
    UNKNOWN.upper(),
    UNKNOWN + "\n",
    UNKNOWN + "x",
    " " + UNKNOWN,
    UNKNOWN.replace("-", ""),
    "{" + UNKNOWN + "}",
    "head",
    UNKNOWN[:-1] + "\u0663",
]


def refused(body: bytes, code: int) -> Rpc:
    """Send a body that must be refused with this code, and return the endpoint."""
    endpoint = rpc(max_body_bytes=10**6)
    answer = endpoint.answer(body)
    response = msgspec.json.decode(answer.body)
    assert (answer.status, response["error"]["code"]) == (200, code)
    assert endpoint.store.writes == 0
    assert not PYTHON_WORDS.search(answer.body.decode()), answer.body
    return endpoint


@pytest.mark.parametrize("body", PARSE_ERRORS.values(), ids=PARSE_ERRORS)
def test_what_is_no_json_is_a_parse_error(body: bytes) -> None:
    refused(body, -32700)


@pytest.mark.parametrize("body", INVALID_REQUESTS.values(), ids=INVALID_REQUESTS)
def test_what_is_no_request_is_an_invalid_request(body: bytes) -> None:
    refused(body, -32600)


@pytest.mark.parametrize("body", INVALID_PARAMS.values(), ids=INVALID_PARAMS)
def test_what_is_no_message_is_invalid_parameters(body: bytes) -> None:
    refused(body, -32602)


@pytest.mark.parametrize("body", UNSUPPORTED_CONTENT.values(), ids=UNSUPPORTED_CONTENT)
def test_a_part_of_another_media_type_is_not_supported(body: bytes) -> None:
    refused(body, -32005)


@pytest.mark.parametrize("task_id", ODD_TASK_IDS, ids=range(len(ODD_TASK_IDS)))
@pytest.mark.parametrize("method", ["SendMessage", "GetTask", "CancelTask"])
def test_a_task_id_that_this_server_cannot_have_made_is_unknown_without_a_read(method: str, task_id: str) -> None:
    params = send_params(taskId=task_id) if method == "SendMessage" else {"id": task_id}
    endpoint = refused(request(method=method, params=params), -32001)

    assert endpoint.store.reads == 0


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_as_many_levels_as_may_be_are_read(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    answer = rpc().answer(nested(MAX_NESTING, opening, closing))

    assert "result" in msgspec.json.decode(answer.body)


@pytest.mark.parametrize("text", ["[" * 5000, "{" * 5000, '[{"' * 2000])
def test_brackets_in_a_text_are_no_levels(text: str) -> None:
    answer = rpc().answer(sending(parts=[{"text": text}]))

    assert msgspec.json.decode(answer.body)["result"]["task"]["history"][0]["parts"] == [{"text": text}]


def test_many_siblings_are_no_levels() -> None:
    answer = rpc().answer(sending(metadata={"a": [[]] * 5000, "b": [{}] * 5000}))

    assert "result" in msgspec.json.decode(answer.body)


def test_an_ignored_field_may_not_be_too_deep_either() -> None:
    refused(request(extra=1).replace(b'"extra":1', b'"extra":' + b"[" * 100 + b"]" * 100), -32700)


@pytest.mark.parametrize("name", ["__proto__", "constructor", "__class__", "self", ""])
def test_a_strange_name_is_an_unknown_field(name: str) -> None:
    answer = rpc().answer(sending(**{name: {"x": 1}}))

    assert "result" in msgspec.json.decode(answer.body)
