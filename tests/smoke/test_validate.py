"""`make validate`: a public validator has nothing against the card, and something against a broken one."""

import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.local.processes import GATEWAY, Command
from tests.smoke.faulty import Asked, Fault, FaultyServer, Given, Json, PassOn, listening

MAKE = shutil.which("make")

pytestmark = pytest.mark.skipif(MAKE is None, reason="needs make")


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with listening() as listener, Command(GATEWAY, {"PUBLIC_URL": listener.address, "AUTH": "api-key"}) as gateway:
        listener.gateway = gateway.ready().gateway
        yield listener


def validate(url: str) -> tuple[bool, str]:
    """Whether the card is taken, and what is said of it."""
    with Command([str(MAKE), "--silent", "validate", f"URL={url}"]) as validating:
        status = validating.end()
        return status == 0, validating.output


def breaking(change: Callable[[Json], object]) -> Fault:
    def fault(asked: Asked, pass_on: PassOn) -> Given:
        given = pass_on(asked)
        card = given.json
        change(card)
        return given.with_json(card)

    return fault


def test_the_card_is_taken(server: FaultyServer) -> None:
    valid, said = validate(server.address)
    assert valid, said
    assert "ERROR" not in said


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda card: card.pop("skills"), "missing required field 'skills'"),
        (lambda card: card["skills"][0].pop("tags"), "skills[0].tags"),
        (lambda card: card["supportedInterfaces"][0].update(url="/a2a"), "must be an absolute URL"),
        (lambda card: card.update(supportedInterfaces=[], url="https://a.example"), "supportedInterfaces"),
    ],
)
def test_a_broken_card_is_not(change: Callable[[Json], object], found: str, server: FaultyServer) -> None:
    server.fault = breaking(change)
    valid, said = validate(server.address)
    assert not valid
    assert found in said


def test_what_is_not_there_is_no_valid_card() -> None:
    with listening() as gone:
        nobody = gone.address
    valid, said = validate(nobody)
    assert not valid
    assert "error" in said
