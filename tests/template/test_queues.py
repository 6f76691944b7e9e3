"""The way of work from the tasks' table to the functions that do it, and what becomes of failures."""

import json
from typing import Any

import pytest

from a2a_lambda.delivering import MOST_RECEIPTS, POST_SECONDS
from local.template import queue_arn
from tests.template.deployments import Resources, deployed, of_type, statements

LONGEST_RETENTION = 14 * 24 * 3600
LEASE_BEYOND_TIMEOUT = 10

# Each queue's dead letters, and the receipts after which SQS puts a message there.
DEAD_LETTERS = {"WorkQueue": ("WorkDeadLetters", 100), "PushQueue": ("PushDeadLetters", 1000)}
KEPT_FOR_PEOPLE = {"WorkDeadLetters", "PushDeadLetters", "RelayFailures"}
# The queue that each function serves, and the parameter that says how many messages at once.
SERVED = {
    "WorkerFunction": ("WorkQueue", "WorkerConcurrency"),
    "PushFunction": ("PushQueue", "PushConcurrency"),
}


@pytest.fixture(scope="module")
def resources() -> Resources:
    return deployed(Push="on")


@pytest.fixture(params=sorted(DEAD_LETTERS))
def queue(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def properties(resources: Resources, name: str) -> dict[str, Any]:
    found: dict[str, Any] = resources[name]["Properties"]
    return found


def mapping(resources: Resources, function: str) -> dict[str, Any]:
    """The one event source of a function."""
    mappings = of_type(resources, "AWS::Lambda::EventSourceMapping").values()
    (found,) = (each["Properties"] for each in mappings if each["Properties"]["FunctionName"] == function)
    properties: dict[str, Any] = found
    return properties


# --- From the table to the relay ---


def test_the_tasks_stream_holds_items_as_they_are_after_the_write(resources: Resources) -> None:
    assert properties(resources, "TasksTable")["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}
    assert "StreamSpecification" not in properties(resources, "CallersTable")


def test_the_relay_reads_the_tasks_stream_in_order_and_from_its_beginning(resources: Resources) -> None:
    source = mapping(resources, "RelayFunction")

    assert source["EventSourceArn"] == "TasksTable.StreamArn"
    assert (source["StartingPosition"], source["ParallelizationFactor"]) == ("TRIM_HORIZON", 1)


def test_an_item_without_an_outbox_invokes_nothing(resources: Resources) -> None:
    (only,) = mapping(resources, "RelayFunction")["FilterCriteria"]["Filters"]

    assert json.loads(only["Pattern"]) == {"dynamodb": {"NewImage": {"outbox": {"S": [{"exists": True}]}}}}


def test_a_record_that_cannot_be_relayed_holds_up_the_others_for_a_while_only(resources: Resources) -> None:
    source = mapping(resources, "RelayFunction")

    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert source["BisectBatchOnFunctionError"] is True
    assert source["MaximumRetryAttempts"] == 10
    assert source["DestinationConfig"] == {"OnFailure": {"Destination": queue_arn("RelayFailures")}}


# --- From the queues to the worker and the push function ---


@pytest.mark.parametrize("function", SERVED)
def test_a_function_is_given_one_message_and_says_whether_it_failed(resources: Resources, function: str) -> None:
    source = mapping(resources, function)

    assert source["EventSourceArn"] == queue_arn(SERVED[function][0])
    assert (source["BatchSize"], source["FunctionResponseTypes"]) == (1, ["ReportBatchItemFailures"])


@pytest.mark.parametrize("function", SERVED)
def test_a_parameter_says_how_much_is_done_at_once(template: dict[str, Any], function: str) -> None:
    parameter = SERVED[function][1]

    declared = template["Parameters"][parameter]
    source = mapping(deployed(Push="on", **{parameter: "77"}), function)

    assert source["ScalingConfig"] == {"MaximumConcurrency": "77"}
    # Lambda's own limits.
    assert (declared["MinValue"], declared["MaxValue"]) == (2, 1000)


@pytest.mark.parametrize("function", SERVED)
def test_a_function_is_told_of_the_queue_that_it_serves(resources: Resources, function: str) -> None:
    queue = SERVED[function][0]

    told = properties(resources, function)["Environment"]["Variables"]

    assert told["WORK_QUEUE" if queue == "WorkQueue" else "PUSH_QUEUE"] == queue


def test_a_turn_is_hidden_for_longer_than_a_lease_whatever_workerseconds_is(template: dict[str, Any]) -> None:
    choices = template["Parameters"]["WorkerSeconds"]["AllowedValues"]

    for seconds in choices:
        chosen = deployed(WorkerSeconds=str(seconds))
        assert properties(chosen, "WorkerFunction")["Timeout"] == str(seconds)
        assert properties(chosen, "WorkQueue")["VisibilityTimeout"] > seconds + LEASE_BEYOND_TIMEOUT
    assert choices == sorted(choices)
    assert choices[-1] == LAMBDAS_LONGEST


LAMBDAS_LONGEST = 900


def test_an_update_is_hidden_for_longer_than_the_push_function_takes(resources: Resources) -> None:
    hidden = properties(resources, "PushQueue")["VisibilityTimeout"]

    assert hidden >= 3 * properties(resources, "PushFunction")["Timeout"]


# --- Queues ---


def test_the_queues_are_these(resources: Resources) -> None:
    assert set(of_type(resources, "AWS::SQS::Queue")) == {*DEAD_LETTERS, *KEPT_FOR_PEOPLE}


def test_queues_are_encrypted(resources: Resources) -> None:
    for name, queue in of_type(resources, "AWS::SQS::Queue").items():
        assert queue["Properties"]["SqsManagedSseEnabled"] is True, name


@pytest.mark.parametrize("push", ["on", "off"])
def test_nobody_reaches_a_queue_without_tls(push: str) -> None:
    chosen = deployed(Push=push)
    policy = properties(chosen, "QueuesPolicy")

    (statement,) = policy["PolicyDocument"]["Statement"]

    assert set(policy["Queues"]) == set(of_type(chosen, "AWS::SQS::Queue"))
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "sqs:*")
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_a_message_that_cannot_be_attended_to_is_put_aside(resources: Resources, queue: str) -> None:
    letters, receipts = DEAD_LETTERS[queue]

    assert properties(resources, queue)["RedrivePolicy"] == {
        "deadLetterTargetArn": queue_arn(letters),
        "maxReceiveCount": receipts,
    }


def test_the_push_function_puts_a_message_aside_before_the_queue_does(resources: Resources) -> None:
    assert properties(resources, "PushQueue")["RedrivePolicy"]["maxReceiveCount"] > MOST_RECEIPTS


def test_a_queued_turns_only_message_outlasts_hours_without_the_table(resources: Resources) -> None:
    queue = properties(resources, "WorkQueue")

    assert queue["RedrivePolicy"]["maxReceiveCount"] * queue["VisibilityTimeout"] >= 8 * 3600


def test_the_push_function_has_time_for_several_slow_webhooks(resources: Resources) -> None:
    assert properties(resources, "PushFunction")["Timeout"] >= 4 * POST_SECONDS


def test_dead_letters_are_kept_as_long_as_sqs_can(resources: Resources) -> None:
    for name in KEPT_FOR_PEOPLE:
        assert properties(resources, name)["MessageRetentionPeriod"] == LONGEST_RETENTION


def test_dead_letters_outlast_the_queue_that_they_come_from(resources: Resources, queue: str) -> None:
    kept = properties(resources, DEAD_LETTERS[queue][0])["MessageRetentionPeriod"]

    assert kept > properties(resources, queue)["MessageRetentionPeriod"]


def test_updates_come_in_order_also_out_of_the_dead_letters(resources: Resources) -> None:
    for name in ("PushQueue", "PushDeadLetters"):
        assert properties(resources, name)["FifoQueue"] is True
        assert properties(resources, name)["ContentBasedDeduplication"] is False


def test_turns_are_not_held_up_by_each_other(resources: Resources) -> None:
    for name in ("WorkQueue", "WorkDeadLetters", "RelayFailures"):
        assert "FifoQueue" not in properties(resources, name)


def test_one_configs_updates_do_not_slow_down_anothers(resources: Resources) -> None:
    queue = properties(resources, "PushQueue")

    assert (queue["DeduplicationScope"], queue["FifoThroughputLimit"]) == ("messageGroup", "perMessageGroupId")


# --- Push notifications, on or off ---


def test_a_deployment_sends_nothing_to_webhooks_unless_it_is_told_to(template: dict[str, Any]) -> None:
    assert template["Parameters"]["Push"]["Default"] == "off"


def test_no_deployment_sends_to_its_own_machine(resources: Resources) -> None:
    for function in ("RpcFunction", "PushFunction"):
        assert properties(resources, function)["Environment"]["Variables"]["PUSH_ALLOW_LOCAL"] == "off"


def test_without_push_the_relay_may_send_to_the_other_queues_only() -> None:
    rights = statements(deployed(Push="off"), "RelayFunction")

    (send,) = (statement for statement in rights if statement["Action"] == "sqs:SendMessage")
    assert send["Resource"] == [queue_arn("WorkQueue"), queue_arn("RelayFailures")]
