"""The agent card: what it says, and how it is published."""

from typing import Final

import msgspec
import pytest

from a2a_lambda.agent import AgentProfile
from a2a_lambda.card import agent_card, matches, publish
from a2a_lambda.model import AgentCard, AgentExtension, AgentProvider
from order_status import OrderStatusAgent
from tests.unit.factories import PROFILE, SKILL, Json

URL: Final = "https://agent.example"
CARD: Final = agent_card(PROFILE, URL)


def shown(profile: AgentProfile) -> Json:
    return msgspec.json.decode(msgspec.json.encode(agent_card(profile, URL)))


def etag(card: AgentCard) -> str:
    _, _, headers = publish(card, "")
    return headers["etag"]


def test_a_card_says_what_the_agent_says_and_what_the_server_does() -> None:
    assert shown(PROFILE) == {
        "name": "Test agent",
        "description": "For tests.",
        "version": "1.0.0",
        "supportedInterfaces": [
            {"url": "https://agent.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "capabilities": {"streaming": False, "pushNotifications": False, "extendedAgentCard": False},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "echo", "name": "Echo", "description": "Says it again.", "tags": ["test"]}],
    }


def test_a_card_declares_push_notifications_where_there_are_any() -> None:
    assert agent_card(PROFILE, URL, push=True).capabilities.push_notifications is True


def test_a_card_has_the_provider_the_extensions_and_the_icon_that_the_agent_names() -> None:
    card = shown(
        AgentProfile(
            name="n",
            description="d",
            version="1",
            skills=[SKILL],
            extensions=[AgentExtension(uri="urn:x", required=True, params={"a": 1}), AgentExtension(uri="urn:y")],
            provider=AgentProvider("https://example.com", "Example"),
            documentation_url="https://example.com/docs",
            icon_url="https://example.com/icon.png",
        )
    )

    assert card["provider"] == {"url": "https://example.com", "organization": "Example"}
    assert card["documentationUrl"] == "https://example.com/docs"
    assert card["iconUrl"] == "https://example.com/icon.png"
    assert card["capabilities"]["extensions"] == [
        {"uri": "urn:x", "required": True, "params": {"a": 1}},
        {"uri": "urn:y"},
    ]


def test_required_lists_are_there_when_they_are_empty() -> None:
    card = shown(AgentProfile(name="", description="", version="", skills=[], default_input_modes=[]))

    assert (card["skills"], card["defaultInputModes"], card["name"]) == ([], [], "")


def test_the_demo_agent_takes_and_gives_text_and_data() -> None:
    card = shown(OrderStatusAgent.card)

    assert card["defaultInputModes"] == card["defaultOutputModes"] == ["text/plain", "application/json"]


# Publishing


def test_a_card_may_be_cached_for_an_hour() -> None:
    status, content, headers = publish(CARD, "")

    assert (status, msgspec.json.decode(content, type=AgentCard)) == (200, CARD)
    assert headers["cache-control"] == "public, max-age=3600"
    assert headers["content-type"] == "application/json"


def test_the_etag_is_strong_and_follows_the_content() -> None:
    assert etag(CARD) == etag(agent_card(PROFILE, URL))
    assert etag(CARD) != etag(agent_card(PROFILE, "https://another.example"))
    assert etag(CARD).startswith('"')


def test_who_has_the_card_is_sent_no_content() -> None:
    status, content, headers = publish(CARD, etag(CARD))

    assert (status, content) == (304, b"")
    assert headers == {"cache-control": "public, max-age=3600", "etag": etag(CARD)}


@pytest.mark.parametrize(
    "header", ['"e"', 'W/"e"', '"x", "e"', '"x","e","y"', 'W/"x",  W/"e"', "*", " * ", '"e" , "x"', '"x",\t"e"']
)
def test_an_etag_is_found_in_a_list_and_in_the_weak_form(header: str) -> None:
    assert matches(header, '"e"')


@pytest.mark.parametrize("header", ["", '"x"', "e", "'e'", 'W/"x"', 'w/"e"', '"E"', '"e', "**", '"*"', ",", '"e""x"'])
def test_anything_else_is_no_match(header: str) -> None:
    assert not matches(header, '"e"')
