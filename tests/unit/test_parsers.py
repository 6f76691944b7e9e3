"""DynamoDB's answers are read to what botocore itself would read."""

import base64
import json
from typing import Any, Final

import pytest
from botocore.parsers import JSONParser
from botocore.session import get_session
from hypothesis import given
from hypothesis import strategies as st

from a2a_lambda.parsers import READ, FastParser, FastParsers

MODEL: Final = get_session().get_service_model("dynamodb")
OPERATIONS: Final = ["GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "BatchGetItem", "BatchWriteItem"]


def bytes_of(content: bytes) -> str:
    return base64.b64encode(content).decode()


def shape(operation: str) -> Any:
    return MODEL.operation_model(operation).output_shape


def response(body: Any, status: int = 200) -> dict[str, Any]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return {"body": content, "headers": {"x-amzn-RequestId": "R", "Date": "today"}, "status_code": status}


values: Final = st.recursive(
    st.one_of(
        st.text().map(lambda text: {"S": text}),
        st.integers().map(lambda number: {"N": str(number)}),
        st.binary().map(lambda content: {"B": bytes_of(content)}),
        st.booleans().map(lambda flag: {"BOOL": flag}),
        st.just({"NULL": True}),
        st.lists(st.text(), min_size=1).map(lambda texts: {"SS": texts}),
        st.lists(st.binary(), min_size=1).map(lambda contents: {"BS": [bytes_of(each) for each in contents]}),
    ),
    lambda children: st.one_of(
        st.lists(children).map(lambda elements: {"L": elements}),
        st.dictionaries(st.text(), children).map(lambda members: {"M": members}),
    ),
    max_leaves=8,
)
items: Final = st.dictionaries(st.text(), values, max_size=5)
capacity: Final = {"TableName": "T", "CapacityUnits": 2.5}


@given(items, items)
def test_every_answer_is_read_as_botocore_reads_it(item: dict[str, Any], other: dict[str, Any]) -> None:
    answers: dict[str, Any] = {
        "GetItem": {"Item": item, "ConsumedCapacity": capacity},
        "PutItem": {"Attributes": item, "ItemCollectionMetrics": {"SizeEstimateRangeGB": [0.5, 1.5]}},
        "UpdateItem": {"Attributes": item, "ConsumedCapacity": capacity},
        "DeleteItem": {},
        "Query": {"Items": [item, other], "Count": 2, "ScannedCount": 3, "LastEvaluatedKey": other},
        "BatchGetItem": {
            "Responses": {"T": [item, other]},
            "UnprocessedKeys": {"T": {"Keys": [item], "ConsistentRead": True, "ProjectionExpression": "a"}},
            "ConsumedCapacity": [capacity],
        },
        "BatchWriteItem": {
            "UnprocessedItems": {"T": [{"PutRequest": {"Item": item}}, {"DeleteRequest": {"Key": other}}]}
        },
    }
    assert answers.keys() == set(OPERATIONS)
    for operation, answer in answers.items():
        read = FastParser().parse(response(answer), shape(operation))

        assert read == JSONParser().parse(response(answer), shape(operation))


def test_what_is_read_here_are_answers_that_botocore_knows() -> None:
    assert {shape(operation).name for operation in OPERATIONS} == READ


@pytest.mark.parametrize("body", [{"Unknown": 1}, {"Item": None}, {}])
def test_what_should_not_be_there_makes_no_difference(body: Any) -> None:
    assert FastParser().parse(response(body), shape("GetItem")) == JSONParser().parse(response(body), shape("GetItem"))


def test_an_error_is_read_by_botocore() -> None:
    error = {"__type": "com.amazonaws#ConditionalCheckFailedException", "message": "no", "Item": {"a": {"S": "b"}}}

    read = FastParser().parse(response(error, status=400), shape("PutItem"))

    assert read["Error"]["Code"] == "ConditionalCheckFailedException"


def test_an_answer_of_another_call_is_read_by_botocore() -> None:
    body = {"Table": {"TableName": "T", "CreationDateTime": 1.0}}
    describing = shape("DescribeTable")

    assert FastParser().parse(response(body), describing) == JSONParser().parse(response(body), describing)


@pytest.mark.parametrize("body", [b"<html>", b"", b'{"Count": "one"}'])
def test_what_is_no_answer_is_left_to_botocore(body: bytes) -> None:
    assert FastParser().parse(response(body), shape("Query")) == JSONParser().parse(response(body), shape("Query"))


def test_another_protocol_has_botocores_parser() -> None:
    assert not isinstance(FastParsers().create_parser("query"), FastParser)
