"""A function invoked with a batch of records, and which of them it then says have failed.

https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
https://docs.aws.amazon.com/lambda/latest/dg/services-ddb-batchfailurereporting.html
"""

from __future__ import annotations

import time
import traceback
import uuid
from typing import TYPE_CHECKING, Any, TypeAlias

from local import console
from local.errors import FunctionTimeoutError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from local.functions import LoadedFunction

Record: TypeAlias = "dict[str, Any]"


def invoke(function: LoadedFunction, records: Mapping[str, Record], *, reports: bool) -> set[str]:
    """Invoke the function with the records, given by their identifiers; the identifiers of those that failed.

    A function that raises or takes too long has failed with all of them. Where it `reports`,
    its result says which failed.
    """
    started = time.perf_counter()
    failed = _invoke(function, records, reports=reports)
    milliseconds = (time.perf_counter() - started) * 1000
    console.say(console.batch_line(function.function.name, len(records), len(failed), milliseconds))
    return failed


def _invoke(function: LoadedFunction, records: Mapping[str, Record], *, reports: bool) -> set[str]:
    event: dict[str, object] = {"Records": list(records.values())}
    try:
        result = function.invoke(event, str(uuid.uuid4()), function.function.timeout)
    except FunctionTimeoutError as error:
        console.complain(str(error))
        return set(records)
    except Exception:  # noqa: BLE001 - whatever a handler raises is a failed batch in AWS too
        traceback.print_exc()
        return set(records)
    return reported_failures(result, set(records)) if reports else set()


def reported_failures(result: object, identifiers: set[str]) -> set[str]:
    """The records that a result says have failed: all of them, where it cannot be understood."""
    failures = result.get("batchItemFailures") if isinstance(result, dict) else result
    if failures is None:
        return set()
    if not isinstance(failures, list):
        return identifiers
    named: list[Any] = [failure.get("itemIdentifier") if isinstance(failure, dict) else None for failure in failures]
    understood = all(isinstance(name, str) and name in identifiers for name in named)
    return set(named) if understood else identifiers
