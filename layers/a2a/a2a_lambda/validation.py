"""From a request's JSON values to the wire types, naming every field that breaks a rule (§5.5–5.7, §9.5).

The rules of a field are read from its class in `model`; those that hold for requests only are the `Validator`'s.
What ProtoJSON accepts is accepted: camelCase and proto names, enum names and numbers, whole floats and decimal
strings as integers, both base64 alphabets, null for unset. Unknown fields are ignored.
"""

import binascii
import re
from collections.abc import Callable, Mapping, Sized
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

from msgspec import UNSET, Struct, inspect

from a2a_lambda.addresses import header_rule
from a2a_lambda.errors import InvalidParamsError, Violation
from a2a_lambda.model import (
    AuthenticationInfo,
    CreateTaskPushNotificationConfigRequest,
    Message,
    Part,
    Role,
    TaskPushNotificationConfig,
)

T = TypeVar("T", bound=Struct)
Violations = list[Violation]
Reader = Callable[[Any, str, Violations], Any]
"""Turns a JSON value at a path into a field's value. What it cannot accept it adds to the violations."""

INT32: Final = range(-(2**31), 2**31)
BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")
TIMESTAMP: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
"""RFC 3339, to the nanosecond: date, time, fraction, offset."""
DECIMAL: Final = re.compile(r"-?[0-9]{1,10}")


Rule = Callable[[Any], str | None]
"""Says what is wrong with a field's value, or None."""


class Limits(Struct, frozen=True, kw_only=True):
    """How much a message may hold."""

    max_parts: int
    max_text_chars: int


class Validator:
    """Reads the parameters of operations."""

    def __init__(self, limits: Limits) -> None:
        """Args: limits that hold for messages from clients."""
        self._rules: dict[tuple[type, str], Rule] = {
            (Message, "role"): _sent_by_client,
            (Message, "parts"): partial(_at_most, limits.max_parts, "parts"),
            (Part, "text"): partial(_at_most, limits.max_text_chars, "characters"),
            (TaskPushNotificationConfig, "token"): header_rule,
            (CreateTaskPushNotificationConfigRequest, "token"): header_rule,
            (AuthenticationInfo, "scheme"): header_rule,
            (AuthenticationInfo, "credentials"): header_rule,
        }
        self._readers: dict[type[Struct], Reader] = {}

    def read(self, request_type: type[T], params: Any) -> T:
        """Return the parameters of an operation, checked.

        Args:
            request_type: a class of `model`, for example SendMessageRequest.
            params: what the request carries as its parameters; null is an empty object.

        Raises:
            InvalidParamsError: with every violated field, in the order of the class.
        """
        if request_type not in self._readers:
            self._readers[request_type] = _reader(inspect.type_info(request_type), self._rules)
        violations: Violations = []
        value = self._readers[request_type]({} if params is None else params, "", violations)
        if violations:
            raise InvalidParamsError(violations)
        return value  # type: ignore[no-any-return]


def _sent_by_client(role: Role) -> str | None:
    return None if role is Role.USER else "must be ROLE_USER in a message from a client"


def _at_most(most: int, things: str, value: Sized) -> str | None:
    return None if len(value) <= most else f"must have at most {most} {things}"


def _reader(info: inspect.Type, rules: Mapping[tuple[type, str], Rule]) -> Reader:
    match info:
        case inspect.StructType():
            return _struct_reader(info, rules)
        case inspect.ListType():
            return _list_reader(_reader(info.item_type, rules))
        case inspect.EnumType():
            return _enum_reader(info.cls)
        case inspect.StrType():
            return _string_reader(info.max_length)
        case inspect.IntType():
            return _integer_reader(info.ge, info.le)
        case _:
            return PLAIN_READERS[type(info)]


def _refuse(violations: Violations, path: str, rule: str) -> Any:
    violations.append(Violation(path, rule))
    return UNSET


def _struct_reader(info: inspect.StructType, rules: Mapping[tuple[type, str], Rule]) -> Reader:
    readers = [(field, _reader(field.type, rules), rules.get((info.cls, field.name))) for field in info.fields]
    oneof = getattr(info.cls, "ONEOF", ())

    def read_struct(value: Any, path: str, violations: Violations) -> Any:
        if not isinstance(value, dict):
            return _refuse(violations, path or "params", "must be an object")
        before = len(violations)
        fields: dict[str, Any] = {}
        given: set[str] = set()
        for field, reader, rule in readers:
            at = f"{path}.{field.encode_name}" if path else field.encode_name
            so_far = len(violations)
            found = _read_field(value, field, reader, at, violations)
            if found is not UNSET or len(violations) > so_far:
                given.add(field.name)
            if found is UNSET:
                continue
            fields[field.name] = found
            if rule and (complaint := rule(found)):
                _refuse(violations, at, complaint)
        if oneof and len(given.intersection(oneof)) != 1:
            _refuse(violations, path, f"must have exactly one of {', '.join(oneof)}")
        return info.cls(**fields) if len(violations) == before else UNSET

    return read_struct


def _read_field(value: dict[str, Any], field: inspect.Field, reader: Reader, path: str, violations: Violations) -> Any:
    """Return a field's value, found by its JSON or its proto name; UNSET where it is absent, null or refused."""
    before = len(violations)
    nullable = isinstance(field.type, inspect.AnyType)
    names = {field.encode_name, field.name} & value.keys()
    present = [value[name] for name in names if nullable or value[name] is not None]
    if len(present) > 1:
        return _refuse(violations, path, f"is given twice, as {field.encode_name} and as {field.name}")
    found = reader(present[0], path, violations) if present else UNSET
    if field.required and len(violations) == before and found in (UNSET, "", []):
        return _refuse(violations, path, "is required")
    return found


def _list_reader(item: Reader) -> Reader:
    def read_list(value: Any, path: str, violations: Violations) -> Any:
        if not isinstance(value, list):
            return _refuse(violations, path, "must be an array")
        return [item(each, f"{path}[{index}]", violations) for index, each in enumerate(value)]

    return read_list


def _enum_reader(members: Any) -> Reader:
    by_name = {member.value: member for member in members}
    by_number = dict(enumerate(members, start=1))
    unspecified = f"{next(iter(by_name)).rpartition('_')[0]}_UNSPECIFIED"

    def read_enum(value: Any, path: str, violations: Violations) -> Any:
        if value == unspecified or (_is_number(value) and value == 0):
            return UNSET
        member = None
        if _is_number(value):
            member = by_number.get(value)
        elif isinstance(value, str):
            member = by_name.get(value)
        return member or _refuse(violations, path, f"must be one of {', '.join(by_name)}")

    return read_enum


def _string_reader(max_length: int | None) -> Reader:
    def read_string(value: Any, path: str, violations: Violations) -> Any:
        if not isinstance(value, str):
            return _refuse(violations, path, "must be a string")
        if max_length is not None and (complaint := _at_most(max_length, "characters", value)):
            return _refuse(violations, path, complaint)
        return value

    return read_string


def _integer_reader(least: int | None, most: int | None) -> Reader:
    def read_integer(value: Any, path: str, violations: Violations) -> Any:
        number = int(value) if _is_whole(value) else None
        if number is None or number not in INT32:
            return _refuse(violations, path, "must be a whole number of 32 bits")
        if least is not None and number < least:
            return _refuse(violations, path, f"must be {least} or more")
        if most is not None and number > most:
            return _refuse(violations, path, f"must be {most} or less")
        return number

    return read_integer


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    if isinstance(value, str):
        return DECIMAL.fullmatch(value) is not None
    return _is_number(value) and value == value // 1


def _read_timestamp(value: Any, path: str, violations: Violations) -> Any:
    match = TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return _refuse(violations, path, "must be a time like 2026-09-26T20:37:31.121Z, with a zone")
    day, clock, fraction, offset = match.groups(default="")
    try:
        second = datetime.fromisoformat(f"{day}T{clock}{offset.upper()}").astimezone(UTC)
    except (ValueError, OverflowError):
        return _refuse(violations, path, "must be a time of the years 0001 to 9999")
    microseconds = -(-int(fraction.ljust(9, "0")) // 1000)
    try:
        return second + timedelta(microseconds=microseconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _read_boolean(value: Any, path: str, violations: Violations) -> Any:
    return value if isinstance(value, bool) else _refuse(violations, path, "must be true or false")


def _read_bytes(value: Any, path: str, violations: Violations) -> Any:
    standard = value.replace("-", "+").replace("_", "/") if isinstance(value, str) else "not base64"
    digits = standard.rstrip("=")
    if not BASE64.fullmatch(standard) or len(digits) % 4 == 1:
        return _refuse(violations, path, "must be base64")
    return binascii.a2b_base64(digits + "=" * (-len(digits) % 4))


def _read_object(value: Any, path: str, violations: Violations) -> Any:
    return value if isinstance(value, dict) else _refuse(violations, path, "must be an object")


def _read_anything(value: Any, _path: str, _violations: Violations) -> Any:
    return value


PLAIN_READERS: Final[dict[type[inspect.Type], Reader]] = {
    inspect.AnyType: _read_anything,
    inspect.BoolType: _read_boolean,
    inspect.BytesType: _read_bytes,
    inspect.DateTimeType: _read_timestamp,
    inspect.DictType: _read_object,
}
"""The types that are read alike wherever they stand."""
