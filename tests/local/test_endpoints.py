"""Which endpoints are on this machine."""

import os

import pytest

from local.endpoints import LOCAL_IDENTITY, identify_to, is_here


@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.1:8000", "http://localhost:8000", "http://0.0.0.0:8000", "https://127.0.0.1"]
)
def test_an_address_that_can_be_listened_on_is_here(endpoint: str) -> None:
    assert is_here(endpoint)


@pytest.mark.parametrize(
    "endpoint", ["http://192.0.2.1:8000", "https://dynamodb.example.invalid", "", "x", "127.0.0.1:8000", "http://[x"]
)
def test_everything_else_is_not(endpoint: str) -> None:
    assert not is_here(endpoint)


def test_nobody_in_particular_calls_an_endpoint_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LOCAL_IDENTITY:
        monkeypatch.setenv(name, "mine")
        monkeypatch.delenv(name)
    identify_to("http://127.0.0.1:8000")
    assert {name: os.environ[name] for name in LOCAL_IDENTITY} == LOCAL_IDENTITY


def test_who_is_known_already_calls_as_who_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LOCAL_IDENTITY:
        monkeypatch.setenv(name, "mine")
    identify_to("http://127.0.0.1:8000")
    assert {os.environ[name] for name in LOCAL_IDENTITY} == {"mine"}


def test_an_endpoint_elsewhere_is_called_as_whoever_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LOCAL_IDENTITY:
        monkeypatch.setenv(name, "mine")
        monkeypatch.delenv(name)
    identify_to("http://192.0.2.1:8000")
    assert not LOCAL_IDENTITY.keys() & os.environ.keys()
