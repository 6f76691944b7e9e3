"""The embedded DynamoDB made faster: what moto does at length for every attribute, done shortly for the usual ones.

A list of 10,000 tasks takes moto a sort of all of them for each page, with a look at every type that a string might
be; and each attribute of an answer is looked up under some thirty names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moto.core.serialize import AttributePicker
from moto.dynamodb.models.dynamo_type import DDBType, DynamoType

if TYPE_CHECKING:
    from moto.core.serialize import AttributePickerContext

TYPES = frozenset({"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"})


def make_fast() -> None:
    """Compare strings as such, and read attributes by their types, from now on, in this process."""
    of_any_type = vars(DynamoType)["cast_value"].fget
    pick_by_names = AttributePicker.__call__

    def value(self: DynamoType) -> Any:
        return self.value if self.type == DDBType.STRING else of_any_type(self)

    def pick(self: AttributePicker, context: AttributePickerContext) -> Any:
        attribute = context.obj
        if context.key in TYPES and type(attribute) is dict and len(attribute) == 1 and not attribute.keys() - TYPES:
            return attribute.get(context.key)
        return pick_by_names(self, context)

    DynamoType.cast_value = property(value)  # type: ignore[method-assign, assignment]
    AttributePicker.__call__ = pick  # type: ignore[method-assign]
