"""Endpoints on this machine: which they are, and as whom they are called."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

# What botocore needs to call a DynamoDB on this machine, which asks nobody who they are.
LOCAL_IDENTITY = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}


def is_here(endpoint: str) -> bool:
    """Whether the endpoint is an address of this machine: one that could be listened on."""
    try:
        host = urlsplit(endpoint).hostname
        family, kind, protocol, _, address = socket.getaddrinfo(host or "", 0, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except (OSError, ValueError):
        return False
    return bool(host)


def identify_to(endpoint: str) -> None:
    """Let this process call the endpoint, when it is on this machine, also where nothing of AWS is set up."""
    if is_here(endpoint):
        set_missing(LOCAL_IDENTITY)


def set_missing(variables: Mapping[str, str]) -> None:
    """Set the environment variables that are not set."""
    for name, value in variables.items():
        os.environ.setdefault(name, value)
