"""The template as CloudFormation carries it out for given parameters: conditions decided, functions resolved."""

from typing import Any

from local.template import Template, text
from tests.template import sam

Resources = dict[str, Any]


def deployed(**parameters: str) -> Resources:
    """The resources of a deployment, by logical id; an attribute such as an ARN is written as `Name.Arn`."""
    template = Template(sam.deployed_template(), parameters)
    return {
        name: {**resource, "Properties": template.resolve(resource.get("Properties"))}
        for name, resource in template.resources.items()
    }


def of_type(resources: Resources, resource_type: str) -> Resources:
    return {name: body for name, body in resources.items() if body["Type"] == resource_type}


def statements(resources: Resources, function: str) -> list[dict[str, Any]]:
    """What the role of a deployed function says."""
    role = text(resources[function]["Properties"]["Role"]).removesuffix(".Arn")
    policies = resources[role]["Properties"]["Policies"]
    return [statement for policy in policies for statement in policy["PolicyDocument"]["Statement"]]


def refusals(**parameters: str) -> list[str]:
    """What the template's rules say against a deployment with these parameters."""
    document = sam.deployed_template()
    template = Template(document, parameters)
    return [
        assertion["AssertDescription"]
        for rule in document["Rules"].values()
        if template.holds(rule["RuleCondition"])
        for assertion in rule["Assertions"]
        if not template.holds(assertion["Assert"])
    ]
