"""What the template promises: routes, rights, logs, safe tables, and a parameter for every setting."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.json import schema

from a2a_lambda import settings
from local.template import queue_arn
from tests.template.deployments import Resources, deployed, of_type, statements

ROUTES = {
    "GET /.well-known/agent-card.json": "CardFunction",
    "HEAD /.well-known/agent-card.json": "CardFunction",
    "GET /.well-known/jwks.json": "CardFunction",
    "HEAD /.well-known/jwks.json": "CardFunction",
    "POST /a2a": "RpcFunction",
    "POST /a2a/{proxy+}": "RpcFunction",
}

TRACE_ACTIONS = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
LOG_ACTIONS = ["logs:CreateLogStream", "logs:PutLogEvents"]
SERVE_ACTIONS = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"]
# Every function may also write its own log and its traces. What signing needs is in test_signing_key.
RIGHTS: dict[str, list[tuple[str | list[str], str | list[str]]]] = {
    "CardFunction": [],
    "RpcFunction": [
        (
            [
                "dynamodb:GetItem",
                "dynamodb:PutItem",
                "dynamodb:UpdateItem",
                "dynamodb:DeleteItem",
                "dynamodb:Query",
                "dynamodb:BatchGetItem",
                "dynamodb:BatchWriteItem",
            ],
            "TasksTable.Arn",
        ),
        ("dynamodb:Query", "TasksTable.Arn/index/tasks-by-owner"),
        (["dynamodb:GetItem", "dynamodb:UpdateItem"], "CallersTable.Arn"),
    ],
    "RelayFunction": [
        (["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"], "TasksTable.StreamArn"),
        ("dynamodb:ListStreams", "TasksTable.Arn/stream/*"),
        (
            [
                "dynamodb:GetItem",
                "dynamodb:PutItem",
                "dynamodb:UpdateItem",
                "dynamodb:DeleteItem",
                "dynamodb:Query",
            ],
            "TasksTable.Arn",
        ),
        ("sqs:SendMessage", [queue_arn(name) for name in ("WorkQueue", "RelayFailures", "PushQueue")]),
    ],
    "WorkerFunction": [
        (
            [
                "dynamodb:GetItem",
                "dynamodb:PutItem",
                "dynamodb:Query",
                "dynamodb:BatchGetItem",
                "dynamodb:BatchWriteItem",
            ],
            "TasksTable.Arn",
        ),
        (SERVE_ACTIONS, queue_arn("WorkQueue")),
    ],
    "PushFunction": [
        (["dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchGetItem"], "TasksTable.Arn"),
        (SERVE_ACTIONS, queue_arn("PushQueue")),
        ("sqs:SendMessage", queue_arn("PushDeadLetters")),
    ],
}

# The kinds of paths for which API Gateway may call each function.
CALLS = {
    ("CardFunction", "*/.well-known/agent-card.json"),
    ("CardFunction", "*/.well-known/jwks.json"),
    ("RpcFunction", "POST/a2a*"),
}


def properties(resources: Resources, name: str) -> dict[str, Any]:
    found: dict[str, Any] = resources[name]["Properties"]
    return found


def references(value: object) -> Iterator[str]:
    """The logical names that a part of the template refers to, by Ref, Fn::GetAtt or Fn::Sub."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "Ref":
                yield item
            elif key == "Fn::GetAtt":
                yield item[0]
            elif key == "Fn::Sub":
                pattern, values = item if isinstance(item, list) else (item, {})
                yield from set(re.findall(r"\$\{([^!}.]+)", pattern)) - set(values)
                yield from references(values)
            else:
                yield from references(item)


def target_function(resources: Resources, route: dict[str, Any]) -> str:
    integration = properties(resources, next(references(route["Target"])))
    return next(references(integration["IntegrationUri"]))


def routes(resources: Resources) -> dict[str, str]:
    found = (route["Properties"] for route in of_type(resources, "AWS::ApiGatewayV2::Route").values())
    return {route["RouteKey"]: target_function(resources, route) for route in found}


@pytest.fixture(params=sorted(RIGHTS))
def function(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# --- The API ---


def test_the_routes_lead_to_their_functions(resources: Resources) -> None:
    assert routes(resources) == ROUTES


def test_functions_get_payload_2_events(resources: Resources) -> None:
    for integration in of_type(resources, "AWS::ApiGatewayV2::Integration").values():
        assert integration["Properties"]["PayloadFormatVersion"] == "2.0"
        assert integration["Properties"]["IntegrationType"] == "AWS_PROXY"


def test_the_api_may_call_a_function_for_its_own_routes_only() -> None:
    api = "arn:aws:execute-api:us-east-1:123456789012:HttpApi"
    permissions = [body["Properties"] for body in of_type(deployed(), "AWS::Lambda::Permission").values()]

    assert {permission["Action"] for permission in permissions} == {"lambda:InvokeFunction"}
    assert {permission["Principal"] for permission in permissions} == {"apigateway.amazonaws.com"}
    assert {(permission["FunctionName"], permission["SourceArn"]) for permission in permissions} == {
        (function, f"{api}/*/{paths}") for function, paths in CALLS
    }


def test_the_stage_throttles_every_route(resources: Resources) -> None:
    assert properties(resources, "HttpApiStage")["DefaultRouteSettings"] == {
        "ThrottlingRateLimit": {"Ref": "ThrottlingRate"},
        "ThrottlingBurstLimit": {"Ref": "ThrottlingBurst"},
    }


def test_changes_reach_the_default_stage_by_themselves(resources: Resources) -> None:
    stage = properties(resources, "HttpApiStage")

    assert (stage["StageName"], stage["AutoDeploy"]) == ("$default", True)


def test_accesses_are_logged_as_json_without_what_a_caller_sent(resources: Resources) -> None:
    access_log = properties(resources, "HttpApiStage")["AccessLogSettings"]

    assert access_log["DestinationArn"] == {"Fn::GetAtt": ["AccessLogGroup", "Arn"]}
    assert set(json.loads(access_log["Format"]).values()) == {
        "$context.requestId",
        "$context.requestTime",
        "$context.identity.sourceIp",
        "$context.routeKey",
        "$context.status",
        "$context.responseLength",
        "$context.responseLatency",
        "$context.integrationLatency",
        "$context.error.message",
        "$context.integrationErrorMessage",
    }


def test_pages_of_the_allowed_origins_may_call_the_api(resources: Resources) -> None:
    assert properties(resources, "HttpApi")["CorsConfiguration"] == {
        "AllowOrigins": {"Ref": "AllowedOrigins"},
        "AllowMethods": ["GET", "HEAD", "POST", "OPTIONS"],
        "AllowHeaders": [
            "A2A-Version",
            "A2A-Extensions",
            "Authorization",
            "x-api-key",
            "Content-Type",
            "If-None-Match",
        ],
        "ExposeHeaders": ["ETag", "Retry-After", "WWW-Authenticate"],
    }


# --- The functions ---


def test_the_rights_of_every_function_are_written_down_here(resources: Resources) -> None:
    assert set(of_type(resources, "AWS::Lambda::Function")) == set(RIGHTS)


def test_a_function_may_do_what_it_needs_and_nothing_else(resources: Resources, function: str) -> None:
    configuration = properties(resources, function)
    log_group = next(references(configuration["LoggingConfig"]["LogGroup"]))

    granted = statements(deployed(Push="on"), function)

    assert "ManagedPolicyArns" not in properties(resources, next(references(configuration["Role"])))
    assert {statement["Effect"] for statement in granted} == {"Allow"}
    assert [(statement["Action"], statement["Resource"]) for statement in granted] == [
        (LOG_ACTIONS, f"{log_group}.Arn"),
        (TRACE_ACTIONS, "*"),
        *RIGHTS[function],
    ]


def test_no_two_functions_share_a_role(resources: Resources) -> None:
    roles = [
        next(references(body["Properties"]["Role"])) for body in of_type(resources, "AWS::Lambda::Function").values()
    ]

    assert len(roles) == len(set(roles))


def test_nobody_gains_rights_outside_the_roles(resources: Resources) -> None:
    assert not of_type(resources, "AWS::IAM::Policy")
    assert not of_type(resources, "AWS::IAM::ManagedPolicy")


def test_a_function_writes_json_to_a_log_group_of_its_own(resources: Resources, function: str) -> None:
    logging = properties(resources, function)["LoggingConfig"]
    group = next(references(logging["LogGroup"]))

    assert (logging["LogFormat"], logging["ApplicationLogLevel"]) == ("JSON", {"Ref": "LogLevel"})
    assert group in of_type(resources, "AWS::Logs::LogGroup")
    assert group.removesuffix("LogGroup") == function.removesuffix("Function")


def test_a_function_is_traced_and_follows_the_architecture(resources: Resources, function: str) -> None:
    configuration = properties(resources, function)

    assert configuration["TracingConfig"] == {"Mode": "Active"}
    assert configuration["Architectures"] == [{"Ref": "Architecture"}]


def test_layers_follow_the_architecture_of_the_functions(resources: Resources) -> None:
    layers = of_type(resources, "AWS::Lambda::LayerVersion").values()

    assert layers
    for layer in layers:
        assert layer["Properties"]["CompatibleArchitectures"] == [{"Ref": "Architecture"}]


def test_the_api_outlasts_every_function_it_waits_for(resources: Resources) -> None:
    api_gateway_seconds = 30

    for name in set(routes(resources).values()):
        assert properties(resources, name)["Timeout"] < api_gateway_seconds


def test_new_code_is_served_at_once(resources: Resources) -> None:
    """An alias or SnapStart keeps serving old code when only a layer or a parameter has changed."""
    assert not of_type(resources, "AWS::Lambda::Alias")
    assert not of_type(resources, "AWS::Lambda::Version")


# --- Logs and tables ---


def test_no_log_is_kept_for_ever(resources: Resources) -> None:
    groups = of_type(resources, "AWS::Logs::LogGroup").values()

    assert {group["Properties"]["RetentionInDays"]["Ref"] for group in groups} == {"LogRetentionDays"}


def test_tables_survive_the_stack_and_can_be_restored(resources: Resources) -> None:
    tables = of_type(resources, "AWS::DynamoDB::Table").values()

    assert tables
    for table in tables:
        recovery = table["Properties"]["PointInTimeRecoverySpecification"]
        assert recovery == {"PointInTimeRecoveryEnabled": True}
        assert table["DeletionPolicy"] == "RetainExceptOnCreate"
        assert table["UpdateReplacePolicy"] == "Retain"


def test_tables_are_encrypted_and_paid_by_the_request(resources: Resources) -> None:
    for table in of_type(resources, "AWS::DynamoDB::Table").values():
        assert table["Properties"]["SSESpecification"] == {"SSEEnabled": True}
        assert table["Properties"]["BillingMode"] == "PAY_PER_REQUEST"


def test_what_has_expired_leaves_its_table(resources: Resources) -> None:
    for table in of_type(resources, "AWS::DynamoDB::Table").values():
        assert table["Properties"]["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}


@pytest.mark.parametrize(("table", "partition"), [("TasksTable", "task_id"), ("CallersTable", "subject")])
def test_a_table_holds_entries_by_what_they_belong_to(resources: Resources, table: str, partition: str) -> None:
    assert properties(resources, table)["KeySchema"] == [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": "entry", "KeyType": "RANGE"},
    ]


def test_the_index_of_an_owners_tasks_holds_keys_context_and_state_only(resources: Resources) -> None:
    assert properties(resources, "TasksTable")["GlobalSecondaryIndexes"] == [
        {
            "IndexName": "tasks-by-owner",
            "KeySchema": [
                {"AttributeName": "owner", "KeyType": "HASH"},
                {"AttributeName": "status_order", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["context_id", "state"]},
        }
    ]


# --- Settings, parameters and outputs ---


# What a parameter has of its own: test_callers and test_signing_key say why.
DEPLOYED_OTHERWISE = {"AUTH": "Default", "SIGNING_KEY": "AllowedPattern"}


def settings_of(function: str) -> dict[str, dict[str, Any]]:
    """The settings that a function reads, by environment variable, as JSON schemas."""
    settings_type = getattr(settings, function.replace("Function", "Settings"))
    fields = schema(settings_type)["$defs"][settings_type.__name__]["properties"]
    return {name.upper(): field for name, field in fields.items()}


def variables(resources: Resources, function: str) -> dict[str, Any]:
    found: dict[str, Any] = properties(resources, function)["Environment"]["Variables"]
    return found


def limits(setting: dict[str, Any]) -> dict[str, Any]:
    """A setting's default and limits in CloudFormation's words."""
    words = {
        "default": "Default",
        "minimum": "MinValue",
        "maximum": "MaxValue",
        "pattern": "AllowedPattern",
        "enum": "AllowedValues",
    }
    found = {word: setting[key] for key, word in words.items() if key in setting}
    if "AllowedPattern" in found:
        # For CloudFormation a pattern matches whole anyway.
        found["AllowedPattern"] = found["AllowedPattern"].replace(r"\Z", "$")
    if found.get("Default") == "" and "AllowedPattern" in found:
        found["AllowedPattern"] = f"^$|{found['AllowedPattern']}"
    return found


def test_a_function_is_given_the_settings_it_reads_and_no_others(resources: Resources, function: str) -> None:
    own = {name for name in variables(resources, function) if not name.startswith("POWERTOOLS_")}

    assert own == set(settings_of(function))


def test_log_lines_and_metrics_tell_stacks_apart(resources: Resources, function: str) -> None:
    given = variables(resources, function)

    assert given["POWERTOOLS_SERVICE_NAME"] == {"Ref": "AWS::StackName"}
    assert given["POWERTOOLS_METRICS_NAMESPACE"] == "a2a"


def test_a_parameter_has_the_default_and_the_limits_of_its_setting(template: dict[str, Any], function: str) -> None:
    given = variables(template["Resources"], function)

    for name, setting in settings_of(function).items():
        source = next(references(given[name]), None)
        shared = {word: value for word, value in limits(setting).items() if word != DEPLOYED_OTHERWISE.get(name)}
        if source is None:
            assert given[name] == shared["Default"], name
        elif source not in template["Resources"]:
            assert shared.items() <= template["Parameters"][source].items(), name


def test_every_parameter_is_described_and_limited(template: dict[str, Any]) -> None:
    restrictions = {"AllowedPattern", "AllowedValues", "MinValue"}

    for name, parameter in template["Parameters"].items():
        assert parameter["Description"], name
        assert restrictions & set(parameter) or parameter["Type"] == "CommaDelimitedList", name


def test_no_limit_can_be_zero_or_less(template: dict[str, Any]) -> None:
    numbers = {name: parameter for name, parameter in template["Parameters"].items() if parameter["Type"] == "Number"}
    may_be_none = {name for name, parameter in numbers.items() if parameter.get("MinValue", 1) < 1}

    assert may_be_none == {"IdempotencySeconds"}
    assert numbers["IdempotencySeconds"]["MinValue"] == 0


def test_every_parameter_is_used(template: dict[str, Any]) -> None:
    assert set(template["Parameters"]) <= set(references([template["Resources"], template["Conditions"]]))


def test_every_parameter_has_its_place_in_the_console(template: dict[str, Any]) -> None:
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]

    assert sorted(name for group in groups for name in group["Parameters"]) == sorted(template["Parameters"])


def test_every_parameter_has_a_default_so_that_a_deployment_asks_nothing(template: dict[str, Any]) -> None:
    assert [name for name, parameter in template["Parameters"].items() if "Default" not in parameter] == []


def test_the_outputs_tell_where_the_agent_is(template: dict[str, Any]) -> None:
    assert {name: output["Value"] for name, output in template["Outputs"].items()} == {
        "AgentCardUrl": {"Fn::Sub": "${HttpApi.ApiEndpoint}/.well-known/agent-card.json"},
        "EndpointUrl": {"Fn::Sub": "${HttpApi.ApiEndpoint}/a2a"},
        "SigningKeyArn": {"Fn::GetAtt": ["OwnSigningKey", "Arn"]},
        "TasksTableName": {"Ref": "TasksTable"},
        "CallersTableName": {"Ref": "CallersTable"},
        "WorkQueueUrl": {"Ref": "WorkQueue"},
        "WorkDeadLettersUrl": {"Ref": "WorkDeadLetters"},
        "RelayFailuresUrl": {"Ref": "RelayFailures"},
        "PushQueueUrl": {"Ref": "PushQueue"},
        "PushDeadLettersUrl": {"Ref": "PushDeadLetters"},
        "AlarmTopicArn": {"Ref": "AlarmTopic"},
    }


def test_an_output_is_there_when_its_resource_is(template: dict[str, Any]) -> None:
    for name, output in template["Outputs"].items():
        resource = template["Resources"][next(references(output["Value"]))]
        assert output.get("Condition") == resource.get("Condition"), name
