"""Every value of each parameter, one changed at a time from the defaults: what no deployment may be without.

A number is tried at its limits and its default, a text at its default and at something that a deployment has.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from re import fullmatch
from typing import Any, Final

import pytest

from local.template import load, mapping, queue_arn, sequence, text
from tests.template import test_queues, test_template
from tests.template.deployments import Resources, deployed, of_type, refusals
from tests.template.sam import ROOT
from tests.template.test_callers import CARD_ROUTES, CHECKS, TOKENS
from tests.template.test_signing_key import KEYS
from tests.template.test_template import ROUTES, TRACE_ACTIONS

Choice = dict[str, str]

PARAMETERS: Final = {
    name: mapping(declaration) for name, declaration in mapping(load(Path(ROOT, "template.yaml"))["Parameters"]).items()
}
TEXTS: Final[dict[str, list[str]]] = {
    "Agent": ["report_writer:ReportWriter"],
    "PublicUrl": ["https://agents.example/orders"],
    "AllowedOrigins": ["https://shop.example,https://desk.example"],
    "SigningKey": list(KEYS),
    "JwtIssuer": [TOKENS["JwtIssuer"]],
    "JwtAudience": [TOKENS["JwtAudience"]],
    "RequiredScope": ["agent:use"],
    "PushAllowedHosts": ["hooks.example,*.desk.example"],
    "DynamoDbEndpoint": ["http://127.0.0.1:8000"],
    "SqsEndpoint": ["http://127.0.0.1:8000"],
    "KmsEndpoint": ["http://127.0.0.1:8000"],
}
"""What is tried of a text beside its default."""

NEEDS: Final[dict[tuple[str, str], Choice]] = {("Auth", "jwt"): TOKENS}
"""What a value is refused without."""

OF_PUSH: Final = {"PushAllowedHosts", "PushConcurrency", "LogRetentionDays"}
"""What is tried with Push=on, without which not everything that it decides is deployed."""

# The statements whose resource is not named, by the type of what they are in: effect, actions, resources.
UNNAMED: Final = {
    # X-Ray has no narrower resource for these two.
    ("AWS::IAM::Role", "Allow", tuple(TRACE_ACTIONS), ("*",)),
    # The streams of one table: a stream's own name is made when it is.
    ("AWS::IAM::Role", "Allow", ("dynamodb:ListStreams",), ("TasksTable.Arn/stream/*",)),
    # In a key's or a queue's policy a star is this key or this queue.
    ("AWS::KMS::Key", "Allow", ("kms:*",), ("*",)),
    ("AWS::KMS::Key", "Allow", ("kms:Decrypt", "kms:GenerateDataKey*"), ("*",)),
    ("AWS::SQS::QueuePolicy", "Deny", ("sqs:*",), ("*",)),
}


def values(name: str) -> list[str]:
    """What is tried of a parameter."""
    declared = PARAMETERS[name]
    if "AllowedValues" in declared:
        return [text(value) for value in sequence(declared["AllowedValues"])]
    bounds = [declared[word] for word in ("MinValue", "Default", "MaxValue") if word in declared]
    return list(dict.fromkeys([*map(text, bounds), *TEXTS.get(name, [])]))


def choices() -> Iterator[Choice]:
    for name in PARAMETERS:
        with_it = {"Push": "on"} if name in OF_PUSH else {}
        for value in values(name):
            yield {name: value, **with_it, **NEEDS.get((name, value), {})}
    for auth, push in product(CHECKS, ("off", "on")):
        yield {"Auth": auth, "Push": push, **NEEDS.get(("Auth", auth), {})}


@pytest.fixture(scope="module", params=choices(), ids=lambda choice: " ".join(map("=".join, choice.items())))
def choice(request: pytest.FixtureRequest) -> Choice:
    chosen: Choice = request.param
    return chosen


@pytest.fixture(scope="module")
def resources(choice: Choice) -> Resources:
    return deployed(**choice)


def queues(resources: Resources) -> dict[str, str]:
    """The name of each queue, by its ARN."""
    return {queue_arn(name): name for name in of_type(resources, "AWS::SQS::Queue")}


def mappings(resources: Resources) -> list[dict[str, Any]]:
    return [each["Properties"] for each in of_type(resources, "AWS::Lambda::EventSourceMapping").values()]


def served(resources: Resources) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The properties of each queue that feeds a function, and the function's."""
    found = queues(resources)
    return [
        (resources[found[each["EventSourceArn"]]]["Properties"], resources[each["FunctionName"]]["Properties"])
        for each in mappings(resources)
        if each["EventSourceArn"] in found
    ]


def statements(value: Any) -> Iterator[dict[str, Any]]:
    """Every statement of a policy, wherever in the value it is."""
    if isinstance(value, list):
        for item in value:
            yield from statements(item)
    elif isinstance(value, dict):
        if "Effect" in value:
            yield value
        for item in value.values():
            yield from statements(item)


# --- What is tried ---


def test_every_parameter_is_tried_at_more_than_its_default() -> None:
    assert [name for name in PARAMETERS if len(values(name)) == 1] == []
    assert set(TEXTS) <= set(PARAMETERS)


def test_a_deployment_takes_what_is_tried(choice: Choice) -> None:
    for name, value in choice.items():
        assert fullmatch(text(PARAMETERS[name].get("AllowedPattern", ".*")), value), name
    assert refusals(**choice) == []


# --- What matters ---


def test_each_route_is_checked_as_auth_says(choice: Choice, resources: Resources) -> None:
    check = CHECKS[choice.get("Auth", text(PARAMETERS["Auth"]["Default"]))]
    routes = [route["Properties"] for route in of_type(resources, "AWS::ApiGatewayV2::Route").values()]

    assert {route["RouteKey"]: (route["AuthorizationType"], route.get("AuthorizerId")) for route in routes} == {
        key: ("NONE", None) if key in CARD_ROUTES else check for key in ROUTES
    }


def test_no_policy_has_a_star_for_what_it_could_name(resources: Resources) -> None:
    unnamed = {
        (body["Type"], each["Effect"], tuple(sequence(each["Action"])), tuple(sequence(each["Resource"])))
        for body in resources.values()
        for each in statements(body["Properties"])
        if any("*" in text(resource) for resource in sequence(each.get("Resource")))
    }

    assert unnamed <= UNNAMED


def test_whatever_is_stored_is_encrypted(resources: Resources) -> None:
    test_template.test_tables_are_encrypted_and_paid_by_the_request(resources)
    test_queues.test_queues_are_encrypted(resources)
    for topic in of_type(resources, "AWS::SNS::Topic").values():
        assert topic["Properties"]["KmsMasterKeyId"] in of_type(resources, "AWS::KMS::Key")


def test_tables_outlive_the_stack_and_its_mistakes(resources: Resources) -> None:
    test_template.test_tables_survive_the_stack_and_can_be_restored(resources)


def test_what_cannot_be_done_is_put_aside(choice: Choice, resources: Resources) -> None:
    found = queues(resources)
    streams = [each for each in mappings(resources) if each["EventSourceArn"] not in found]

    assert len(served(resources)) == (2 if choice.get("Push") == "on" else 1)
    for queue, _ in served(resources):
        assert queue["RedrivePolicy"]["deadLetterTargetArn"] in found
    assert [each["EventSourceArn"] for each in streams] == ["TasksTable.StreamArn"]
    for each in streams:
        assert each["DestinationConfig"]["OnFailure"]["Destination"] in found


def test_a_message_is_hidden_for_longer_than_its_function_takes(resources: Resources) -> None:
    for queue, function in served(resources):
        assert int(queue["VisibilityTimeout"]) > int(function["Timeout"])


def test_every_function_has_a_log_that_is_kept_as_long_as_is_wanted(choice: Choice, resources: Resources) -> None:
    kept = choice.get("LogRetentionDays", text(PARAMETERS["LogRetentionDays"]["Default"]))
    groups = of_type(resources, "AWS::Logs::LogGroup")
    functions = of_type(resources, "AWS::Lambda::Function").values()
    used = [function["Properties"]["LoggingConfig"]["LogGroup"] for function in functions]

    assert sorted([*used, "AccessLogGroup"]) == sorted(groups)
    assert {text(group["Properties"]["RetentionInDays"]) for group in groups.values()} == {kept}
