"""An AWS client is made from the data that botocore itself would make it from."""

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import DataNotFoundError
from botocore.loaders import Loader
from botocore.session import get_session

from a2a_lambda.clients import JsonFiles, ServiceLoader, client

ENDPOINT = "http://127.0.0.1:9"


@pytest.mark.parametrize("service", ["dynamodb", "kms", "sqs"])
@pytest.mark.parametrize("kind", ["service-2", "endpoint-rule-set-1"])
def test_a_services_data_is_what_botocore_finds(service: str, kind: str) -> None:
    assert ServiceLoader(service).load_service_model(service, kind) == Loader().load_service_model(service, kind)


@pytest.mark.parametrize("name", ["endpoints", "partitions", "sdk-default-configuration"])
def test_the_data_of_all_services_is_what_botocore_finds(name: str) -> None:
    assert ServiceLoader("dynamodb").load_data(name) == Loader().load_data(name)


def test_what_there_is_not_is_not_found() -> None:
    with pytest.raises(DataNotFoundError):
        ServiceLoader("dynamodb").load_data("no-such-data")


def test_a_plain_file_goes_before_a_packed_one(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text(json.dumps({"which": "plain"}))
    (tmp_path / "data.json.gz").write_bytes(b"")

    assert JsonFiles().load_file(str(tmp_path / "data")) == {"which": "plain"}


def test_a_client_has_the_operations_of_botocores_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    made: Any = client("dynamodb", "", Config())
    own: Any = get_session().create_client("dynamodb")

    assert made.meta.method_to_api_mapping == own.meta.method_to_api_mapping
    assert made.meta.endpoint_url == own.meta.endpoint_url


def test_a_client_calls_the_endpoint_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")

    assert client("dynamodb", ENDPOINT, Config()).meta.endpoint_url == ENDPOINT
