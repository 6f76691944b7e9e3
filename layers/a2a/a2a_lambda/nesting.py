"""How deep JSON may nest here, on its way in and out: no deeper than everyone on the way can read."""

from typing import Any, Final

MAX_NESTING: Final = 90
"""Levels of objects and arrays in a request, and in what an agent gives. Protobuf's own JSON parsers read 100, and
an answer wraps what it carries in some more."""


def nests_deeper(content: bytes, value: Any, levels: int) -> bool:
    """Tell whether a JSON value, whose encoding is `content`, has more levels of objects and arrays than this."""
    if content.count(b"[") + content.count(b"{") <= levels:
        return False
    level = [value]
    for _ in range(levels):
        containers = [each.values() if isinstance(each, dict) else each for each in level]
        level = [child for container in containers for child in container if isinstance(child, dict | list | tuple)]
        if not level:
            return False
    return True
