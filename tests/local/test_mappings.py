"""Which functions are invoked with what, as the template says."""

from dataclasses import replace
from pathlib import Path

import pytest

from local.deployment import Deployment, read_deployment
from local.errors import TemplateError
from local.mappings import QueueMapping, StreamMapping
from local.queues import Queue
from tests.local.processes import ROOT, SMALL

ARN = "arn:aws:sqs:us-east-1:123456789012"
SQS = "http://127.0.0.1:8000"


def deployment(**environment: str) -> Deployment:
    return read_deployment(SMALL, {"SQS_ENDPOINT": SQS} | environment)


def changed(folder: Path, old: str, new: str) -> Deployment:
    """The small deployment with a line of its template changed."""
    text = SMALL.read_text(encoding="utf-8")
    assert old in text
    path = folder / "template.yaml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    return read_deployment(path, {})


def queues(**environment: str) -> dict[str, Queue]:
    return {queue.name: queue for queue in deployment(**environment).queues}


def test_a_function_reads_a_stream_as_its_event_says() -> None:
    mapping, *_ = deployment().mappings
    assert isinstance(mapping, StreamMapping)
    (pattern,) = mapping.patterns
    assert pattern.matches({"dynamodb": {"NewImage": {"note": {"S": "x"}}}})
    assert replace(mapping, patterns=()) == StreamMapping(
        function="ChangesFunction",
        table="ItemsTable",
        starts_at="TRIM_HORIZON",
        batch_size=3,
        patterns=(),
        retries=2,
        bisects=True,
        reports=True,
        on_failure=f"{ARN}:LostNotes",
    )


def test_a_function_reads_a_queue_as_its_event_says() -> None:
    _, mapping = deployment().mappings
    assert mapping == QueueMapping("NotesFunction", f"{ARN}:NotesQueue", batch_size=1, concurrency=2, reports=False)


def test_a_queue_that_nothing_is_said_of_is_read_as_lambda_does() -> None:
    mapping = deployment(WITH_LETTERS="yes").mappings[-1]
    assert mapping == QueueMapping(
        "LettersFunction", f"{ARN}:LettersQueue.fifo", batch_size=10, concurrency=10, reports=False
    )


def test_a_stream_goes_by_the_name_of_its_table() -> None:
    mapping, *_ = deployment(ITEMS_TABLE="mine").mappings
    assert isinstance(mapping, StreamMapping)
    assert mapping.table == "mine"


def test_an_event_that_is_not_enabled_invokes_nothing(tmp_path: Path) -> None:
    found = changed(tmp_path, "BatchSize: 1\n", "BatchSize: 1\n            Enabled: false\n")
    assert [mapping.function for mapping in found.mappings] == ["ChangesFunction"]


def test_a_queue_is_created_as_the_template_says() -> None:
    assert queues()["NotesQueue"] == Queue(
        url=f"{SQS}/123456789012/NotesQueue",
        attributes={
            "VisibilityTimeout": "6",
            "RedrivePolicy": f'{{"deadLetterTargetArn": "{ARN}:LostNotes", "maxReceiveCount": 5}}',
        },
    )


def test_a_queue_is_there_only_under_its_condition() -> None:
    assert set(queues()) == {"NotesQueue", "LostNotes"}
    assert set(queues(WITH_LETTERS="yes")) == {"NotesQueue", "LostNotes", "LettersQueue.fifo"}


def test_a_fifo_queue_is_named_as_one_and_stays_one() -> None:
    letters = queues(WITH_LETTERS="yes")["LettersQueue.fifo"]
    assert letters.attributes == {
        "FifoQueue": "true",
        "DeduplicationScope": "messageGroup",
        "FifoThroughputLimit": "perMessageGroupId",
    }


def test_a_function_is_told_the_address_of_a_queue() -> None:
    assert deployment().variables()["NOTES_QUEUE"] == f"{SQS}/123456789012/NotesQueue"


def test_a_queue_is_where_the_function_is_told() -> None:
    elsewhere = "https://sqs.eu-west-1.amazonaws.com/210987654321/mine"
    found = deployment(NOTES_QUEUE=elsewhere)
    assert elsewhere in {queue.url for queue in found.queues}
    mapping = found.mappings[1]
    assert isinstance(mapping, QueueMapping)
    assert mapping.queue == f"{ARN}:mine"


def test_without_an_endpoint_a_queue_is_at_aws() -> None:
    address = "https://sqs.us-east-1.amazonaws.com/123456789012/NotesQueue"
    assert deployment(SQS_ENDPOINT="").variables()["NOTES_QUEUE"] == address


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("BatchSize: 3", "ParallelizationFactor: 2", "ParallelizationFactor"),
        ("BatchSize: 3", "TumblingWindowInSeconds: 5", "TumblingWindowInSeconds"),
        ("BatchSize: 3", "MaximumRecordAgeInSeconds: 60", "MaximumRecordAgeInSeconds"),
        ("BatchSize: 1", "FilterCriteria: {Filters: []}", "FilterCriteria"),
        ("!GetAtt ItemsTable.StreamArn", "arn:aws:dynamodb:elsewhere", "no stream"),
    ],
)
def test_an_event_that_cannot_be_imitated_is_refused(tmp_path: Path, old: str, new: str, named: str) -> None:
    with pytest.raises(TemplateError, match=named):
        changed(tmp_path, old, new)


def test_this_projects_own_functions_are_invoked_by_its_stream_and_its_queues() -> None:
    def found(push: str) -> dict[str, str]:
        own = read_deployment(ROOT / "template.yaml", {"PUSH": push})
        return {
            mapping.function: mapping.table if isinstance(mapping, StreamMapping) else mapping.queue
            for mapping in own.mappings
        }

    without = {"RelayFunction": "TasksTable", "WorkerFunction": f"{ARN}:WorkQueue"}
    assert found("off") == without
    assert found("on") == without | {"PushFunction": f"{ARN}:PushQueue.fifo"}
