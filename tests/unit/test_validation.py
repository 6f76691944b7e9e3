"""What a request may hold, as ProtoJSON reads it, and how everything that breaks a rule is named."""

import base64
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from a2a_lambda.errors import InvalidParamsError
from a2a_lambda.model import CancelTaskRequest, GetTaskRequest, Message, Part, Role, SendMessageRequest
from tests.unit.factories import VALIDATOR, Json, send_params

FORM_32_BITS: Final = "must be a whole number of 32 bits"


def received(**message_fields: Json) -> Message:
    """Return the message that a request with these fields carries."""
    return VALIDATOR.read(SendMessageRequest, send_params(**message_fields)).message


def received_part(part: Json) -> Part:
    return received(parts=[part]).parts[0]


def history_length(value: Json) -> Json:
    return VALIDATOR.read(GetTaskRequest, {"id": "t", "historyLength": value}).history_length


def violations(params: Json) -> dict[str, str]:
    """Return what is wrong with SendMessage's parameters: field → rule."""
    with pytest.raises(InvalidParamsError) as refused:
        VALIDATOR.read(SendMessageRequest, params)
    return {each.field: each.description for each in refused.value.violations}


def message_violations(**message_fields: Json) -> dict[str, str]:
    return violations(send_params(**message_fields))


def part_violations(part: Json) -> dict[str, str]:
    return message_violations(parts=[part])


# Names


def test_camel_case_names_are_read() -> None:
    assert received(messageId="m", contextId="c", referenceTaskIds=["r"]) == Message(
        "m", Role.USER, [Part(text="Hello")], context_id="c", reference_task_ids=["r"]
    )


def test_the_names_of_the_proto_are_read_too() -> None:
    assert received(messageId=None, message_id="m", context_id="c", reference_task_ids=["r"]) == Message(
        "m", Role.USER, [Part(text="Hello")], context_id="c", reference_task_ids=["r"]
    )


def test_proto_names_are_read_at_every_level() -> None:
    params = send_params(parts=[{"text": "x", "media_type": "text/plain"}])
    params["configuration"] = {"history_length": 3, "return_immediately": True, "accepted_output_modes": ["a/b"]}

    request = VALIDATOR.read(SendMessageRequest, params)

    assert request.message.parts[0].media_type == "text/plain"
    assert request.configuration.history_length == 3
    assert request.configuration.return_immediately
    assert request.configuration.accepted_output_modes == ["a/b"]


def test_a_field_under_both_its_names_is_refused() -> None:
    assert message_violations(message_id="m") == {"message.messageId": "is given twice, as messageId and as message_id"}


def test_null_under_one_name_leaves_the_other() -> None:
    assert received(message_id=None, messageId="m").message_id == "m"
    params = send_params()
    params["message"]["message_id"] = None
    assert VALIDATOR.read(SendMessageRequest, params).message.message_id == "msg-1"


def test_unknown_fields_are_ignored_at_every_level() -> None:
    params = send_params(kind="message", parts=[{"text": "x", "kind": "text"}])
    params |= {"unknown": [1], "configuration": {"blocking": True}}

    request = VALIDATOR.read(SendMessageRequest, params)

    assert request.message.parts == [Part(text="x")]


# Enums


@pytest.mark.parametrize("role", ["ROLE_USER", 1, 1.0])
def test_an_enum_is_read_by_its_name_and_by_its_number(role: Json) -> None:
    assert received(role=role).role is Role.USER


@pytest.mark.parametrize("role", ["ROLE_UNSPECIFIED", 0, 0.0])
def test_an_enum_of_value_zero_is_unset(role: Json) -> None:
    assert message_violations(role=role) == {"message.role": "is required"}


@pytest.mark.parametrize(
    "role", ["user", "role_user", "ROLE_SYSTEM", "", 3, -1, 1.5, pytest.param(10**4000, id="4001 digits"), True, [], {}]
)
def test_any_other_value_of_an_enum_is_refused(role: Json) -> None:
    assert message_violations(role=role) == {"message.role": "must be one of ROLE_USER, ROLE_AGENT"}


@pytest.mark.parametrize("role", ["ROLE_AGENT", 2])
def test_a_client_does_not_speak_as_the_agent(role: Json) -> None:
    assert message_violations(role=role) == {"message.role": "must be ROLE_USER in a message from a client"}


# Null


@pytest.mark.parametrize("name", ["contextId", "taskId", "metadata", "extensions", "referenceTaskIds"])
def test_null_is_unset(name: str) -> None:
    params = send_params()
    params["message"][name] = None

    assert VALIDATOR.read(SendMessageRequest, params).message == received()


@pytest.mark.parametrize("name", ["messageId", "role", "parts"])
def test_a_required_field_that_is_null_is_missing(name: str) -> None:
    params = send_params()
    params["message"][name] = None

    assert violations(params) == {f"message.{name}": "is required"}


@pytest.mark.parametrize("name", ["configuration", "metadata", "tenant"])
def test_null_is_unset_in_the_request_too(name: str) -> None:
    assert VALIDATOR.read(SendMessageRequest, send_params() | {name: None}) == VALIDATOR.read(
        SendMessageRequest, send_params()
    )


def test_null_in_an_array_of_objects_is_refused() -> None:
    assert message_violations(parts=[{"text": "x"}, None]) == {"message.parts[1]": "must be an object"}


def test_null_in_an_array_of_strings_is_refused() -> None:
    assert message_violations(extensions=["urn:x", None]) == {"message.extensions[1]": "must be a string"}


def test_null_stays_where_it_stands_in_metadata() -> None:
    assert received(metadata={"a": None, "b": [None]}).metadata == {"a": None, "b": [None]}


# Parts


@pytest.mark.parametrize("value", [None, 0, "", False, [], {}, [None], 0.5, "x", 10**30])
def test_data_is_present_whatever_its_value(value: Json) -> None:
    part = received_part({"data": value})

    assert part.data == value
    assert part.data is not UNSET


def test_an_empty_text_is_a_text() -> None:
    assert received_part({"text": ""}).text == ""


def test_a_content_that_is_null_is_unset() -> None:
    assert received_part({"text": None, "url": "https://example.com"}) == Part(url="https://example.com")


@pytest.mark.parametrize("part", [{}, {"text": None}, {"kind": "text"}, {"filename": "a.txt"}, {"metadata": {}}])
def test_a_part_without_content_is_refused(part: Json) -> None:
    assert part_violations(part) == {"message.parts[0]": "must have exactly one of text, raw, url, data"}


@pytest.mark.parametrize(
    "part", [{"text": "x", "data": None}, {"text": "", "url": ""}, {"raw": "", "data": 0}, {"text": "x", "raw": "eA=="}]
)
def test_a_part_with_two_contents_is_refused(part: Json) -> None:
    assert part_violations(part) == {"message.parts[0]": "must have exactly one of text, raw, url, data"}


@pytest.mark.parametrize("name", ["text", "url", "filename", "mediaType"])
@pytest.mark.parametrize("value", [1, 1.5, True, ["x"], {"x": 1}])
def test_a_number_is_not_a_string(name: str, value: Json) -> None:
    content = {} if name in {"text", "url"} else {"data": 1}
    assert part_violations(content | {name: value}) == {f"message.parts[0].{name}": "must be a string"}


@pytest.mark.parametrize(
    ("encoded", "content"),
    [
        ("", b""),
        ("eA==", b"x"),
        ("eA", b"x"),
        ("+/+/", b"\xfb\xff\xbf"),
        ("-_-_", b"\xfb\xff\xbf"),
        ("-_8=", b"\xfb\xff"),
        ("-_8", b"\xfb\xff"),
    ],
)
def test_bytes_are_read_in_both_base64_alphabets_with_and_without_padding(encoded: str, content: bytes) -> None:
    assert received_part({"raw": encoded}).raw == content


@given(st.binary(), st.booleans(), st.booleans())
def test_whatever_was_encoded_is_read_back(content: bytes, urlsafe: bool, padded: bool) -> None:  # noqa: FBT001
    encoded = (base64.urlsafe_b64encode if urlsafe else base64.b64encode)(content).decode()
    assert received_part({"raw": encoded if padded else encoded.rstrip("=")}).raw == content


@pytest.mark.parametrize("value", ["x", "====", "e A=", "eA==\n", "é===", "eA==eA==", "eAAAA", 5, True, [], {}])
def test_what_is_not_base64_is_refused(value: Json) -> None:
    assert part_violations({"raw": value}) == {"message.parts[0].raw": "must be base64"}


@pytest.mark.parametrize("value", ["x", 5, [], True])
def test_metadata_must_be_an_object(value: Json) -> None:
    assert message_violations(metadata=value) == {"message.metadata": "must be an object"}
    assert part_violations({"text": "x", "metadata": value}) == {"message.parts[0].metadata": "must be an object"}
    assert violations(send_params() | {"metadata": value}) == {"metadata": "must be an object"}


# Integers and booleans


@pytest.mark.parametrize(
    ("value", "number"),
    [(0, 0), (2, 2), (2.0, 2), ("2", 2), ("0", 0), (1e3, 1000), (2**31 - 1, 2**31 - 1), ("2147483647", 2**31 - 1)],
)
def test_an_integer_is_a_number_a_whole_float_or_a_decimal_string(value: Json, number: int) -> None:
    assert history_length(value) == number


@pytest.mark.parametrize(
    "value",
    [
        1.5,
        "1.5",
        "x",
        "",
        " 1",
        "1 ",
        "0x1",
        "٢",
        "1_0",
        True,
        [],
        {},
        2**31,
        1e300,
        pytest.param(10**4000, id="4001 digits"),
        "9" * 11,
        pytest.param("9" * 5000, id="5000 nines"),
    ],
)
def test_any_other_value_of_an_integer_is_refused(value: Json) -> None:
    with pytest.raises(InvalidParamsError) as refused:
        history_length(value)
    assert [(each.field, each.description) for each in refused.value.violations] == [("historyLength", FORM_32_BITS)]


@pytest.mark.parametrize("value", [-1, -1.0, "-1", -(2**31)])
def test_a_negative_history_length_is_refused(value: Json) -> None:
    with pytest.raises(InvalidParamsError) as refused:
        history_length(value)
    assert [(each.field, each.description) for each in refused.value.violations] == [
        ("historyLength", "must be 0 or more")
    ]


def test_a_history_length_of_zero_is_not_an_unset_one() -> None:
    assert history_length(0) == 0
    assert history_length(None) is UNSET


@pytest.mark.parametrize("value", [0, 1, "true", [], {}])
def test_a_boolean_is_nothing_else(value: Json) -> None:
    params = send_params() | {"configuration": {"returnImmediately": value}}
    assert violations(params) == {"configuration.returnImmediately": "must be true or false"}


# Required fields and the whole


@pytest.mark.parametrize("params", [None, {}, {"message": None}])
def test_absent_parameters_lack_the_message(params: Json) -> None:
    assert violations(params) == {"message": "is required"}


@pytest.mark.parametrize("params", [[], [1], "x", 5, True, 0, ""])
def test_parameters_that_are_no_object_are_refused(params: Json) -> None:
    assert violations(params) == {"params": "must be an object"}


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({"messageId": ""}, {"message.messageId": "is required"}),
        ({"parts": []}, {"message.parts": "is required"}),
        ({"parts": {}}, {"message.parts": "must be an array"}),
        ({"parts": "x"}, {"message.parts": "must be an array"}),
        ({"messageId": 5}, {"message.messageId": "must be a string"}),
        ({"taskId": 5}, {"message.taskId": "must be a string"}),
        ({"messageId": "m" * 513}, {"message.messageId": "must have at most 512 characters"}),
        ({"contextId": "c" * 513}, {"message.contextId": "must have at most 512 characters"}),
    ],
)
def test_a_message_lacks_nothing_that_it_needs(fields: Json, rules: dict[str, str]) -> None:
    assert message_violations(**fields) == rules


@pytest.mark.parametrize("request_type", [GetTaskRequest, CancelTaskRequest])
@pytest.mark.parametrize(
    ("params", "rule"),
    [({}, "is required"), ({"id": ""}, "is required"), ({"id": None}, "is required"), ({"id": 5}, "must be a string")],
)
def test_a_task_is_named(request_type: type[GetTaskRequest | CancelTaskRequest], params: Json, rule: str) -> None:
    with pytest.raises(InvalidParamsError) as refused:
        VALIDATOR.read(request_type, params)
    assert [(each.field, each.description) for each in refused.value.violations] == [("id", rule)]


def test_all_violated_fields_are_named_at_once() -> None:
    params = {
        "tenant": 5,
        "message": {
            "messageId": "",
            "role": "user",
            "parts": [{"text": 5}, {}, None, {"raw": "?"}],
            "extensions": [1, "urn:x", None],
            "metadata": [],
        },
        "configuration": {"historyLength": -1, "acceptedOutputModes": "text/plain"},
        "metadata": "x",
    }
    assert set(violations(params)) == {
        "tenant",
        "message.messageId",
        "message.role",
        "message.parts[0].text",
        "message.parts[1]",
        "message.parts[2]",
        "message.parts[3].raw",
        "message.extensions[0]",
        "message.extensions[2]",
        "message.metadata",
        "configuration.historyLength",
        "configuration.acceptedOutputModes",
        "metadata",
    }


def test_a_part_without_content_is_named_beside_its_other_faults() -> None:
    assert set(part_violations({"filename": 5})) == {"message.parts[0]", "message.parts[0].filename"}


def test_a_part_with_two_contents_is_named_beside_its_other_faults() -> None:
    assert set(part_violations({"text": 5, "url": "x"})) == {"message.parts[0]", "message.parts[0].text"}


def test_a_message_of_version_0_3_is_refused_field_by_field() -> None:
    params = {"message": {"role": "user", "parts": [{"kind": "text", "text": "hi"}]}}
    assert set(violations(params)) == {"message.messageId", "message.role"}


TEXTS: Final = st.text('aé€😀"\\ 1=-', max_size=6)
JSON_VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
FIELDS: Final = st.sampled_from(
    ["messageId", "message_id", "role", "parts", "contextId", "taskId", "metadata", "extensions", "text", "raw", "data"]
)
MESSAGES: Final = st.dictionaries(
    FIELDS, JSON_VALUES | st.lists(st.dictionaries(FIELDS, JSON_VALUES, max_size=3), max_size=3), max_size=6
)


@given(st.fixed_dictionaries({"message": MESSAGES}, optional={"configuration": JSON_VALUES, "metadata": JSON_VALUES}))
def test_any_json_is_a_request_or_refused_by_name(params: Json) -> None:
    try:
        request = VALIDATOR.read(SendMessageRequest, params)
    except InvalidParamsError as refused:
        named = [each for each in refused.violations if each.field and each.description]
        request = None
    else:
        named = []

    assert named or (request and request.message.message_id and request.message.parts)
