"""`make run` and `make database` as whole programs: how they start, are configured, and end."""

import errno
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pytest
from botocore.session import get_session

from local.server import listen, port_of, serve_in_background
from tests.local.processes import DATABASE, GATEWAY, SMALL, SMALL_GATEWAY, Command, eventually

MAKE = shutil.which("make")
CURL = shutil.which("curl")

with_make = pytest.mark.skipif(MAKE is None, reason="needs make")

AGENT = """
from a2a_lambda.agent import artifact, text
from order_status import OrderStatusAgent

class Agent(OrderStatusAgent):
    def respond(self, turn):
        yield artifact([text("from elsewhere")], name="mine")
"""


def is_served(address: str) -> bool:
    parts = urlsplit(address)
    with socket.socket() as probe:
        return probe.connect_ex((parts.hostname, parts.port)) == 0


def call(gateway: str, method: str, params: dict[str, Any]) -> Any:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    with urllib.request.urlopen(  # noqa: S310 - the gateway's own address
        urllib.request.Request(f"{gateway}/a2a", json.dumps(request).encode(), headers),  # noqa: S310 - the same
        timeout=60,
    ) as response:
        return json.load(response)


def send(gateway: str, text: str, message_id: str, **message: str) -> Any:
    parts = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}
    return call(gateway, "SendMessage", {"message": parts | message})["result"]["task"]


@pytest.mark.skipif(CURL is None, reason="needs curl")
def test_the_printed_command_works_as_it_is() -> None:
    with Command(GATEWAY) as gateway:
        gateway.ready()
        (line,) = (line for line in gateway.output.splitlines() if line.startswith("Try it"))
        command = line.removeprefix("Try it").strip()
        answered = subprocess.run(["/bin/sh", "-c", command], check=True, capture_output=True).stdout
        assert json.loads(answered)["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert gateway.until("POST /a2a").startswith("POST /a2a SendMessage TASK_STATE_COMPLETED 200 ")


def test_the_cards_address_is_printed() -> None:
    with Command(GATEWAY) as gateway:
        gateway.ready()
        card = f"{gateway.gateway}/.well-known/agent-card.json"
        assert card in gateway.output
        with urllib.request.urlopen(card, timeout=60) as response:  # noqa: S310 - the gateway's own address
            assert json.load(response)["supportedInterfaces"][0]["url"] == f"{gateway.gateway}/a2a"


@pytest.mark.parametrize("stop", [Command.press_ctrl_c, lambda gateway: gateway.send(signal.SIGTERM)])
def test_a_signal_ends_gateway_and_database_without_a_word(stop: Any) -> None:
    with Command(SMALL_GATEWAY) as gateway:
        said = gateway.ready().output
        assert is_served(gateway.gateway)
        assert is_served(gateway.database)
        assert stop(gateway) == 0
        assert gateway.output == said
        assert not is_served(gateway.gateway)
        assert not is_served(gateway.database)


def test_ctrl_c_while_a_function_is_still_loading_ends_everything_too(tmp_path: Path) -> None:
    shutil.copytree(SMALL.parent, tmp_path, dirs_exist_ok=True)
    slow = "import threading\nprint('loading', flush=True)\nthreading.Event().wait()"
    (tmp_path / "functions/echo/app.py").write_text(slow, encoding="utf-8")
    with Command([sys.executable, "-m", "local", "--template", str(tmp_path / "template.yaml"), "gateway"]) as gateway:
        gateway.until("loading")
        assert gateway.press_ctrl_c() == 0
        assert gateway.output == "loading\n"


def test_a_killed_gateway_takes_its_database_with_it() -> None:
    with Command(SMALL_GATEWAY) as gateway:
        gateway.ready()
        assert gateway.send(signal.SIGKILL) == -signal.SIGKILL
        assert eventually(lambda: not is_served(gateway.database))


@pytest.mark.parametrize(
    ("command", "variable"), [(SMALL_GATEWAY, "PORT"), (SMALL_GATEWAY, "DB_PORT"), (DATABASE, "DB_PORT")]
)
def test_a_taken_port_is_one_clear_line(command: tuple[str, ...], variable: str) -> None:
    with listen(0) as taken, Command(command, {variable: str(port_of(taken))}) as refused:
        assert refused.end() == 1
        reason = os.strerror(errno.EADDRINUSE)
        assert refused.output == f"Error: port {port_of(taken)}: {reason}. Choose another one with {variable}=\n"


@pytest.mark.parametrize("port", ["x", "70000", "-1"])
def test_what_is_no_port_is_one_clear_line(port: str) -> None:
    with Command(SMALL_GATEWAY, {"PORT": port}) as refused:
        assert refused.end() == 1
        assert refused.output == f"Error: PORT={port} is not a port\n"


def test_a_setting_that_cannot_be_used_is_one_clear_line() -> None:
    with Command(GATEWAY, {"MAX_BODY_BYTES": "many"}) as refused:
        assert refused.end() == 1
        assert refused.output.startswith("Error: ")
        assert "MAX_BODY_BYTES" in refused.output
        assert refused.output.count("\n") == 1


def test_a_database_that_does_not_answer_is_one_clear_line() -> None:
    with listen(0) as taken:
        nobody = f"http://127.0.0.1:{port_of(taken)}"
    with Command(SMALL_GATEWAY, {"DYNAMODB_ENDPOINT": nobody}) as refused:
        assert refused.end() == 1
        assert refused.output == f"Error: no DynamoDB answers at {nobody}\n"


@with_make
def test_make_hands_its_variables_on(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(AGENT, encoding="utf-8")
    settings = ["A2A_AGENT=mine:Agent", f"PYTHONPATH={tmp_path}", "MAX_BODY_BYTES=300", "PORT=0", "DB_PORT=0"]
    with Command([str(MAKE), "--silent", "run", *settings]) as running:
        gateway = running.ready().gateway
        assert send(gateway, "anything", "1")["artifacts"][0]["parts"][0]["text"] == "from elsewhere"
        with pytest.raises(urllib.error.HTTPError, match="413") as refused:
            send(gateway, "x" * 300, "2")
        refused.value.close()
        running.send(signal.SIGTERM)
        assert eventually(lambda: not is_served(gateway) and not is_served(running.database))
        assert "Traceback" not in running.output


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])  # noqa: S104 - the test's own database
def test_the_database_listens_where_it_is_told_to(host: str) -> None:
    with Command(DATABASE, {"DB_HOST": host}) as database:
        endpoint = database.ready().database
        assert urlsplit(endpoint).hostname == host
        assert ("Warning: whoever reaches" in database.output) == (host != "127.0.0.1")
        with Command(GATEWAY, {"DYNAMODB_ENDPOINT": endpoint}) as gateway:
            assert send(gateway.ready().gateway, "A-1001", "1")["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host"])
def test_a_host_that_is_not_this_machines_is_one_clear_line(host: str) -> None:
    with Command(DATABASE, {"DB_HOST": host}) as refused:
        assert refused.end() == 1
        assert refused.output.startswith(f"Error: port 0 of {host}: ")
        assert refused.output.endswith("Choose another one with DB_PORT= or DB_HOST=\n")


def test_metrics_are_not_written_to_the_console() -> None:
    with Command(GATEWAY) as gateway:
        send(gateway.ready().gateway, "A-1001", "1")
        assert gateway.until("POST /a2a")
        assert gateway.press_ctrl_c() == 0
        assert "CloudWatchMetrics" not in gateway.output


def keys(gateway: str) -> list[Any]:
    with urllib.request.urlopen(f"{gateway}/.well-known/jwks.json", timeout=60) as response:  # noqa: S310 - the same
        listed: list[Any] = json.load(response)["keys"]
        return listed


def signatures(gateway: str) -> list[Any]:
    with urllib.request.urlopen(f"{gateway}/.well-known/agent-card.json", timeout=60) as response:  # noqa: S310
        made: list[Any] = json.load(response)["signatures"]
        return made


def test_a_key_that_is_created_signs_the_card() -> None:
    with Command(GATEWAY, {"SIGNING_KEY": "create"}) as gateway:
        address = gateway.ready().gateway
        assert len(keys(address)) == 1
        assert signatures(address)


def test_a_key_is_created_in_the_database_that_is_used() -> None:
    with Command(DATABASE) as database:
        settings = {"DYNAMODB_ENDPOINT": database.ready().database, "SIGNING_KEY": "create"}
        with Command(GATEWAY, settings) as gateway:
            assert signatures(gateway.ready().gateway)


def test_a_key_is_created_in_the_kms_that_is_named() -> None:
    with Command(DATABASE) as kms, Command(GATEWAY, {"SIGNING_KEY": "create"} | {"KMS_ENDPOINT": ""}) as own:
        settings = {"SIGNING_KEY": "create", "KMS_ENDPOINT": kms.ready().database}
        with Command(GATEWAY, settings) as gateway:
            assert signatures(gateway.ready().gateway)
            assert gateway.database != kms.database
        assert signatures(own.ready().gateway)


def test_a_kms_that_does_not_answer_is_one_clear_line() -> None:
    with listen(0) as taken:
        nobody = f"http://127.0.0.1:{port_of(taken)}"
    with Command(GATEWAY, {"SIGNING_KEY": "create", "KMS_ENDPOINT": nobody}) as refused:
        assert refused.end() == 1
        assert refused.output == f"Error: SIGNING_KEY=create: no KMS answers at {nobody}\n"


def test_a_kms_that_is_no_address_is_one_clear_line() -> None:
    with Command(GATEWAY, {"SIGNING_KEY": "create", "KMS_ENDPOINT": "x"}) as refused:
        assert refused.end() == 1
        assert refused.output == "Error: SIGNING_KEY=create: no KMS answers at x\n"


def test_a_key_is_not_created_in_a_database_elsewhere() -> None:
    settings = {"SIGNING_KEY": "create", "DYNAMODB_ENDPOINT": "https://dynamodb.example.invalid"}
    with Command(GATEWAY, settings) as refused:
        assert refused.end() == 1
        assert "KMS_ENDPOINT" in refused.output
        assert refused.output.count("\n") == 1


def test_gateways_with_one_database_continue_each_others_tasks() -> None:
    with Command(DATABASE) as database:
        endpoint = database.ready().database
        with (
            Command(GATEWAY, {"DYNAMODB_ENDPOINT": endpoint}) as one,
            Command(GATEWAY, {"DYNAMODB_ENDPOINT": endpoint, "AWS_REGION": "eu-west-1"}) as other,
        ):
            asked = send(one.ready().gateway, "Where is my order?", "1")
            assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
            assert call(other.ready().gateway, "GetTask", {"id": asked["id"]})["result"]["id"] == asked["id"]
            done = send(other.gateway, "It is A-1001", "2", taskId=asked["id"])
            assert done["status"]["state"] == "TASK_STATE_COMPLETED"
            read = call(one.gateway, "GetTask", {"id": asked["id"]})["result"]
            assert read["status"] == done["status"]


def put_note(endpoint: str, note: str) -> None:
    client(endpoint).put_item(TableName="ItemsTable", Item={"id": {"S": note}, "note": {"S": note}})


def test_a_change_of_a_table_invokes_the_functions_behind_it() -> None:
    with Command(SMALL_GATEWAY) as gateway:
        put_note(gateway.ready().database, "hello")
        assert gateway.until("Noted") == "Noted: hello\n"
        assert gateway.until("NotesFunction").startswith("NotesFunction 1 record ")
        assert "ChangesFunction 1 record " in gateway.output
        assert gateway.press_ctrl_c() == 0


def test_gateways_with_one_database_share_its_queues() -> None:
    with Command([*SMALL_GATEWAY[:-1], "database"]) as database:
        endpoint = database.ready().database
        with Command(SMALL_GATEWAY, {"DYNAMODB_ENDPOINT": endpoint}) as gateway:
            put_note(gateway.ready().database, "before")
            gateway.until("Noted: before")
        with Command(SMALL_GATEWAY, {"DYNAMODB_ENDPOINT": endpoint}) as gateway:
            put_note(gateway.ready().database, "after")
            gateway.until("Noted: after")


def dynamodb_alone(endpoint: str) -> WSGIApplication:
    """The DynamoDB at the endpoint, and nothing else of AWS that may be there."""

    def serve(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        target, body = environ["HTTP_X_AMZ_TARGET"], environ["wsgi.input"].read()
        if not target.startswith("DynamoDB"):
            start_response("404 Not Found", [])
            return [b""]
        headers = {"X-Amz-Target": target, "Authorization": environ["HTTP_AUTHORIZATION"]}
        connection = http.client.HTTPConnection(urlsplit(endpoint).netloc)
        with closing(connection):
            connection.request("POST", "/", body, headers | {"Content-Type": "application/x-amz-json-1.0"})
            answer = connection.getresponse()
            start_response(f"{answer.status} {answer.reason}", [])
            return [answer.read()]

    return serve


def test_without_queues_it_is_said_that_nothing_happens_in_the_background(dynamodb: str) -> None:
    listener = listen(0)
    serve_in_background(dynamodb_alone(dynamodb), listener, 2)
    alone = f"http://127.0.0.1:{port_of(listener)}"
    with Command(SMALL_GATEWAY, {"DYNAMODB_ENDPOINT": alone}) as gateway:
        gateway.until("Warning: no SQS answers at")
        gateway.ready()
    with Command(SMALL_GATEWAY, {"DYNAMODB_ENDPOINT": alone, "SQS_ENDPOINT": dynamodb}) as gateway:
        assert "Warning" not in gateway.ready().output
        put_note(alone, "hello")
        gateway.until("Noted: hello")


def test_a_table_without_a_stream_is_said_to_have_none() -> None:
    with Command(DATABASE) as database:
        endpoint = database.ready().database
        client(endpoint).create_table(
            TableName="ItemsTable",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        with Command(SMALL_GATEWAY, {"DYNAMODB_ENDPOINT": endpoint}) as gateway:
            line = "Warning: ChangesFunction does not run: the table ItemsTable has no stream"
            assert line in gateway.ready().output


def test_an_sqs_that_does_not_answer_is_one_clear_line() -> None:
    with listen(0) as taken:
        nobody = f"http://127.0.0.1:{port_of(taken)}"
    with Command(SMALL_GATEWAY, {"SQS_ENDPOINT": nobody}) as refused:
        assert refused.end() == 1
        assert refused.output.startswith(f"Error: the SQS at {nobody} cannot be used")
        assert refused.output.count("\n") == 1


def client(endpoint: str) -> Any:
    return get_session().create_client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="local",
        aws_secret_access_key="local",  # noqa: S106 - nobody's
    )


def test_the_database_alone_has_the_templates_tables_and_ends_with_ctrl_c() -> None:
    with Command(DATABASE) as database:
        endpoint = database.ready().database
        assert sorted(client(endpoint).list_tables()["TableNames"]) == ["CallersTable", "TasksTable"]
        described = client(endpoint).describe_table(TableName="TasksTable")["Table"]
        assert [key["AttributeName"] for key in described["KeySchema"]] == ["task_id", "entry"]
        assert [index["IndexName"] for index in described["GlobalSecondaryIndexes"]] == ["tasks-by-owner"]
        assert database.press_ctrl_c() == 0
        assert not is_served(endpoint)
