"""A walk through a server with a fault fails, and says at which line."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from smoke.walk import CHECKS, Checks
from tests.local.processes import GATEWAY, Command
from tests.smoke.faulty import Asked, Fault, FaultyServer, Given, Json, PassOn, listening, none
from tests.smoke.walks import walked

CARD = "/.well-known/agent-card.json"


@pytest.fixture(scope="module")
def server() -> Iterator[FaultyServer]:
    with listening() as listener, Command(GATEWAY, {"PUBLIC_URL": listener.address}) as gateway:
        listener.gateway = gateway.ready().gateway
        yield listener


def in_the_card(change: Callable[[Json], object]) -> Fault:
    def fault(asked: Asked, pass_on: PassOn) -> Given:
        given = pass_on(asked)
        if asked.path != CARD or not given.body:
            return given
        card = given.json
        change(card)
        return given.with_json(card)

    return fault


def in_the_result(method: str, change: Callable[[Json], object], **params: Json) -> Fault:
    """A fault in what a method answers, where its parameters have these among them."""

    def fault(asked: Asked, pass_on: PassOn) -> Given:
        given = pass_on(asked)
        if not given.body or asked.call != method or not params.items() <= asked.params.items():
            return given
        answer = given.json
        if "result" in answer:
            change(answer["result"])
        return given.with_json(answer)

    return fault


def in_the_errors(code: int, change: Callable[[Json], object]) -> Fault:
    def fault(asked: Asked, pass_on: PassOn) -> Given:
        given = pass_on(asked)
        answer = given.json if given.body.startswith(b"{") else {}
        if answer.get("error", {}).get("code") != code:
            return given
        change(answer["error"])
        return given.with_json(answer)

    return fault


def forgets_the_etag(asked: Asked, pass_on: PassOn) -> Given:
    given = pass_on(asked)
    return replace(given, headers={name: value for name, value in given.headers.items() if name.lower() != "etag"})


def always_sends_the_card(asked: Asked, pass_on: PassOn) -> Given:
    headers = {name: value for name, value in asked.headers.items() if name.lower() != "if-none-match"}
    return pass_on(replace(asked, headers=headers))


def knows_no_head(asked: Asked, pass_on: PassOn) -> Given:
    return Given(404, {}, b"") if asked.method == "HEAD" else pass_on(asked)


def knows_no_preflight(asked: Asked, pass_on: PassOn) -> Given:
    return Given(404, {}, b"") if asked.method == "OPTIONS" else pass_on(asked)


def takes_every_version(asked: Asked, pass_on: PassOn) -> Given:
    headers = {name: value for name, value in asked.headers.items() if name.lower() != "a2a-version"}
    return pass_on(replace(asked, headers={**headers, "A2A-Version": "1.0"}))


def takes_no_slash(asked: Asked, pass_on: PassOn) -> Given:
    return Given(404, {}, b"") if asked.path.endswith("/") else pass_on(asked)


def answers_notifications(asked: Asked, pass_on: PassOn) -> Given:
    given = pass_on(asked)
    return Given(200, {"Content-Type": "application/json"}, b"null") if given.status == 204 and asked.body else given


def answers_another_id(asked: Asked, pass_on: PassOn) -> Given:
    given = pass_on(asked)
    return given.with_json(given.json | {"id": "another"}) if asked.call == "ListTasks" else given


def begins_a_task_for_each_copy(asked: Asked, pass_on: PassOn) -> Given:
    message = asked.params.get("message", {}) if asked.call == "SendMessage" else {}
    if "contextId" not in message or "taskId" in message:
        return pass_on(asked)
    request = json.loads(asked.body)
    request["params"]["message"]["metadata"] = {"copy": request["id"]}
    return pass_on(replace(asked, body=json.dumps(request).encode()))


def is_down(asked: Asked, pass_on: PassOn) -> Given:
    return Given(503, {}, b"") if asked.method == "POST" else pass_on(asked)


def says_html(asked: Asked, pass_on: PassOn) -> Given:
    return Given(200, {"Content-Type": "text/html"}, b"<html>") if asked.call == "ListTasks" else pass_on(asked)


def moves_on(asked: Asked, pass_on: PassOn) -> Given:
    return Given(307, {"Location": "http://127.0.0.1:9/"}, b"") if asked.call == "CancelTask" else pass_on(asked)


LISTS = {"ListTasks", "pages", "filters", "listed artifacts"}

FAULTS: dict[str, tuple[Fault, set[str]]] = {
    "a card without skills": (in_the_card(lambda card: card.pop("skills")), {"card's fields"}),
    "a misspelt field": (in_the_card(lambda card: card.update(documentation_url="x")), {"card's fields"}),
    "a card of 0.3": (
        in_the_card(lambda card: card["supportedInterfaces"][0].update(protocolVersion="0.3")),
        {"card's address"},
    ),
    "a card that leads elsewhere": (
        in_the_card(lambda card: card["supportedInterfaces"][0].update(url="https://elsewhere.example/a2a")),
        {"card's address"},
    ),
    "a card that asks for what nobody has": (
        in_the_card(lambda card: card.update(securityRequirements=[{"schemes": {"mtls": {}}}])),
        {"credentials"},
    ),
    "a card that asks for keys that nobody looks at": (
        in_the_card(
            lambda card: card.update(
                securityRequirements=[{"schemes": {"key": {}}}],
                securitySchemes={"key": {"apiKeySecurityScheme": {"location": "header", "name": "x-api-key"}}},
            )
        ),
        {"credentials", "no credentials", "a wrong key"},
    ),
    "a signature whose key nobody has": (
        in_the_card(lambda card: card.update(signatures=[{"protected": "e30", "signature": "AA"}])),
        {"card's signatures"},
    ),
    "streaming that is declared and not looked at": (
        in_the_card(lambda card: card["capabilities"].update(streaming=True)),
        set(),
    ),
    "push that is declared and not there": (
        in_the_card(lambda card: card["capabilities"].update(pushNotifications=True)),
        {"push configs", "push inwards", "push, no task"},
    ),
    "no ETag": (forgets_the_etag, {"card's ETag"}),
    "the whole card each time": (always_sends_the_card, {"card's ETag"}),
    "no HEAD": (knows_no_head, {"card's HEAD"}),
    "no preflight": (knows_no_preflight, {"preflight"}),
    "every version": (takes_every_version, {"other versions"}),
    "no trailing slash": (takes_no_slash, {"trailing slash"}),
    "an answer to a notification": (answers_notifications, {"notification"}),
    "another id": (answers_another_id, {"wrong parameters", *LISTS}),
    "an error without its reason": (
        in_the_errors(-32002, lambda error: error.pop("data")),
        {"finished task"},
    ),
    "an error under another's code": (in_the_errors(-32005, lambda error: error.update(code=-32602)), {"content type"}),
    "violations without fields": (
        in_the_errors(-32602, lambda error: error.update(data=[])),
        {"wrong parameters", "another context"},
    ),
    "a state that there is not": (
        in_the_result("GetTask", lambda task: task["status"].update(state="working")),
        {"returnImmediately", "history", "listed artifacts", "next turn", "CancelTask"},
    ),
    "a timestamp of another form": (
        in_the_result("CancelTask", lambda task: task["status"].update(timestamp="2026-09-26 20:37")),
        {"CancelTask"},
    ),
    "a task without its context": (
        in_the_result("SendMessage", lambda result: result["task"].update(contextId="another")),
        {"SendMessage"},
    ),
    "both a task and a message": (
        in_the_result("SendMessage", lambda result: result.update(message=None)),
        {"SendMessage", "returnImmediately"},
    ),
    "copies that begin tasks": (begins_a_task_for_each_copy, {"the same again", *LISTS}),
    "a history that nobody asked for": (
        in_the_result("GetTask", lambda task: task.update(history=[]), historyLength=0),
        {"history"},
    ),
    "a lost message": (in_the_result("GetTask", lambda task: task.pop("history", 0)), {"history", "next turn"}),
    "artifacts that nobody asked for": (
        in_the_result("ListTasks", lambda page: [task.update(artifacts=[]) for task in page["tasks"]]),
        {"ListTasks"},
    ),
    "a lost task": (in_the_result("ListTasks", lambda page: page["tasks"].pop() if page["tasks"] else 0), LISTS),
    "a list without a total": (in_the_result("ListTasks", lambda page: page.pop("totalSize")), LISTS),
    "the oldest first": (in_the_result("ListTasks", lambda page: page["tasks"].reverse()), {"ListTasks", "pages"}),
    "pages without an end": (
        in_the_result("ListTasks", lambda page: page.update(nextPageToken=""), pageSize=1),
        {"pages"},
    ),
    "a filter that filters nothing": (
        in_the_result("ListTasks", lambda page: page.update(totalSize=2), statusTimestampAfter="9999-12-31T23:59:59Z"),
        {"filters"},
    ),
    "a cancellation that is none": (
        in_the_result("CancelTask", lambda task: task["status"].update(state="TASK_STATE_WORKING")),
        {"CancelTask"},
    ),
    "no JSON": (says_html, LISTS | {"wrong parameters"}),
    "a redirect": (moves_on, {"wrong parameters", "unknown task", "CancelTask"}),
}


NAMES = [*CHECKS]
WITHOUT_TASKS = NAMES[: NAMES.index("SendMessage")]
WITH_TASKS = ["card", "card's address", "credentials", *NAMES[NAMES.index("SendMessage") :]]


def around(lines: set[str]) -> Checks:
    """The checks among which these are, as few as will do."""
    names = next(names for names in (WITHOUT_TASKS, WITH_TASKS, NAMES) if lines <= {*names})
    return {name: CHECKS[name] for name in names}


SOME = [name if index % 3 == 0 else pytest.param(name, marks=pytest.mark.thorough) for index, name in enumerate(FAULTS)]


@pytest.mark.parametrize("name", SOME)
def test_a_fault_is_found_where_it_is(name: str, server: FaultyServer) -> None:
    fault, lines = FAULTS[name]
    server.fault = fault
    try:
        found = walked(server.address, around(lines))
    finally:
        server.fault = none
    assert found.failed == lines, found.failures


def test_the_server_without_a_fault_has_none(server: FaultyServer) -> None:
    assert walked(server.address).failures == {}


def test_a_server_that_is_down_fails_at_every_request(server: FaultyServer) -> None:
    server.fault = is_down
    try:
        found = walked(server.address)
    finally:
        server.fault = none
    assert {"other versions", "SendMessage", "push undeclared"} <= found.failed
    assert "503" in found.failures["SendMessage"]
    assert "there is no task" in found.said["history"][1]


def test_a_key_is_not_sent_where_the_card_leads(server: FaultyServer) -> None:
    asked: list[str] = []

    def elsewhere(request: Asked, pass_on: PassOn) -> Given:
        asked.append(request.method)
        given = pass_on(request)
        card = given.json if given.body else None
        if card:
            card["supportedInterfaces"][0]["url"] = f"{server.address}.elsewhere.example/a2a"
        return given.with_json(card) if card else given

    server.fault = elsewhere
    try:
        found = walked(server.address, KEY="a-key")
    finally:
        server.fault = none
    assert found.failed == {"card's address"}
    assert "POST" not in asked


def test_where_nobody_answers_the_walk_ends_at_the_card() -> None:
    with listening() as gone:
        nobody = gone.address
    found = walked(nobody)
    assert found.failed == {"card"}
    assert "no answer" in found.failures["card"]
