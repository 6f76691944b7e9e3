"""All functions in one interpreter, passing tasks on to each other. Run as a script.

    python bench/chained.py HOW TASKS JOB RESULT

HOW is `metered` or `timed`, TASKS how many tasks are counted. JOB is a file with JSON: the functions' folders by name,
the `place` of a chain, and a message as it is sent; its id is replaced. The result is JSON: `functions`, for each one
what it did of a task, and `stored_bytes`, what there is of the last task in the end. Metered, what a function did is
its DynamoDB usage, its SQS requests and its logs; timed, its CPU.

The delay of a message is not waited for.
"""

import importlib.util
import io
import json
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

import botocore.session

from bench import calls
from bench.chain import FUNCTIONS, PUSH, REQUESTS_A_MESSAGE, WORKER, Chain, Place
from bench.meter import Meter, Usage, stored_bytes

Handler = Callable[[calls.Event, calls.Context], Any]
FIFO = ".fifo"


class Log(io.StringIO):
    """The standard output of the functions: counted, and dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = self.lines = 0

    def write(self, text: str) -> int:
        """Count."""
        self.bytes += len(text.encode())
        self.lines += text.count("\n")
        return len(text)


@dataclass
class Done:
    """What a function has done of a task."""

    invocations: int = 0
    cpu: float = 0.0
    """The seconds of all its invocations."""
    calls: int = 0
    write_units: float = 0
    read_units: float = 0
    written_bytes: int = 0
    queue_calls: int = 0
    """Its own calls of SQS."""
    standard_requests: int = 0
    fair_requests: int = 0
    fifo_requests: int = 0
    """Requests of SQS, by the kind of queue: its own, and those that Lambda makes to hand it its messages. A standard
    queue is a fair one where its messages have groups."""
    log_bytes: int = 0
    log_lines: int = 0
    answer_bytes: int = 0

    def add(self, usage: Usage) -> None:
        """Add what an invocation has asked of DynamoDB."""
        self.calls += usage.calls
        self.write_units += usage.write_units
        self.read_units += usage.read_units
        self.written_bytes += usage.written_bytes


class Functions:
    """The functions, loaded, and what they have done since the last `begin`."""

    def __init__(self, folders: dict[str, str], place: Place, *, metered: bool) -> None:
        """Load each from its folder, with its clients prepared."""
        self._place = place
        self._sent: list[str] = []
        self._fair: set[str] = set()
        self._log = Log()
        sys.stdout = self._log
        create_client: Any = botocore.session.Session.create_client
        self.client: Callable[[str], Any] = lambda service: create_client(
            botocore.session.get_session(), service, endpoint_url=place.endpoint
        )
        self._meter = Meter(self.client("dynamodb"))

        def create_prepared_client(session: botocore.session.Session, *args: Any, **kwargs: Any) -> Any:
            client = create_client(session, *args, **kwargs)
            client.meta.events.register("before-parameter-build.sqs", self._before_sqs)
            if metered:
                self._meter.attach(client)
            return client

        botocore.session.Session.create_client = create_prepared_client
        self._handlers = {name: load(name, folder) for name, folder in folders.items()}
        self.done: dict[str, Done] = {}

    def begin(self) -> None:
        """Forget what was done."""
        self.done = {}

    def invoke(self, name: str, event: calls.Event) -> Any:
        """Invoke a function."""
        done = self.done.setdefault(name, Done())
        before = self._log.bytes, self._log.lines
        with self._meter.measuring() as usage:
            started = time.process_time()
            answer = self._handlers[name](event, calls.Context())
            done.cpu += time.process_time() - started
        done.invocations += 1
        done.add(usage)
        done.log_bytes += self._log.bytes - before[0]
        done.log_lines += self._log.lines - before[1]
        done.answer_bytes += len(answer.get("body", ""))
        self._count_requests(name, done)
        return answer

    def _count_requests(self, name: str, done: Done) -> None:
        sent, self._sent = self._sent, []
        done.queue_calls += len(sent)
        requests = sent + [self._place.queues[name]] * REQUESTS_A_MESSAGE if name in (WORKER, PUSH) else sent
        for queue in requests:
            if queue.endswith(FIFO):
                done.fifo_requests += 1
            elif queue in self._fair:
                done.fair_requests += 1
            else:
                done.standard_requests += 1

    def _before_sqs(self, params: dict[str, Any], **_: Any) -> None:
        self._sent.append(params["QueueUrl"])
        if "MessageGroupId" in params:
            self._fair.add(params["QueueUrl"])
        params.pop("DelaySeconds", None)


def load(name: str, folder: str) -> Handler:
    """The handler of a function, whose module is called `app` like all the others."""
    spec = importlib.util.spec_from_file_location(name, f"{folder}/app.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"there is no {folder}/app.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Handler = module.handler
    return handler


def main() -> None:
    """Send tasks, and leave the numbers in the result file."""
    how, tasks, job_path, result_path = sys.argv[1:]
    with open(job_path, encoding="utf-8") as file:  # noqa: PTH123 - as the other scripts
        job = json.load(file)
    place = Place(**job["place"])
    functions = Functions(job["functions"], place, metered=how == "metered")
    chain = Chain(place, functions.client, functions.invoke)
    rounds: list[dict[str, Done]] = []
    task_id = ""
    # What the first one does for the first time is not counted.
    for _ in range(int(tasks) + 1):
        functions.begin()
        task_id = calls.result(chain.run(calls.renamed(job["message"], str(uuid.uuid4()))))["id"]
        rounds.append(functions.done)
    found = {
        "functions": {name: summary([each[name] for each in rounds[1:]]) for name in FUNCTIONS if name in rounds[1]},
        "stored_bytes": stored_bytes(functions.client("dynamodb"), place.table, task_id),
    }
    with open(result_path, "w", encoding="utf-8") as file:  # noqa: PTH123 - as the other scripts
        json.dump(found, file)


def summary(done: list[Done]) -> dict[str, float]:
    """What a function does of a task: the mean; of the CPU what a quarter of the tasks take at most.

    Other programs only ever add to that.
    """
    found = {name: mean(asdict(each)[name] for each in done) for name in asdict(done[0])}
    return {**found, "cpu": sorted(each.cpu for each in done)[len(done) // 4]}


main()
