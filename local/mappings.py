"""Event source mappings: which function is invoked with the records of which stream or queue, and how.

They are read from the `Events` of the functions, of the types DynamoDB and SQS, as SAM makes
mappings of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from local.errors import TemplateError
from local.patterns import Pattern, read_pattern
from local.template import Template, Value, mapping, sequence, text

if TYPE_CHECKING:
    from collections.abc import Mapping

REPORTS = "ReportBatchItemFailures"
FOR_EVER = -1
# A queue without a limit of the template's is read by as many functions at a time as one machine does well with.
CONCURRENCY = 10

STREAM_PROPERTIES = {
    "BatchSize",
    "BisectBatchOnFunctionError",
    "DestinationConfig",
    "Enabled",
    "FilterCriteria",
    "FunctionResponseTypes",
    "MaximumRetryAttempts",
    "ParallelizationFactor",
    "StartingPosition",
    "Stream",
}
QUEUE_PROPERTIES = {
    "BatchSize",
    "Enabled",
    "FunctionResponseTypes",
    "Queue",
    "ScalingConfig",
}


@dataclass(frozen=True)
class StreamMapping:
    """A function that reads a table's stream. -1 retries are any number of them."""

    function: str
    table: str
    starts_at: str
    batch_size: int
    patterns: tuple[Pattern, ...]
    retries: int
    bisects: bool
    reports: bool
    on_failure: str | None


@dataclass(frozen=True)
class QueueMapping:
    """A function that reads a queue, in so many invocations at a time."""

    function: str
    queue: str
    batch_size: int
    concurrency: int
    reports: bool


SourceMapping: TypeAlias = "StreamMapping | QueueMapping"


def read_mappings(template: Template, functions: Mapping[str, Mapping[str, Value]]) -> tuple[SourceMapping, ...]:
    """The mappings of the functions, given as each one's properties. Tables go by name, queues by ARN.

    Raises TemplateError for what cannot be imitated.
    """
    return tuple(
        found
        for function, properties in functions.items()
        for name, event in mapping(properties.get("Events")).items()
        if (found := _mapping(f"event {name} of {function}", function, mapping(event), template))
    )


def _mapping(place: str, function: str, event: Mapping[str, Value], template: Template) -> SourceMapping | None:
    kind = text(event.get("Type", ""))
    if kind not in {"DynamoDB", "SQS"}:
        return None
    given = mapping(template.resolve(mapping(event.get("Properties"))))
    strange = given.keys() - (STREAM_PROPERTIES if kind == "DynamoDB" else QUEUE_PROPERTIES)
    if strange or text(given.get("ParallelizationFactor", 1)) != "1":
        names = ", ".join(sorted(strange)) or "ParallelizationFactor"
        raise TemplateError(f"{place} has what cannot be imitated here: {names}")
    if text(given.get("Enabled", True)) != "true":
        return None
    return _stream(place, function, given) if kind == "DynamoDB" else _queue(function, given)


def _stream(place: str, function: str, given: Mapping[str, Value]) -> StreamMapping:
    table, _, attribute = text(given.get("Stream", "")).rpartition(".")
    if attribute != "StreamArn":
        raise TemplateError(f"{place} reads no stream of this template")
    on_failure = mapping(mapping(given.get("DestinationConfig")).get("OnFailure")).get("Destination")
    return StreamMapping(
        function=function,
        table=table,
        starts_at=text(given.get("StartingPosition", "TRIM_HORIZON")),
        batch_size=_number(given, "BatchSize", 100),
        patterns=tuple(
            read_pattern(text(mapping(each).get("Pattern")))
            for each in sequence(mapping(given.get("FilterCriteria")).get("Filters"))
        ),
        retries=_number(given, "MaximumRetryAttempts", FOR_EVER),
        bisects=text(given.get("BisectBatchOnFunctionError", False)) == "true",
        reports=REPORTS in sequence(given.get("FunctionResponseTypes")),
        on_failure=None if on_failure is None else text(on_failure),
    )


def _queue(function: str, given: Mapping[str, Value]) -> QueueMapping:
    return QueueMapping(
        function=function,
        queue=text(given.get("Queue", "")),
        batch_size=_number(given, "BatchSize", 10),
        concurrency=_number(mapping(given.get("ScalingConfig")), "MaximumConcurrency", CONCURRENCY),
        reports=REPORTS in sequence(given.get("FunctionResponseTypes")),
    )


def _number(given: Mapping[str, Value], name: str, default: int) -> int:
    return int(text(given.get(name, default)))
