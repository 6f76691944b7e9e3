"""Putting the parts together: ports, the database, the functions, the gateway."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from local.console import say
from local.database import DatabaseProcess, endpoint_of, serve_database
from local.deployment import read_deployment
from local.errors import PortError
from local.functions import load_function
from local.gateway import Gateway
from local.server import listen, port_of, serve_in_background
from local.tables import create_missing_tables
from local.welcome import welcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import ExitStack
    from pathlib import Path
    from socket import socket

    from local.deployment import Deployment

GATEWAY_THREADS = 128
LAST_PORT = 65_535

# Other than in AWS: one line a request is enough on a console.
LOCAL_DEFAULTS = {"POWERTOOLS_LOG_LEVEL": "WARN"}

# What botocore needs to call a DynamoDB on this machine, which asks nobody who they are.
LOCAL_IDENTITY = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}


def start_gateway(template: Path, at_exit: ExitStack) -> None:
    """Serve the template's functions in the background.

    Raises LocalError. What must be ended with the gateway is left to `at_exit`.
    """
    listener = _listen("PORT", 3000)
    endpoint = os.environ.get("DYNAMODB_ENDPOINT")
    if not endpoint:
        database = DatabaseProcess(_listen("DB_PORT", 8000))
        at_exit.callback(database.stop)
        endpoint = database.endpoint
    deployment = _prepare(template, endpoint)
    gateway = _gateway(deployment)
    create_missing_tables(endpoint, deployment.tables)
    serve_in_background(gateway, listener, GATEWAY_THREADS)
    say(welcome(gateway, port_of(listener), endpoint))


def start_database(template: Path) -> None:
    """Serve the embedded DynamoDB with the template's tables in the background.

    Raises LocalError.
    """
    listener = _listen("DB_PORT", 8000)
    serve_database(listener)
    endpoint = endpoint_of(listener)
    tables = _prepare(template, endpoint).tables
    create_missing_tables(endpoint, tables)
    say(f"DynamoDB  {endpoint}, with {', '.join(table.name for table in tables)}")
    say(f"Use it    make run DYNAMODB_ENDPOINT={endpoint}")
    say("Ctrl-C stops it.")


def _listen(variable: str, default: int) -> socket:
    """A socket on the port that the environment gives."""
    port = os.environ.get(variable) or str(default)
    if not port.isdecimal() or int(port) > LAST_PORT:
        raise PortError(f"{variable}={port} is not a port")
    try:
        return listen(int(port))
    except PortError as error:
        raise PortError(f"{error}. Choose another one with {variable}=") from error


def _prepare(template: Path, endpoint: str) -> Deployment:
    """The deployment, with its settings and its layers made this process's own."""
    if _is_here(endpoint):
        _set_missing(LOCAL_IDENTITY)
    given = LOCAL_DEFAULTS | os.environ | {"DYNAMODB_ENDPOINT": endpoint}
    deployment = read_deployment(template, given)
    os.environ.update(deployment.variables())
    # Behind PYTHONPATH, so that an agent kept elsewhere may be called like the one in layers/.
    sys.path.extend(str(path) for path in deployment.layers())
    return deployment


def _is_here(endpoint: str) -> bool:
    return urlsplit(endpoint).hostname in {"localhost", "127.0.0.1", "::1"}


def _set_missing(variables: Mapping[str, str]) -> None:
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def _gateway(deployment: Deployment) -> Gateway:
    routed = dict.fromkeys(route.function for route in deployment.routes)
    functions = {name: load_function(deployment.functions[name]) for name in routed}
    return Gateway(deployment.routes, functions, deployment.cors)
