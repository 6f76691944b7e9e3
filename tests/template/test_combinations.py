"""What belongs to a choice is deployed with it and only then, whatever else is chosen."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from local.template import PSEUDO_PARAMETERS, Template
from tests.template.deployments import deployed
from tests.template.test_callers import CHECKS, TOKENS
from tests.template.test_template import references

SWITCH = ("on", "off")
CHOICES = [
    {"Auth": auth, "Push": push, "Alarms": alarms, "SigningKey": key, **TOKENS}
    for auth, push, alarms, key in product(CHECKS, SWITCH, SWITCH, ("", "create"))
]

OF_PUSH = {"PushFunction", "PushFunctionUpdate", "PushLogGroup", "PushRole", "PushQueue", "PushDeadLetters"}
OF_ALARMS = {"AlarmTopic", "AlarmKey", "Dashboard"}


@pytest.fixture(params=CHOICES, ids=lambda choice: " ".join(list(choice.values())[:4]))
def choice(request: pytest.FixtureRequest) -> dict[str, str]:
    chosen: dict[str, str] = request.param
    return chosen


def decided(template: Template, node: Any) -> Any:
    """The node with every `Fn::If` decided, and its references as they are written."""
    if isinstance(node, list):
        return [decided(template, item) for item in node]
    if not isinstance(node, dict):
        return node
    if "Fn::If" in node:
        condition, then, otherwise = node["Fn::If"]
        return decided(template, then if template.holds(condition) else otherwise)
    return {key: decided(template, item) for key, item in node.items()}


def live_references(template: Template) -> Iterator[str]:
    for resource in template.resources.values():
        yield from references(decided(template, resource.get("Properties")))


def test_nothing_refers_to_what_is_not_deployed(template: dict[str, Any], choice: dict[str, str]) -> None:
    chosen = Template(template, choice)

    assert set(live_references(chosen)) <= {*chosen.resources, *template["Parameters"], *PSEUDO_PARAMETERS}


def test_without_push_nothing_of_it_is_deployed(choice: dict[str, str]) -> None:
    found = OF_PUSH & set(deployed(**choice))

    assert found == (OF_PUSH if choice["Push"] == "on" else set())


def test_without_alarms_nothing_of_them_is_deployed(choice: dict[str, str]) -> None:
    resources = deployed(**choice)
    alarms = {name for name in resources if name.endswith("Alarm")}

    assert OF_ALARMS & set(resources) == (OF_ALARMS if choice["Alarms"] == "on" else set())
    assert bool(alarms) == (choice["Alarms"] == "on")


def test_the_functions_know_whether_push_is_on(choice: dict[str, str]) -> None:
    resources = deployed(**choice)

    for function in ("CardFunction", "RpcFunction"):
        assert resources[function]["Properties"]["Environment"]["Variables"]["PUSH"] == choice["Push"]
    relay = resources["RelayFunction"]["Properties"]["Environment"]["Variables"]
    assert relay["PUSH_QUEUE"] == ("PushQueue" if choice["Push"] == "on" else "")
