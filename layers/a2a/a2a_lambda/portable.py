"""JSON that everyone on the way can read, whatever they read it with: what holds here, on its way in and out."""

import re
import sys
from typing import Any, Final

MAX_NESTING: Final = 50
"""Levels of objects and arrays. Protobuf's JSON parsers take 100 messages, and a level of free JSON is two."""

MAX_NUMBER: Final = int(sys.float_info.max)
"""Protobuf keeps every number as a double."""

LONG_NUMBER: Final = re.compile(rb"[0-9]{309}")


def is_portable(content: bytes, value: Any) -> bool:
    """Tell whether a JSON value, whose encoding is `content`, nests no deeper and has no larger numbers than this."""
    if content.count(b"[") + content.count(b"{") > MAX_NESTING and _nests_too_deeply(value):
        return False
    return not (LONG_NUMBER.search(content) and _has_too_large_number(value))


def _nests_too_deeply(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_NESTING):
        level = [
            child for container in level for child in _children(container) if isinstance(child, dict | list | tuple)
        ]
        if not level:
            return False
    return True


def _has_too_large_number(value: Any) -> bool:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, int) and abs(each) > MAX_NUMBER:
            return True
        waiting += _children(each)
    return False


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else []
