"""One walk through one agent: how it is reached, and what is known of it so far."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from smoke.errors import NotCheckedError, WrongError
from smoke.expectations import FINISHED, RESULTS, RUNNING, Code, Json, check, check_error, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smoke.settings import Settings
    from smoke.wire import Answer, Wire

VERSION: Final = "1.0"

POLLS: Final = 60
POLL_SECONDS: Final = 1.0
"""How often, and after what pause, is looked whether a running task has come to rest."""


class Endpoint:
    """The JSON-RPC endpoint, for a caller with these headers."""

    def __init__(self, wire: Wire, url: str, headers: Mapping[str, str]) -> None:
        self._wire = wire
        self.url = url
        self._headers = {"Content-Type": "application/json", **headers}

    def post(self, body: bytes, headers: Mapping[str, str] | None = None, behind: str = "") -> Answer:
        """The answer to a body, at the endpoint's address with something behind it.

        Raises WrongError.
        """
        sent = {**self._headers, **({"A2A-Version": VERSION} if headers is None else headers)}
        return self._wire.send("POST", self.url + behind, sent, body)

    def call(
        self, method: str, params: Json, headers: Mapping[str, str] | None = None, behind: str = ""
    ) -> dict[str, Json]:
        """The JSON-RPC answer, which is a result or an error.

        Raises WrongError.
        """
        identity = f"smoke-{uuid.uuid4()}"
        request = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
        return read_reply(self.post(json.dumps(request).encode(), headers, behind), identity)

    def result(self, method: str, params: Json) -> Json:
        """What the method answers, of which every field is what it must be.

        Raises WrongError.
        """
        return checked_result(method, self.call(method, params))

    def refusal(
        self, code: Code, method: str, params: Json, headers: Mapping[str, str] | None = None, behind: str = ""
    ) -> list[str]:
        """The fields that the refusal names, where it names any; checks that it is one, and which.

        Raises WrongError.
        """
        reply = self.call(method, params, headers, behind)
        if "error" not in reply:
            raise WrongError(f"{method} is answered in the place of {code.value}: {shown(reply['result'])}")
        return check_error(reply["error"], code)


def read_reply(answer: Answer, identity: Json) -> dict[str, Json]:
    """Read a JSON-RPC answer to the request with this id.

    Raises WrongError.
    """
    answer.expect(HTTPStatus.OK)
    reply = answer.json()
    if not isinstance(reply, dict) or reply.get("jsonrpc") != "2.0":
        raise WrongError(f"no JSON-RPC 2.0 answer: {shown(reply)}")
    if "id" not in reply or reply["id"] != identity:
        raise WrongError(f"the answer's id is {shown(reply.get('id'))} in the place of {shown(identity)}")
    if len({"result", "error"} & reply.keys()) != 1:
        raise WrongError("the answer has not exactly one of result and error")
    return reply


def checked_result(method: str, reply: dict[str, Json]) -> Json:
    """The result in a method's answer, of which every field is what it must be.

    Raises WrongError.
    """
    if "error" in reply:
        raise WrongError(f"{method} is refused: {shown(reply['error'])}")
    check(reply["result"], RESULTS[method])
    return reply["result"]


@dataclass
class Visit:
    """What the checks tell each other."""

    settings: Settings
    wire: Wire
    pause: Callable[[float], None] = time.sleep

    card: dict[str, Json] | None = None
    url: str = ""
    """The endpoint's, once the card has said it."""
    credentials: Mapping[str, str] | None = None
    """The headers that let the caller in, once it is known which; none where nothing is asked for."""

    context: str = field(default_factory=lambda: str(uuid.uuid4()))
    """The context of all that is sent."""
    request: Json = None
    """The first SendMessage's parameters."""
    reply: dict[str, Json] | None = None
    """Its result."""
    openings: dict[str, Json] = field(default_factory=dict)
    """The parameters that began each task."""
    tasks: dict[str, dict[str, Json]] = field(default_factory=dict)
    """The tasks that were begun, by their ids, as they were last seen."""

    @property
    def capabilities(self) -> dict[str, Json]:
        """What the card declares."""
        declared = (self.card or {}).get("capabilities")
        return declared if isinstance(declared, dict) else {}

    @property
    def stranger(self) -> Endpoint:
        """The endpoint, for nobody.

        Raises NotCheckedError.
        """
        if not self.url:
            raise NotCheckedError("no card has said where the endpoint is")
        return Endpoint(self.wire, self.url, {})

    @property
    def caller(self) -> Endpoint:
        """The endpoint, for the caller whose key was given.

        Raises NotCheckedError.
        """
        stranger = self.stranger
        if self.credentials is None:
            raise NotCheckedError("nobody is let in without credentials")
        extensions = [each["uri"] for each in self.required_extensions()]
        listed = {"A2A-Extensions": ",".join(extensions)} if extensions else {}
        return Endpoint(self.wire, stranger.url, {**self.credentials, **listed})

    def required_extensions(self) -> list[dict[str, Json]]:
        """The extensions that every caller must list (§4.6)."""
        declared = self.capabilities.get("extensions")
        extensions = declared if isinstance(declared, list) else []
        return [each for each in extensions if isinstance(each, dict) and each.get("required") and each.get("uri")]

    def first(self) -> dict[str, Json]:
        """The first task, as it was last seen.

        Raises NotCheckedError.
        """
        if not self.tasks:
            raise NotCheckedError("there is no task")
        return next(iter(self.tasks.values()))

    def finished(self) -> dict[str, Json]:
        """A task that has ended.

        Raises NotCheckedError.
        """
        self.first()
        for task in self.tasks.values():
            if state(task) in FINISHED:
                return task
        raise NotCheckedError("no task has ended")

    def message(self, **fields: Json) -> dict[str, Json]:
        """A new message's parameters for SendMessage."""
        content = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": self.settings.text}]}
        return {"message": {**content, **fields}}

    def settle(self, task: dict[str, Json]) -> str:
        """Keep a task, after waiting for it where it runs; what became of it.

        Raises WrongError.
        """
        before, polls = state(task), 0
        while state(task) in RUNNING and polls < POLLS:
            polls += 1
            self.pause(POLL_SECONDS)
            task = self.caller.result("GetTask", {"id": task["id"]})
        self.tasks[task["id"]] = task
        if state(task) == "TASK_STATE_SUBMITTED":
            raise WrongError(
                f"task {shown(task['id'])} is still SUBMITTED after {polls} looks: nobody has begun with it"
            )
        return describe(task) if before == state(task) else f"{short(before)}, then {describe(task)}"


def state(task: dict[str, Json]) -> str:
    """A task's state."""
    return str(task["status"]["state"])


def short(name: str) -> str:
    """A state without the prefix that all have."""
    return name.removeprefix("TASK_STATE_")


def describe(task: dict[str, Json]) -> str:
    """A task's state, what the agent says with it, and how much it gave."""
    said = spoken(task["status"].get("message"))
    given = len(task.get("artifacts", []))
    return (
        short(state(task)) + (f" {said}" if said else "") + (f", {given} artifact{'s'[: given != 1]}" if given else "")
    )


def spoken(message: Json) -> str:
    """The text of a message, where there is one."""
    return shown(" ".join(part["text"] for part in message["parts"] if "text" in part)) if message else ""
