"""Page tokens of ListTasks (§3.1.4): where a walk through a list goes on.

A token is opaque to the caller. It holds a place in the list, and a digest that ties it to its list: an altered
token, another caller's and another filter's are all told apart from the right one. It is no secret: it names
nothing that its caller has not been shown.
"""

import binascii
import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from a2a_lambda.errors import InvalidParamsError

TOKEN_LIFETIME: Final = 24 * 3600 * 1000
"""How long a token can be used, in milliseconds."""


CLOCK_SKEW: Final = 5 * 60 * 1000
"""How far in the future a token may have been made, by the clock of another instance, in milliseconds."""


class Place(Struct, frozen=True, array_like=True):
    """A place in a list: after which entry to go on, and how many entries the list had at its first page."""

    cursor: str
    total: Annotated[int, Meta(ge=0, le=2**31 - 1)]
    issued_at: int
    """When the token was made, in milliseconds since the epoch."""


class _Token(Struct, frozen=True, array_like=True):
    place: Place
    digest: str


def make_token(place: Place, list_name: str) -> str:
    """Return the token for a place in the list that the name stands for (owner and filters, no two alike)."""
    return urlsafe_b64encode(msgspec.json.encode(_Token(place, _digest(place, list_name)))).decode()


def read_token(token: str, list_name: str, now: int) -> Place:
    """Return the place that a token stands for.

    Raises:
        InvalidParamsError: the token was not made by `make_token`, is another list's, or is too old.
    """
    try:
        decoded = msgspec.json.decode(urlsafe_b64decode(token), type=_Token)
    except (binascii.Error, ValueError) as error:
        raise InvalidParamsError.at("pageToken", "is not a page token of this server") from error
    place = decoded.place
    if make_token(place, list_name) != token:
        raise InvalidParamsError.at("pageToken", "is not a page token of this list, with these filters")
    if not -CLOCK_SKEW <= now - place.issued_at < TOKEN_LIFETIME:
        raise InvalidParamsError.at("pageToken", "is older than 24 hours; start again without a token")
    return place


def _digest(place: Place, list_name: str) -> str:
    return hashlib.sha256(msgspec.json.encode([list_name, place])).hexdigest()
