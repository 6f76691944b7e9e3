"""AWS clients that are made fast: botocore's own, with a loader that knows where to look, and a fast reader.

To make a client botocore looks through the folders of all its services (over 400), twice, and parses its JSON with
the standard library. Its loader is a part that may be exchanged, by `Session.register_component`.
"""

import gzip
from pathlib import Path
from typing import Any

import botocore.session
import msgspec
from botocore.config import Config
from botocore.loaders import JSONFileLoader, Loader

from a2a_lambda.parsers import FastParsers


def client(service: str, endpoint: str, config: Config) -> Any:
    """Return a client of an AWS service; the endpoint is a URL, or "" for the region's own."""
    session = botocore.session.get_session()
    session.register_component("data_loader", ServiceLoader(service))
    session.register_component("response_parser_factory", FastParsers())
    return session.create_client(service, endpoint_url=endpoint or None, config=config)


class JsonFiles(JSONFileLoader):  # type: ignore[misc] # botocore has no types
    """Reads the files that botocore's own reader does, with msgspec."""

    def load_file(self, file_path: str) -> Any:
        """Return a file's content, None where there is no such file. The path lacks the ending."""
        plain, packed = Path(f"{file_path}.json"), Path(f"{file_path}.json.gz")
        if plain.is_file():
            return msgspec.json.decode(plain.read_bytes())
        if packed.is_file():
            return msgspec.json.decode(gzip.decompress(packed.read_bytes()))
        return None


class ServiceLoader(Loader):  # type: ignore[misc] # botocore has no types
    """Finds the data of one service as botocore's own loader does, and says that there is no other."""

    def __init__(self, service: str) -> None:
        """Args: the service's name, as `create_client` takes it."""
        super().__init__(file_loader=JsonFiles())
        self._service = service

    def list_available_services(self, type_name: str) -> list[str]:  # noqa: ARG002 - botocore's signature
        """Return the services that there are."""
        return [self._service]
