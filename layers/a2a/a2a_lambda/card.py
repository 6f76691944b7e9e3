"""The agent card (§8): what the agent's author says of it, and what this server adds. No AWS client.

Publishing follows §8.6: the card may be cached for an hour, and its ETag is a hash of its content. How callers
authenticate is added by `security`, signatures by `signing`.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec

from a2a_lambda.agent import AgentProfile
from a2a_lambda.model import PROTOCOL_VERSION, AgentCapabilities, AgentCard, AgentInterface

CACHE_CONTROL: Final = "public, max-age=3600"
CARD_TYPE: Final = "application/json"
RPC_PATH: Final = "/a2a"


def agent_card(profile: AgentProfile, base_url: str, *, push: bool = False) -> AgentCard:
    """Return the public card of an agent that is served at a base URL (no trailing slash), with push or without."""
    return AgentCard(
        name=profile.name,
        description=profile.description,
        version=profile.version,
        supported_interfaces=[AgentInterface(base_url + RPC_PATH, "JSONRPC", PROTOCOL_VERSION)],
        capabilities=AgentCapabilities(
            streaming=False,
            push_notifications=push,
            extensions=list(profile.extensions),
            extended_agent_card=False,
        ),
        default_input_modes=list(profile.default_input_modes),
        default_output_modes=list(profile.default_output_modes),
        skills=list(profile.skills),
        provider=profile.provider,
        documentation_url=profile.documentation_url,
        icon_url=profile.icon_url,
    )


def publish(card: AgentCard, if_none_match: str) -> tuple[int, bytes, Mapping[str, str]]:
    """Return status, content and headers of the answer to a request for the card (§8.6).

    Args:
        card: the card.
        if_none_match: the request's header, "" where there is none.
    """
    return conditional(msgspec.json.encode(card), CARD_TYPE, CACHE_CONTROL, if_none_match)


def conditional(
    content: bytes, media_type: str, cache_control: str, if_none_match: str
) -> tuple[int, bytes, Mapping[str, str]]:
    """Return status, content and headers of an answer, without the content where the client has it (RFC 9110 §13)."""
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"cache-control": cache_control, "etag": etag}
    if matches(if_none_match, etag):
        return 304, b"", headers
    return 200, content, {"content-type": media_type, **headers}


def matches(if_none_match: str, etag: str) -> bool:
    """Tell whether an If-None-Match header names an ETag: in a list, in the weak form, or by `*` (RFC 9110 §13.1.2)."""
    named = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return etag.removeprefix("W/") in named or named == ["*"]
