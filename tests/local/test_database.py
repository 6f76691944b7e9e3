"""The embedded DynamoDB, and the tables in it."""

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest
from botocore.session import get_session

from local.database import endpoint_of, one_database, shared
from local.deployment import Table
from local.errors import DatabaseUnreachableError
from local.server import listen
from local.tables import create_missing_tables
from local.template import Value


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


def table(name: str, *attributes: str, expiry: str | None = None) -> Table:
    """A table with one or two key attributes."""
    creation: dict[str, Value] = {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": attribute, "AttributeType": "S"} for attribute in attributes],
        "KeySchema": [
            {"AttributeName": attribute, "KeyType": kind}
            for attribute, kind in zip(attributes, ("HASH", "RANGE"), strict=False)
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
    return Table(name, creation, expiry)


def client(endpoint: str, region: str = "us-east-1", key: str = "local") -> Any:
    return get_session().create_client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name=region,
        aws_access_key_id=key,
        aws_secret_access_key="local",  # noqa: S106 - nobody's
    )


def test_a_missing_table_is_created_with_its_expiry(dynamodb: str) -> None:
    create_missing_tables(dynamodb, [table("created", "id", "entry", expiry="expires_at")])
    described = client(dynamodb).describe_table(TableName="created")["Table"]
    assert [key["AttributeName"] for key in described["KeySchema"]] == ["id", "entry"]
    assert client(dynamodb).describe_time_to_live(TableName="created")["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "ENABLED",
        "AttributeName": "expires_at",
    }


def test_an_existing_table_is_left_as_it_is(dynamodb: str) -> None:
    create_missing_tables(dynamodb, [table("existing", "id")])
    client(dynamodb).put_item(TableName="existing", Item={"id": {"S": "1"}})
    create_missing_tables(dynamodb, [table("existing", "other", expiry="expires_at")])
    assert client(dynamodb).scan(TableName="existing")["Count"] == 1
    expiry = client(dynamodb).describe_time_to_live(TableName="existing")["TimeToLiveDescription"]
    assert expiry == {"TimeToLiveStatus": "DISABLED"}


def test_gateways_that_start_together_create_a_table_once(dynamodb: str) -> None:
    with ThreadPoolExecutor(4) as gateways:
        for done in [gateways.submit(create_missing_tables, dynamodb, [table("raced", "id")]) for _ in range(4)]:
            done.result()
    assert "raced" in client(dynamodb).list_tables()["TableNames"]


def test_everybody_sees_the_same_database(dynamodb: str) -> None:
    create_missing_tables(dynamodb, [table("seen", "id")])
    elsewhere = client(dynamodb, region="eu-central-1", key="other")
    assert "seen" in elsewhere.list_tables()["TableNames"]


def test_parallel_updates_are_all_counted(dynamodb: str) -> None:
    create_missing_tables(dynamodb, [table("counted", "id")])
    caller = client(dynamodb)

    def count(_: int) -> None:
        caller.update_item(
            TableName="counted",
            Key={"id": {"S": "1"}},
            UpdateExpression="ADD n :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )

    with ThreadPoolExecutor(8) as callers:
        list(callers.map(count, range(80)))
    assert caller.get_item(TableName="counted", Key={"id": {"S": "1"}})["Item"]["n"] == {"N": "80"}


def test_of_parallel_conditional_writes_one_wins(dynamodb: str) -> None:
    create_missing_tables(dynamodb, [table("won", "id")])
    caller = client(dynamodb)

    def win(who: int) -> bool:
        try:
            caller.put_item(
                TableName="won",
                Item={"id": {"S": "1"}, "who": {"N": str(who)}},
                ConditionExpression="attribute_not_exists(id)",
            )
        except caller.exceptions.ConditionalCheckFailedException:
            return False
        return True

    with ThreadPoolExecutor(8) as callers:
        assert sum(callers.map(win, range(40))) == 1


def calls_at_a_time(target: str, region: str = "us-east-1") -> int:
    """How many of two calls the AWS behind the lock sees at the same time."""
    inside: set[int] = set()
    most = 0
    both = threading.Barrier(2)

    def aws(_environ: WSGIEnvironment, _start_response: StartResponse) -> Iterable[bytes]:
        nonlocal most
        inside.add(threading.get_ident())
        most = max(most, len(inside))
        with suppress(threading.BrokenBarrierError):
            both.wait(0.2)
        most = max(most, len(inside))
        inside.discard(threading.get_ident())
        return []

    application = shared(aws)

    def call() -> None:
        application({"HTTP_X_AMZ_TARGET": target, "HTTP_AUTHORIZATION": region}, lambda *_: lambda _: None)

    callers = [threading.Thread(target=call) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return most


@pytest.mark.parametrize("target", ["DynamoDB_20120810.PutItem", "DynamoDBStreams_20120810.GetRecords"])
def test_dynamodb_is_called_once_at_a_time(target: str) -> None:
    assert calls_at_a_time(target) == 1


def test_other_services_are_called_in_parallel() -> None:
    assert calls_at_a_time("TrentService.Sign") == 2


def test_no_credentials_and_no_region_choose_the_database() -> None:
    signed = "AWS4-HMAC-SHA256 Credential=ASIAX/20260926/eu-west-1/dynamodb/aws4_request, SignedHeaders=host"
    assert "Credential=local/20260926/us-east-1/dynamodb/aws4_request," in one_database(signed)
    assert one_database("") == ""


@pytest.mark.parametrize("endpoint", ["x", "127.0.0.1:8000", "http://"])
def test_what_is_no_address_is_an_error(endpoint: str) -> None:
    with pytest.raises(DatabaseUnreachableError, match=endpoint):
        create_missing_tables(endpoint, [table("any", "id")])


def test_a_database_without_the_right_to_use_it_is_an_error(dynamodb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "none")
    monkeypatch.setenv("AWS_CONFIG_FILE", "none")
    with pytest.raises(DatabaseUnreachableError, match="credentials"):
        create_missing_tables(dynamodb, [table("any", "id")])


def test_a_database_that_is_not_there_is_an_error() -> None:
    listener = listen(0)
    endpoint = endpoint_of(listener)
    listener.close()
    with pytest.raises(DatabaseUnreachableError, match=endpoint):
        create_missing_tables(endpoint, [table("any", "id")])
