"""What the template deploys, as far as this machine serves it: functions, routes, CORS, tables, queues, mappings.

Settings are given by their environment names. The environment name of a parameter or
a table is that of the function variable that is a plain `Ref` to it; a parameter that
no function reads has its own name in capitals (`AllowedOrigins` is `ALLOWED_ORIGINS`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from local.authorizers import IamAuthorizer, JwtAuthorizer
from local.errors import TemplateError
from local.mappings import read_mappings
from local.queues import queue_urls, read_queues
from local.routes import Route
from local.template import Template, Value, load, mapping, sequence, text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from local.authorizers import Authorizer
    from local.mappings import SourceMapping
    from local.queues import Queue

DEFAULT_FUNCTION_TIMEOUT = 3
DEFAULT_FUNCTION_MEMORY = 128
DEFAULT_INTEGRATION_TIMEOUT = 30_000

FUNCTION = "AWS::Serverless::Function"
LAYER = "AWS::Serverless::LayerVersion"
TABLE = "AWS::DynamoDB::Table"


@dataclass(frozen=True)
class Function:
    """A Lambda function: where its code is, and what it gets from its configuration."""

    name: str
    source: Path
    handler: str
    timeout: float
    memory: int
    variables: Mapping[str, str]
    layers: tuple[Path, ...]


@dataclass(frozen=True)
class Cors:
    """The `CorsConfiguration` of the API."""

    origins: tuple[str, ...]
    methods: tuple[str, ...]
    headers: tuple[str, ...]
    exposed: tuple[str, ...]
    max_age: str | None
    credentials: bool


@dataclass(frozen=True)
class Table:
    """A DynamoDB table: the arguments of `CreateTable`, and its time-to-live attribute."""

    name: str
    creation: Mapping[str, Value]
    expiry_attribute: str | None


@dataclass(frozen=True)
class Deployment:
    """Everything that the local gateway serves."""

    functions: Mapping[str, Function]
    routes: tuple[Route, ...]
    cors: Cors | None
    tables: tuple[Table, ...]
    queues: tuple[Queue, ...]
    mappings: tuple[SourceMapping, ...]

    def variables(self) -> dict[str, str]:
        """The environment of all functions, which share this process and so must agree."""
        merged: dict[str, str] = {}
        for function in self.functions.values():
            for name, value in function.variables.items():
                if merged.setdefault(name, value) != value:
                    raise TemplateError(f"{name} differs between functions, which share one process here")
        return merged

    def layers(self) -> list[Path]:
        """The folders that the functions' layers add to the import path, each once."""
        return list(dict.fromkeys(path for function in self.functions.values() for path in function.layers))


def read_deployment(path: Path, environment: Mapping[str, str]) -> Deployment:
    """The deployment that the template at `path` describes, with the settings of `environment`.

    Raises TemplateError for what cannot be served from this machine.
    """
    document = load(path)
    names = environment_names(document)
    given = {reference: environment[name] for reference, name in names.items() if name in environment}
    queues = queue_urls(Template(document, given), environment.get("SQS_ENDPOINT", ""))
    template = Template(document, queues | given)
    template.check_rules()
    functions = _functions(document, template, path.parent, environment)
    properties = {name: each for name, each in _function_properties(document).items() if name in functions}
    return Deployment(
        functions=functions,
        routes=_routes(template, functions),
        cors=_cors(template),
        tables=_tables(template),
        queues=read_queues(template),
        mappings=read_mappings(template, properties),
    )


def environment_names(document: Mapping[str, Value]) -> dict[str, str]:
    """The environment name of each parameter, and of each resource that a function is told of."""
    names = {name: _capitals(name) for name in mapping(document.get("Parameters"))}
    for properties in _function_properties(document).values():
        for name, value in _variables(properties).items():
            if isinstance(value, dict) and set(value) == {"Ref"}:
                names[text(value["Ref"])] = name
    return names


def _capitals(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


def _variables(properties: Mapping[str, Value]) -> dict[str, Value]:
    return mapping(mapping(properties.get("Environment")).get("Variables"))


def _function_properties(document: Mapping[str, Value]) -> dict[str, dict[str, Value]]:
    """The properties of each function, SAM's `Globals` merged in."""
    shared = mapping(mapping(document.get("Globals")).get("Function"))
    resources = {name: mapping(body) for name, body in mapping(document.get("Resources")).items()}
    return {
        name: mapping(_merge(shared, mapping(body.get("Properties"))))
        for name, body in resources.items()
        if body.get("Type") == FUNCTION
    }


def _merge(shared: Value, own: Value) -> Value:
    """As SAM merges `Globals`: mappings by key, lists one behind the other, or the resource's own."""
    if isinstance(shared, dict) and isinstance(own, dict):
        return shared | {key: _merge(shared.get(key), value) for key, value in own.items()}
    if isinstance(shared, list) and isinstance(own, list):
        return [*shared, *own]
    return own


def _functions(
    document: Mapping[str, Value], template: Template, root: Path, environment: Mapping[str, str]
) -> dict[str, Function]:
    layers = {
        name: _layer_path(root / text(template.resolve(mapping(body["Properties"])["ContentUri"])))
        for name, body in template.of_type(LAYER).items()
    }
    deployed = template.of_type(FUNCTION)
    functions = {}
    for name, properties in _function_properties(document).items():
        if name in deployed:
            functions[name] = Function(
                name=name,
                source=root / text(template.resolve(properties.get("CodeUri", "."))),
                handler=text(template.resolve(properties["Handler"])),
                timeout=float(text(template.resolve(properties.get("Timeout", DEFAULT_FUNCTION_TIMEOUT)))),
                memory=int(text(template.resolve(properties.get("MemorySize", DEFAULT_FUNCTION_MEMORY)))),
                variables={
                    variable: environment.get(variable, text(value))
                    for variable, value in mapping(template.resolve(_variables(properties))).items()
                },
                layers=tuple(
                    layers[layer]
                    for reference in sequence(template.resolve(properties.get("Layers")))
                    if (layer := text(reference)) in layers
                ),
            )
    return functions


def _layer_path(content: Path) -> Path:
    """The importable folder of a layer: `python/` in one laid out by hand, itself in one that SAM builds."""
    by_hand = content / "python"
    return by_hand if by_hand.is_dir() else content


def _properties(template: Template, kind: str) -> dict[str, dict[str, Value]]:
    return {
        name: mapping(template.resolve(mapping(body.get("Properties"))))
        for name, body in template.of_type(kind).items()
    }


def _routes(template: Template, functions: Mapping[str, Function]) -> tuple[Route, ...]:
    integrations = {
        text(template.reference(name)): properties
        for name, properties in _properties(template, "AWS::ApiGatewayV2::Integration").items()
    }
    authorizers = {
        text(template.reference(name)): _jwt_authorizer(name, properties)
        for name, properties in _properties(template, "AWS::ApiGatewayV2::Authorizer").items()
    }
    routes = []
    for name, properties in _properties(template, "AWS::ApiGatewayV2::Route").items():
        target = text(properties.get("Target", "")).removeprefix("integrations/")
        if target not in integrations:
            raise TemplateError(f"route {name} has no integration in this template")
        integration = integrations[target]
        uri = re.search(r":function:([A-Za-z0-9]+)", text(integration.get("IntegrationUri", "")))
        if uri is None or uri[1] not in functions:
            raise TemplateError(f"integration {target} leads to no function of this template")
        timeout = float(text(integration.get("TimeoutInMillis", DEFAULT_INTEGRATION_TIMEOUT))) / 1000
        routes.append(Route(text(properties["RouteKey"]), uri[1], timeout, _authorizer(name, properties, authorizers)))
    return tuple(routes)


def _authorizer(
    name: str, properties: Mapping[str, Value], authorizers: Mapping[str, JwtAuthorizer]
) -> Authorizer | None:
    kind = text(properties.get("AuthorizationType", "NONE"))
    if kind == "NONE":
        return None
    if kind == "AWS_IAM":
        return IamAuthorizer()
    authorizer = authorizers.get(text(properties.get("AuthorizerId", "")))
    if kind != "JWT" or authorizer is None or sequence(properties.get("AuthorizationScopes")):
        raise TemplateError(f"the authorization of route {name} cannot be imitated here")
    return authorizer


def _jwt_authorizer(name: str, properties: Mapping[str, Value]) -> JwtAuthorizer:
    (source,) = _texts(properties.get("IdentitySource")) or ("",)
    header = re.fullmatch(r"\$request\.header\.([\w-]+)", source)
    if text(properties.get("AuthorizerType", "")) != "JWT" or header is None:
        raise TemplateError(f"authorizer {name} cannot be imitated here")
    configuration = mapping(properties.get("JwtConfiguration"))
    issuer, audience = text(configuration.get("Issuer", "")), _texts(configuration.get("Audience"))
    return JwtAuthorizer(issuer, audience, header[1].lower())


def _cors(template: Template) -> Cors | None:
    for properties in _properties(template, "AWS::ApiGatewayV2::Api").values():
        if cors := mapping(properties.get("CorsConfiguration")):
            return Cors(
                origins=_texts(cors.get("AllowOrigins")),
                methods=_texts(cors.get("AllowMethods")),
                headers=_texts(cors.get("AllowHeaders")),
                exposed=_texts(cors.get("ExposeHeaders")),
                max_age=text(cors["MaxAge"]) if "MaxAge" in cors else None,
                credentials=text(cors.get("AllowCredentials", False)) == "true",
            )
    return None


def _texts(value: Value) -> tuple[str, ...]:
    return tuple(text(item) for item in sequence(value))


CREATION_PROPERTIES = (
    "AttributeDefinitions",
    "BillingMode",
    "GlobalSecondaryIndexes",
    "KeySchema",
    "LocalSecondaryIndexes",
    "ProvisionedThroughput",
)


def _tables(template: Template) -> tuple[Table, ...]:
    return tuple(
        _table(text(properties.get("TableName", template.reference(name))), properties)
        for name, properties in _properties(template, TABLE).items()
    )


def _table(name: str, properties: Mapping[str, Value]) -> Table:
    creation: dict[str, Value] = {"TableName": name}
    creation |= {key: properties[key] for key in CREATION_PROPERTIES if key in properties}
    stream = mapping(properties.get("StreamSpecification"))
    if stream:
        creation["StreamSpecification"] = {
            "StreamEnabled": True,
            "StreamViewType": stream.get("StreamViewType", "NEW_AND_OLD_IMAGES"),
        }
    expiry = mapping(properties.get("TimeToLiveSpecification"))
    enabled = text(expiry.get("Enabled", False)) == "true"
    return Table(name, creation, text(expiry["AttributeName"]) if enabled else None)
