"""What an operator sees of a request: one log line, and metrics. No message text, no credential.

A metric is a log line too, in CloudWatch's embedded metric format, from which CloudWatch makes it without a call:
Requests by method and outcome, Tasks by final state, AuthenticationFailures, LimitedRequests, Conflicts, and
UnlimitedRequests, which are those that passed because the rate could not be looked up, and FailedRequests, those that
met a fault of the server. Of the stream and the queues: RelayedChanges, Turns and Deliveries by outcome, and
SwitchedOffConfigs.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import MetricUnit, single_metric

from a2a_lambda.errors import (
    InternalError,
    PermissionDeniedError,
    RateLimitedError,
    UnauthenticatedError,
    UnavailableError,
)
from a2a_lambda.jsonrpc import Answer
from a2a_lambda.notifications import Delivery, Notification
from a2a_lambda.tally import Tally
from a2a_lambda.working import Attended, Work

Metric = tuple[str, int, dict[str, str]]
"""A name, a count and dimensions."""

METRICS_DISABLED: Final = "POWERTOOLS_METRICS_DISABLED"
"""Powertools' own switch, which the local gateway sets: nobody reads metrics off a terminal."""


def report(logger: Logger, answer: Answer, tally: Tally, *, duration_ms: float, correlation_id: str) -> None:
    """Write down what came of a request. The correlation id is API Gateway's name for the request."""
    logger.info(
        "request",
        method=answer.method,
        caller=tally.caller,
        task_id=tally.task_id,
        outcome=answer.outcome,
        status=answer.status,
        **_spent(tally, duration_ms),
        correlation_id=correlation_id,
    )
    emit(metrics(answer, tally))


def emit(metrics: Iterable[Metric]) -> None:
    """Write metrics down, unless they are switched off."""
    if os.environ.get(METRICS_DISABLED, "").lower() == "true":
        return
    for name, count, dimensions in metrics:
        with single_metric(name=name, unit=MetricUnit.Count, value=count) as metric:
            for dimension, value in dimensions.items():
                metric.add_dimension(dimension, value)


def report_turn(logger: Logger, work: Work, done: Attended, tally: Tally, *, duration_ms: float) -> None:
    """Write down what came of a message of the work queue."""
    logger.info(
        "turn",
        caller=work.owner,
        task_id=work.task_id,
        turn=work.turn,
        run=work.run,
        outcome=done.outcome,
        state=done.state,
        **_spent(tally, duration_ms),
    )
    emit(turn_metrics(done, tally))


def turn_metrics(done: Attended, tally: Tally) -> Iterator[Metric]:
    """Yield the metrics of a message of the work queue."""
    yield "Turns", 1, {"outcome": done.outcome}
    for state in tally.finished:
        yield "Tasks", 1, {"state": state}
    if tally.conflicts:
        yield "Conflicts", tally.conflicts, {}


def report_delivery(
    logger: Logger, notification: Notification, delivery: Delivery, tally: Tally, *, receipts: int, duration_ms: float
) -> None:
    """Write down what came of a message of the push queue. What a webhook refuses for good is a warning."""
    log = logger.warning if delivery.outcome == "switched-off" else logger.info
    log(
        "delivery",
        caller=notification.owner,
        task_id=notification.task_id,
        config_id=notification.config_id,
        sequence=notification.sequence,
        state=notification.state,
        outcome=delivery.outcome,
        reason=delivery.reason,
        host=delivery.host,
        told=delivery.told,
        tries=delivery.tries,
        receipts=receipts,
        **_spent(tally, duration_ms),
    )
    emit(delivery_metrics(delivery))


def delivery_metrics(delivery: Delivery) -> Iterator[Metric]:
    """Yield the metrics of a message of the push queue."""
    yield "Deliveries", 1, {"outcome": delivery.outcome}
    if delivery.outcome == "switched-off":
        yield "SwitchedOffConfigs", 1, {}


def relay_metrics(outcomes: Mapping[str, int]) -> Iterator[Metric]:
    """Yield the metrics of a batch of changes: how many came to what."""
    for outcome, count in outcomes.items():
        yield "RelayedChanges", count, {"outcome": outcome}


def _spent(tally: Tally, duration_ms: float) -> dict[str, Any]:
    """Return what a request or a message took, as its line tells of it."""
    return {
        "duration_ms": round(duration_ms, 1),
        "dynamodb_calls": tally.calls,
        "dynamodb_units": tally.units,
    }


def metrics(answer: Answer, tally: Tally) -> Iterator[Metric]:
    """Yield the metrics of a request."""
    yield "Requests", 1, {"method": answer.method or "none", "outcome": answer.outcome}
    for state in tally.finished:
        yield "Tasks", 1, {"state": state}
    if isinstance(answer.error, UnauthenticatedError | PermissionDeniedError):
        yield "AuthenticationFailures", 1, {}
    if isinstance(answer.error, RateLimitedError):
        yield "LimitedRequests", 1, {}
    if isinstance(answer.error, InternalError) and not isinstance(answer.error, UnavailableError):
        yield "FailedRequests", 1, {}
    if tally.conflicts:
        yield "Conflicts", tally.conflicts, {}
    if tally.unlimited:
        yield "UnlimitedRequests", tally.unlimited, {}
