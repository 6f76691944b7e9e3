"""Alarms and a dashboard, both under the parameter Alarms."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.template.deployments import Resources, deployed, of_type

PUSHES = ["on", "off"]
MINUTE = 60

# The queues in which a single message is one too many.
DEAD_LETTERS = {"WorkDeadLetters", "PushDeadLetters", "RelayFailures"}
# The metrics of the functions themselves, and what tells them apart.
OWN_METRICS = {
    "Requests": {"method", "outcome", "service"},
    "FailedRequests": {"service"},
    "RelayedChanges": {"outcome", "service"},
    "Tasks": {"state", "service"},
    "AuthenticationFailures": {"service"},
    "LimitedRequests": {"service"},
    "UnlimitedRequests": {"service"},
    "Conflicts": {"service"},
    "Turns": {"outcome", "service"},
    "Deliveries": {"outcome", "service"},
    "SwitchedOffConfigs": {"service"},
}
OF_PUSH = {"Deliveries", "SwitchedOffConfigs"}

SEARCH = re.compile(
    r"SEARCH\('\{a2a,(?P<dimensions>[\w,]+)\} MetricName=\"(?P<name>\w+)\" service=\"local\"', 'Sum', 300\)"
)


@pytest.fixture(params=PUSHES)
def resources(request: pytest.FixtureRequest) -> Resources:
    return deployed(Push=request.param, Alarms="on")


def alarms(resources: Resources) -> dict[tuple[str, str], dict[str, Any]]:
    """The alarms by what they watch: a metric's name, and the function, queue or outcome."""
    found = (alarm["Properties"] for alarm in of_type(resources, "AWS::CloudWatch::Alarm").values())
    return {(alarm["MetricName"], alarm["Dimensions"][-1]["Value"]): alarm for alarm in found}


def functions(resources: Resources) -> set[str]:
    return set(of_type(resources, "AWS::Lambda::Function"))


def letters(resources: Resources) -> set[str]:
    return DEAD_LETTERS & set(resources)


def watched(resources: Resources) -> set[tuple[str, str]]:
    return {
        *(("ApproximateNumberOfMessagesVisible", f"{queue}.QueueName") for queue in letters(resources)),
        *((metric, function) for metric in ("Errors", "Throttles") for function in functions(resources)),
        ("IteratorAge", "RelayFunction"),
        ("ApproximateAgeOfOldestMessage", "WorkQueue.QueueName"),
        ("FailedRequests", "local"),
        ("Turns", "failed"),
        *(("RelayedChanges", outcome) for outcome in ("broken", "failed")),
        *(("Deliveries", outcome) for outcome in ("broken", "failed") if "PushFunction" in resources),
    }


# --- Alarms ---


def test_dead_letters_functions_the_stream_and_waiting_turns_are_watched(resources: Resources) -> None:
    assert set(alarms(resources)) == watched(resources)


def test_every_alarm_is_sent_to_the_topic_and_says_what_is_wrong(resources: Resources) -> None:
    for alarm in alarms(resources).values():
        assert alarm["AlarmActions"] == ["AlarmTopic"]
        assert alarm["AlarmDescription"].endswith(".")


def test_an_idle_server_is_a_healthy_one(resources: Resources) -> None:
    """What does not run has no metrics."""
    for alarm in alarms(resources).values():
        assert alarm["TreatMissingData"] == "notBreaching"


def test_a_single_dead_letter_error_or_throttle_is_an_alarm(resources: Resources) -> None:
    for (metric, _), alarm in alarms(resources).items():
        if metric in {"ApproximateNumberOfMessagesVisible", "Errors", "Throttles", *OWN_METRICS}:
            assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanOrEqualToThreshold", 1)
            assert alarm["EvaluationPeriods"] == 1


def test_a_functions_own_metrics_are_watched_as_they_are_emitted(resources: Resources) -> None:
    for (metric, _), alarm in alarms(resources).items():
        if metric in OWN_METRICS:
            dimensions = {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
            assert (alarm["Namespace"], dimensions["service"]) == ("a2a", "local")
            assert set(dimensions) == OWN_METRICS[metric]


def test_a_turn_that_waits_longer_than_the_longest_takes_is_an_alarm(
    template: dict[str, Any], resources: Resources
) -> None:
    """Its message may be as old as a turn and the check behind it, which is delayed for as long."""
    longest = max(template["Parameters"]["WorkerSeconds"]["AllowedValues"])

    assert alarms(resources)["ApproximateAgeOfOldestMessage", "WorkQueue.QueueName"]["Threshold"] == 2 * longest


def test_a_stream_that_is_a_minute_behind_is_an_alarm(resources: Resources) -> None:
    assert alarms(resources)["IteratorAge", "RelayFunction"]["Threshold"] == MINUTE * 1000


def test_the_topic_is_encrypted_with_a_key_that_cloudwatch_may_use(resources: Resources) -> None:
    key = resources["AlarmKey"]["Properties"]

    account, cloudwatch = key["KeyPolicy"]["Statement"]

    assert resources["AlarmTopic"]["Properties"]["KmsMasterKeyId"] == "AlarmKey"
    assert key["EnableKeyRotation"] is True
    assert account["Principal"] == {"AWS": "arn:aws:iam::123456789012:root"}
    assert cloudwatch["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert cloudwatch["Action"] == ["kms:Decrypt", "kms:GenerateDataKey*"]
    assert cloudwatch["Condition"] == {"StringEquals": {"aws:SourceAccount": "123456789012"}}


def test_what_costs_money_at_rest_is_asked_for(template: dict[str, Any]) -> None:
    assert template["Parameters"]["Alarms"]["Default"] == "off"


# --- The dashboard ---


def widgets(resources: Resources) -> list[dict[str, Any]]:
    body = json.loads(resources["Dashboard"]["Properties"]["DashboardBody"])
    found: list[dict[str, Any]] = [widget["properties"] for widget in body["widgets"]]
    return found


def metrics(resources: Resources) -> Iterator[tuple[str, str, dict[str, str]]]:
    """The namespace, name and dimensions of each metric that is drawn by name."""
    for widget in widgets(resources):
        for metric in widget["metrics"]:
            namespace, *rest = (part for part in metric if isinstance(part, str)) if len(metric) > 1 else ("",)
            if namespace:
                name, *pairs = rest
                yield namespace, name, dict(zip(pairs[::2], pairs[1::2], strict=True))


def searches(resources: Resources) -> Iterator[tuple[str, set[str]]]:
    """The name and dimensions of each metric that is drawn by search, once for every value that there is."""
    for widget in widgets(resources):
        for metric in widget["metrics"]:
            if len(metric) == 1:
                found = SEARCH.fullmatch(metric[0]["expression"])
                assert found, metric
                yield found["name"], set(found["dimensions"].split(","))


def drawn(resources: Resources, name: str) -> set[str]:
    """What a metric is drawn of."""
    return {next(iter(dimensions.values())) for _, metric, dimensions in metrics(resources) if metric == name}


def test_the_dashboard_draws_every_metric_of_the_functions(resources: Resources) -> None:
    named = {name: set(dimensions) for namespace, name, dimensions in metrics(resources) if namespace == "a2a"}

    shown = {**named, **dict(searches(resources))}

    has_push = "PushFunction" in resources
    assert shown == {name: by for name, by in OWN_METRICS.items() if has_push or name not in OF_PUSH}


def test_the_dashboard_is_this_stacks_alone(resources: Resources) -> None:
    for namespace, _, dimensions in metrics(resources):
        assert namespace != "a2a" or dimensions["service"] == "local"


@pytest.mark.parametrize("metric", ["Duration", "Errors", "Throttles"])
def test_the_dashboard_draws_every_function(resources: Resources, metric: str) -> None:
    assert drawn(resources, metric) == functions(resources)


def test_the_dashboard_draws_every_queue(resources: Resources) -> None:
    queues = {f"{name}.QueueName" for name in of_type(resources, "AWS::SQS::Queue")}

    assert drawn(resources, "ApproximateNumberOfMessagesVisible") == queues
    assert drawn(resources, "ApproximateAgeOfOldestMessage") == queues - {
        f"{name}.QueueName" for name in letters(resources)
    }


@pytest.mark.parametrize("metric", ["ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits"])
def test_the_dashboard_draws_the_units_of_every_table(resources: Resources, metric: str) -> None:
    assert drawn(resources, metric) == set(of_type(resources, "AWS::DynamoDB::Table"))


def test_the_dashboard_is_of_the_stacks_region(resources: Resources) -> None:
    assert {widget["region"] for widget in widgets(resources)} == {"us-east-1"}
