"""Reading a stream from a database that ends while it answers."""

from typing import Any

import pytest
from botocore import exceptions

from local.streams import StreamReader

WHOLE = {
    "describe_stream": {"StreamDescription": {"Shards": [{"ShardId": "shard-1"}]}},
    "get_shard_iterator": {"ShardIterator": "iterator-1"},
    "get_records": {"Records": []},
}


class Client:
    """Answers as it is told."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._answers = answers

    def __getattr__(self, call: str) -> Any:
        return lambda **_arguments: self._answers[call]


@pytest.mark.parametrize("cut_off", WHOLE)
def test_an_answer_that_was_cut_off_is_a_fault_of_the_connection(cut_off: str) -> None:
    client: Any = Client({**WHOLE, cut_off: {}})

    with pytest.raises(exceptions.BotoCoreError):
        StreamReader(client, "arn", "TRIM_HORIZON").read()


def test_a_whole_answer_is_read() -> None:
    client: Any = Client(WHOLE)

    assert StreamReader(client, "arn", "TRIM_HORIZON").read() == ("", [])
