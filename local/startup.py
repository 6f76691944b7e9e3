"""Putting the parts together: ports, the database, the functions, the gateway."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from local.console import complain, say
from local.database import DatabaseProcess, endpoint_of, serve_database
from local.deployment import read_deployment
from local.endpoints import LOCAL_IDENTITY, identify_to, is_here, set_missing
from local.errors import DatabaseUnreachableError, PortError
from local.functions import load_function
from local.gateway import Gateway
from local.queues import create_missing_queues, serves_queues
from local.server import HOST, listen, port_of, serve_in_background
from local.signing_key import CREATE, with_created_key
from local.sources import Sources
from local.tables import create_missing_tables
from local.welcome import welcome

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path
    from socket import socket
    from wsgiref.types import WSGIApplication

    from local.deployment import Deployment

GATEWAY_THREADS = 128
LAST_PORT = 65_535

# Other than in AWS: everybody may call, and one line a request is enough on a console.
LOCAL_DEFAULTS = {
    "AUTH": "none",
    "POWERTOOLS_LOG_LEVEL": "WARN",
    "POWERTOOLS_METRICS_DISABLED": "true",
}


def start_gateway(template: Path, at_exit: ExitStack) -> None:
    """Serve the template's functions in the background.

    Raises LocalError. What must be ended with the gateway is left to `at_exit`.
    """
    listener = _listen("PORT", 3000)
    endpoint = os.environ.get("DYNAMODB_ENDPOINT")
    sqs_endpoint = os.environ.get("SQS_ENDPOINT", "")
    if not endpoint:
        database = DatabaseProcess(_listen("DB_PORT", 8000))
        at_exit.callback(database.stop)
        endpoint = database.endpoint
        sqs_endpoint = sqs_endpoint or endpoint
    sqs_endpoint = sqs_endpoint or _queues_beside(endpoint)
    deployment = _prepare(template, endpoint, sqs_endpoint)
    mappings = deployment.mappings if sqs_endpoint else ()
    named = [route.function for route in deployment.routes] + [mapping.function for mapping in mappings]
    functions = {name: load_function(deployment.functions[name]) for name in dict.fromkeys(named)}
    gateway = Gateway(deployment.routes, functions, deployment.cors)
    create_missing_tables(endpoint, deployment.tables)
    application: WSGIApplication = gateway
    if mappings:
        create_missing_queues(sqs_endpoint, deployment.queues)
        sources = Sources(deployment, endpoint, sqs_endpoint)
        sources.start(mappings, functions)
        at_exit.callback(sources.stop)
        application = sources.waking(gateway)
    elif deployment.mappings:
        complain(f"Warning: no SQS answers at {endpoint}, so background turns and webhooks wait. Give SQS_ENDPOINT=")
    serve_in_background(application, listener, GATEWAY_THREADS)
    for warning in dict.fromkeys(route.authorizer.warning for route in deployment.routes if route.authorizer):
        complain(f"Warning: {warning}")
    say(welcome(gateway, port_of(listener), endpoint, os.environ["AUTH"]))


def start_database(template: Path) -> None:
    """Serve the embedded DynamoDB with the template's tables in the background.

    Raises LocalError.
    """
    host = os.environ.get("DB_HOST") or HOST
    listener = _listen("DB_PORT", 8000, host)
    serve_database(listener)
    endpoint = endpoint_of(listener)
    set_missing(LOCAL_IDENTITY)
    deployment = read_deployment(template, os.environ | {"SQS_ENDPOINT": endpoint})
    create_missing_tables(endpoint, deployment.tables)
    create_missing_queues(endpoint, deployment.queues)
    if host != HOST:
        complain(f"Warning: whoever reaches {host} can read and write this database")
    say(f"DynamoDB  {endpoint}, with {', '.join(table.name for table in deployment.tables)}")
    say(f"Use it    make run DYNAMODB_ENDPOINT={endpoint}")
    say("Ctrl-C stops it.")


def _listen(variable: str, default: int, host: str = HOST) -> socket:
    """A socket on the port that the environment gives; the host is DB_HOST's, where it is not the usual one."""
    port = os.environ.get(variable) or str(default)
    if not port.isdecimal() or int(port) > LAST_PORT:
        raise PortError(f"{variable}={port} is not a port")
    try:
        return listen(int(port), host)
    except PortError as error:
        elsewhere = "" if host == HOST else " or DB_HOST="
        raise PortError(f"{error}. Choose another one with {variable}={elsewhere}") from error


def _queues_beside(endpoint: str) -> str:
    """The endpoint of the SQS that there is where the DynamoDB is, if that is on this machine; "" without one."""
    identify_to(endpoint)
    return endpoint if is_here(endpoint) and serves_queues(endpoint) else ""


def _prepare(template: Path, endpoint: str, sqs_endpoint: str) -> Deployment:
    """The deployment, with its settings and its layers made this process's own."""
    identify_to(endpoint)
    set_missing(LOCAL_DEFAULTS)
    given = os.environ | {"DYNAMODB_ENDPOINT": endpoint, "SQS_ENDPOINT": sqs_endpoint}
    if is_here(endpoint) and not given.get("KMS_ENDPOINT"):
        given["KMS_ENDPOINT"] = endpoint
    if CREATE in given.get("SIGNING_KEY", "").split(","):
        if not given.get("KMS_ENDPOINT"):
            raise DatabaseUnreachableError(f"SIGNING_KEY={CREATE} needs a KMS_ENDPOINT where the database is elsewhere")
        given["SIGNING_KEY"] = with_created_key(given["SIGNING_KEY"], given["KMS_ENDPOINT"])
    deployment = read_deployment(template, given)
    os.environ.update(deployment.variables())
    # Behind PYTHONPATH, so that an agent kept elsewhere may be called like the one in layers/.
    sys.path.extend(str(path) for path in deployment.layers())
    return deployment
