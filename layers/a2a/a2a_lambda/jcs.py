"""JSON in its one canonical form: the JSON Canonicalization Scheme (RFC 8785)."""

import json
from decimal import Decimal
from math import isfinite
from typing import Any, Final

MAX_PLAIN_DIGITS: Final = 21
MAX_LEADING_ZEROS: Final = 6
"""Beyond these, ECMAScript writes a number with an exponent: 1e+21, 1e-7."""


def canonical(value: Any) -> bytes:
    """Return the canonical form of a JSON value: members sorted, no white space, UTF-8.

    Raises:
        ValueError: a number that JSON does not have, or text that is not Unicode.
    """
    return _text(value).encode()


def _text(value: Any) -> str:
    match value:
        case dict():
            return "{" + ",".join(f"{_string(name)}:{_text(value[name])}" for name in sorted(value, key=_utf16)) + "}"
        case list():
            return "[" + ",".join(map(_text, value)) + "]"
        case str():
            return _string(value)
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case _:
            return _number(float(value))


def _utf16(name: str) -> bytes:
    """Return what names are sorted by: their UTF-16 code units (§3.2.3)."""
    return name.encode("utf-16-be")


def _string(value: str) -> str:
    # Python escapes as §3.2.2.2 says: the quote, the backslash and the control characters, the latter in lower case.
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    """Return a number as ECMAScript writes it (§3.2.2.3; ECMA-262, Number::toString).

    Python finds the same shortest digits, and places the point and the exponent differently.
    """
    if not isfinite(value):
        raise ValueError("JSON has no such number")
    if value == 0:
        return "0"
    shortest = Decimal(repr(value)).normalize()
    sign, digits, _ = shortest.as_tuple()
    return "-" * sign + _placed("".join(map(str, digits)), shortest.adjusted() + 1)


def _placed(digits: str, point: int) -> str:
    """Return digits with the point behind the first `point` of them, in the notation that ECMAScript chooses."""
    if len(digits) <= point <= MAX_PLAIN_DIGITS:
        return digits + "0" * (point - len(digits))
    if 0 < point <= MAX_PLAIN_DIGITS:
        return f"{digits[:point]}.{digits[point:]}"
    if -MAX_LEADING_ZEROS < point <= 0:
        return f"0.{'0' * -point}{digits}"
    fraction = "." + digits[1:] if digits[1:] else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"
