"""template.yaml as values: YAML with CloudFormation's intrinsic functions, resolved.

Only what is asked for is resolved, so an intrinsic that cannot be known on this
machine does no harm where nobody reads it. What the resources mean is in `deployment`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

import yaml

from local.errors import TemplateError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"

ACCOUNT_ID = "123456789012"
REGION = "us-east-1"
NO_VALUE = "AWS::NoValue"

PSEUDO_PARAMETERS: dict[str, Value] = {
    "AWS::AccountId": ACCOUNT_ID,
    "AWS::NoValue": NO_VALUE,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": "local",
    "AWS::URLSuffix": "amazonaws.com",
}


class _Loader(yaml.SafeLoader):
    """SafeLoader that also reads the short intrinsics (`!Ref`) as the long ones."""


def _short_intrinsic(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> dict[str, object]:
    argument: object
    if isinstance(node, yaml.MappingNode):
        argument = loader.construct_mapping(node, deep=True)
    elif isinstance(node, yaml.SequenceNode):
        argument = loader.construct_sequence(node, deep=True)
    else:
        argument = node.value
    if name == "GetAtt" and isinstance(argument, str):
        argument = argument.split(".", 1)
    return {name if name in {"Ref", "Condition"} else f"Fn::{name}": argument}


_Loader.add_multi_constructor("!", _short_intrinsic)


def load(path: Path) -> dict[str, Value]:
    """The template file as it is written, every intrinsic in its long form."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 - a SafeLoader
    except (OSError, yaml.YAMLError) as error:
        raise TemplateError(f"{path}: {error}") from error
    return mapping(document)


def mapping(value: Value) -> dict[str, Value]:
    """The value, which must be a mapping or missing."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise TemplateError(f"expected a mapping, found {value!r}")


def sequence(value: Value) -> list[Value]:
    """The value, which must be a list or missing; a single value is a list of one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text(value: Value) -> str:
    """A scalar as CloudFormation writes it into a string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise TemplateError(f"expected a single value, found {value!r}")


class Template:
    """A template with its parameters decided.

    `given` decides what a `Ref` to a parameter or a resource is; what it leaves out
    is the parameter's default and the resource's logical id.
    """

    def __init__(self, document: Mapping[str, Value], given: Mapping[str, str]) -> None:
        self._conditions = mapping(document.get("Conditions"))
        self._mappings = mapping(document.get("Mappings"))
        self._rules = mapping(document.get("Rules"))
        self._references = dict(PSEUDO_PARAMETERS)
        for name, declaration in mapping(document.get("Parameters")).items():
            self._references[name] = _parameter(name, mapping(declaration), given)
        declared = {name: mapping(body) for name, body in mapping(document.get("Resources")).items()}
        for name in declared:
            self._references[name] = given.get(name, name)
        self.resources = {name: body for name, body in declared.items() if self._is_deployed(body)}

    def _is_deployed(self, resource: dict[str, Value]) -> bool:
        condition = resource.get("Condition")
        return condition is None or self.holds({"Condition": condition})

    def check_rules(self) -> None:
        """Raise TemplateError where the parameters break one of the template's `Rules`."""
        for rule in map(mapping, self._rules.values()):
            if self.holds(rule.get("RuleCondition", True)):
                for assertion in map(mapping, sequence(rule.get("Assertions"))):
                    if not self.holds(assertion["Assert"]):
                        raise TemplateError(
                            text(assertion.get("AssertDescription", "a rule of the template is broken"))
                        )

    def of_type(self, kind: str) -> dict[str, dict[str, Value]]:
        """The deployed resources of a type, by logical id."""
        return {name: body for name, body in self.resources.items() if body.get("Type") == kind}

    def resolve(self, node: Value) -> Value:
        """The node with every intrinsic in it replaced by its value."""
        if isinstance(node, list):
            return [value for item in node if (value := self.resolve(item)) != NO_VALUE]
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            ((name, argument),) = node.items()
            if name in INTRINSICS:
                return INTRINSICS[name](self, argument)
            if name.startswith("Fn::"):
                raise TemplateError(f"{name} cannot be resolved on this machine")
        return {key: value for key, item in node.items() if (value := self.resolve(item)) != NO_VALUE}

    def reference(self, name: str) -> Value:
        """What `Ref` to this parameter, pseudo parameter or resource gives."""
        if name not in self._references:
            raise TemplateError(f"Ref to {name}, which the template does not declare")
        return self._references[name]

    def attribute(self, name: str, attribute: str) -> str:
        """What `Fn::GetAtt` gives: a stand-in that names the resource."""
        reference = text(self.reference(name))
        kind = self.resources.get(name, {}).get("Type") if attribute == "Arn" else None
        if kind == "AWS::Serverless::Function":
            return function_arn(name)
        if kind == "AWS::SQS::Queue":
            return queue_arn(reference)
        return f"{reference}.{attribute}"

    def holds(self, condition: Value) -> bool:
        """Whether a condition, given by name or as an expression, is true."""
        if isinstance(condition, str):
            if condition not in self._conditions:
                raise TemplateError(f"condition {condition} is not declared")
            return self.holds(self._conditions[condition])
        if isinstance(condition, dict) and set(condition) == {"Condition"}:
            return self.holds(condition["Condition"])
        return text(self.resolve(condition)) == "true"

    def lookup(self, name: str, top: str, second: str) -> Value:
        """What `Fn::FindInMap` gives."""
        try:
            return mapping(mapping(self._mappings[name])[top])[second]
        except KeyError as error:
            raise TemplateError(f"mapping {name} has no entry {top}, {second}") from error


def function_arn(name: str) -> str:
    """The ARN that a function of this deployment has."""
    return f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{name}"


def queue_arn(url: str) -> str:
    """The ARN of the queue with this address."""
    return f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{url.rpartition('/')[2]}"


def _parameter(name: str, declaration: dict[str, Value], given: Mapping[str, str]) -> Value:
    if name in given:
        value: Value = given[name]
    elif "Default" in declaration:
        value = declaration["Default"]
    else:
        raise TemplateError(f"parameter {name} has no default: give it a value")
    if text(declaration.get("Type", "String")) == "CommaDelimitedList":
        return [item.strip() for item in text(value).split(",")]
    return value


def _ref(template: Template, argument: Value) -> Value:
    return template.reference(text(argument))


def _get_att(template: Template, argument: Value) -> Value:
    name, attribute = sequence(argument)
    return template.attribute(text(name), text(template.resolve(attribute)))


def _sub(template: Template, argument: Value) -> Value:
    pattern, values = argument, {}
    if isinstance(argument, list):
        pattern, values = argument[0], mapping(argument[1])

    def value_of(match: re.Match[str]) -> str:
        name = match[1].strip()
        if name.startswith("!"):
            return f"${{{name[1:]}}}"
        if name in values:
            return text(template.resolve(values[name]))
        resource, dot, attribute = name.partition(".")
        return template.attribute(resource, attribute) if dot else text(template.reference(name))

    return re.sub(r"\$\{([^}]+)\}", value_of, text(pattern))


def _join(template: Template, argument: Value) -> Value:
    separator, items = sequence(argument)
    return text(separator).join(text(item) for item in sequence(template.resolve(items)))


def _split(template: Template, argument: Value) -> Value:
    separator, whole = sequence(argument)
    return list(text(template.resolve(whole)).split(text(separator)))


def _select(template: Template, argument: Value) -> Value:
    index, items = sequence(argument)
    return sequence(template.resolve(items))[int(text(template.resolve(index)))]


def _find_in_map(template: Template, argument: Value) -> Value:
    name, top, second = (text(template.resolve(part)) for part in sequence(argument)[:3])
    return template.resolve(template.lookup(name, top, second))


def _if(template: Template, argument: Value) -> Value:
    condition, then, otherwise = sequence(argument)
    return template.resolve(then if template.holds(condition) else otherwise)


def _equals(template: Template, argument: Value) -> Value:
    left, right = (template.resolve(side) for side in sequence(argument))
    return left == right or (
        not isinstance(left, (list, dict)) and not isinstance(right, (list, dict)) and text(left) == text(right)
    )


def _and(template: Template, argument: Value) -> Value:
    return all(template.holds(part) for part in sequence(argument))


def _or(template: Template, argument: Value) -> Value:
    return any(template.holds(part) for part in sequence(argument))


def _not(template: Template, argument: Value) -> Value:
    return not template.holds(sequence(argument)[0])


INTRINSICS: dict[str, Callable[[Template, Value], Value]] = {
    "Ref": _ref,
    "Fn::GetAtt": _get_att,
    "Fn::Sub": _sub,
    "Fn::Join": _join,
    "Fn::Split": _split,
    "Fn::Select": _select,
    "Fn::FindInMap": _find_in_map,
    "Fn::If": _if,
    "Fn::Equals": _equals,
    "Fn::And": _and,
    "Fn::Or": _or,
    "Fn::Not": _not,
}
