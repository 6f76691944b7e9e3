"""The functions that nobody calls, run on this machine with the records of their streams and queues."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from botocore import exceptions
from botocore.session import get_session

from local.console import complain
from local.mappings import StreamMapping
from local.messages import QueueSource
from local.queues import client
from local.rhythm import Rhythm
from local.streams import StreamReader, StreamSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from local.deployment import Deployment
    from local.functions import LoadedFunction
    from local.mappings import QueueMapping, SourceMapping

FAULTS = (exceptions.BotoCoreError, exceptions.ClientError)


class Source(Protocol):
    """Somewhere to look for records."""

    def look(self) -> bool:
        """Deal with what is there, and tell whether there was anything."""


class Sources:
    """The streams and queues of a deployment, and what looks through each of them in a thread of its own."""

    def __init__(self, deployment: Deployment, endpoint: str, sqs_endpoint: str) -> None:
        """Args: where the tables and the queues are."""
        session = get_session()
        self._tables = client("dynamodb", endpoint, session)
        self._streams = client("dynamodbstreams", endpoint, session)
        self._sqs = client("sqs", sqs_endpoint, session)
        self._queues = {queue.arn: queue.url for queue in deployment.queues}
        self._of_streams: list[Rhythm] = []
        self._of_queues: list[Rhythm] = []
        self._stopped = False

    def start(self, mappings: Iterable[SourceMapping], functions: Mapping[str, LoadedFunction]) -> None:
        """Invoke the functions from now on with what their mappings name."""
        for mapping in mappings:
            function = functions[mapping.function]
            if isinstance(mapping, StreamMapping):
                self._start_stream(mapping, function)
            else:
                self._start_queue(mapping, function)

    def stop(self) -> None:
        """Look no further, and complain no more. What is under way runs on."""
        self._stopped = True

    def waking(self, application: WSGIApplication) -> WSGIApplication:
        """The application, each of whose answers may mean that there is something new in a stream."""

        def serve(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            try:
                return application(environ, start_response)
            finally:
                wake(self._of_streams)

        return serve

    def _start_stream(self, mapping: StreamMapping, function: LoadedFunction) -> None:
        table = self._tables.describe_table(TableName=mapping.table)["Table"]
        if "LatestStreamArn" not in table:
            complain(f"Warning: {mapping.function} does not run: the table {mapping.table} has no stream")
            return
        reader = StreamReader(self._streams, table["LatestStreamArn"], mapping.starts_at)
        source = StreamSource(reader, mapping, function, self._failure_sender(mapping), lambda: wake(self._of_queues))
        self._look_through(f"the stream of {mapping.table}", source, self._of_streams, Rhythm())

    def _start_queue(self, mapping: QueueMapping, function: LoadedFunction) -> None:
        url, rhythm = self._queues[mapping.queue], Rhythm()
        # What follows in a group may be had now, and the function may have written to a table.
        source = QueueSource(self._sqs, url, mapping, function, lambda: wake([rhythm, *self._of_streams]))
        self._look_through(f"the queue {url}", source, self._of_queues, rhythm)

    def _failure_sender(self, mapping: StreamMapping) -> Callable[[str], None]:
        def send(note: str) -> None:
            complain(f"Warning: {mapping.function} has failed too often, and goes on behind what failed")
            if mapping.on_failure is not None:
                try:
                    self._sqs.send_message(QueueUrl=self._queues[mapping.on_failure], MessageBody=note)
                except FAULTS as error:
                    complain(f"Warning: it could not be noted where that is: {error}")

        return send

    def _look_through(self, name: str, source: Source, alike: list[Rhythm], rhythm: Rhythm) -> None:
        alike.append(rhythm)
        threading.Thread(target=self._run, args=(name, source, rhythm), daemon=True).start()

    def _run(self, name: str, source: Source, rhythm: Rhythm) -> None:
        silent = False
        while not self._stopped:
            found = False
            try:
                found = source.look()
                silent = False
            except FAULTS as error:
                if not silent and not self._stopped:
                    complain(f"Warning: {name} cannot be read: {error}")
                silent = True
            if not found:
                rhythm.pause()


def wake(rhythms: Iterable[Rhythm]) -> None:
    """Look again at once, in each of these rhythms."""
    for rhythm in rhythms:
        rhythm.wake()
