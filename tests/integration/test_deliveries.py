"""Updates on their way to webhooks, over DynamoDB and SQS: in order, at least once, and until a webhook takes none."""

from collections.abc import Callable
from typing import Final

import pytest

from a2a_lambda import agent as api
from a2a_lambda.addresses import UnsafeUrlError
from a2a_lambda.agent import Turn, Updates
from a2a_lambda.errors import UnavailableError
from a2a_lambda.items import HEAD
from a2a_lambda.model import Part
from a2a_lambda.notifications import Delivery
from a2a_lambda.timestamps import now
from a2a_lambda.webhooks import DeliveryError
from admin.queues import DeadLetters
from admin.redriving import redrive
from tests.integration.tables import Tasks, error
from tests.integration.webhooks import CONFIG, HOOK, WORD, Pushed
from tests.unit.factories import DAY, Script, agent, yielding

OTHER: Final = "https://other.example"
LARGE: Final = "x" * 40_000


def conversing(turn: Turn) -> Updates:
    """Give an artifact, and ask until it is told to stop."""
    yield api.artifact(turn.text, name="said")
    yield api.input_required("And?") if turn.text != "stop" else api.completed()


def outcomes(deliveries: list[Delivery]) -> list[str]:
    return [delivery.outcome for delivery in deliveries]


def silent(_url: str) -> int:
    raise DeliveryError("took too long")


@pytest.fixture
def pushed(tasks: Tasks) -> Pushed:
    return Pushed(tasks, agent(conversing))


def test_a_webhook_is_told_of_every_update_of_its_task_in_order(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    pushed.send(to=task_id)

    assert set(outcomes(pushed.deliver_all())) == {"delivered"}

    kinds = [next(iter(content)) for _, content in pushed.webhooks.posts]
    assert kinds == ["artifactUpdate", "statusUpdate"] * 2
    for _, content in pushed.webhooks.posts:
        update = next(iter(content.values()))
        assert (update["taskId"], len(content)) == (task_id, 1)
    assert pushed.webhooks.states() == ["INPUT_REQUIRED", "INPUT_REQUIRED"]


def test_what_was_said_and_given_is_told_as_it_is(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)

    pushed.deliver_all()

    artifact, status = (content for _, content in pushed.webhooks.posts)
    assert artifact["artifactUpdate"]["artifact"]["parts"] == [{"text": "Hello"}]
    assert status["statusUpdate"]["status"]["message"]["parts"] == [{"text": "And?"}]
    assert status["statusUpdate"]["status"]["message"]["taskId"] == task_id


def test_an_update_that_lies_in_pieces_is_told_whole(tasks: Tasks) -> None:
    pushed = Pushed(tasks, yielding(api.artifact([Part(text=LARGE), Part(text=LARGE)], name="large")))
    task_id = pushed.send(config=CONFIG)
    assert any(entry.startswith("content#") for entry in tasks.items(task_id))

    pushed.deliver_all()

    parts = pushed.webhooks.posts[0][1]["artifactUpdate"]["artifact"]["parts"]
    assert [part["text"] for part in parts] == [LARGE, LARGE]


def test_a_cancellation_is_told(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    pushed.deliver_all()

    pushed.result("CancelTask", {"id": task_id})
    pushed.pass_on(task_id)
    pushed.deliver_all()

    assert pushed.webhooks.states() == ["INPUT_REQUIRED", "CANCELED"]


def test_a_webhook_of_a_task_that_waits_is_told_of_what_comes_after(pushed: Pushed) -> None:
    task_id = pushed.send()
    pushed.create(task_id)

    pushed.send(to=task_id)
    pushed.deliver_all()

    assert pushed.webhooks.states() == ["INPUT_REQUIRED"]


def test_every_webhook_is_told_of_everything(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    pushed.deliver_all()
    pushed.create(task_id, id="other", url=OTHER)

    pushed.send(to=task_id)
    pushed.deliver_all()

    assert (len(pushed.webhooks.states(HOOK)), len(pushed.webhooks.states(OTHER))) == (2, 1)


def test_a_webhook_hears_what_it_wants_to(pushed: Pushed) -> None:
    pushed.send(config=CONFIG)

    pushed.deliver_all()

    for headers in pushed.webhooks.headers:
        assert headers == {
            "Content-Type": "application/a2a+json",
            "X-A2A-Notification-Token": WORD,
            "Authorization": f"Bearer {WORD}",
        }


def test_a_message_names_an_update_and_tells_nothing_of_it(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)

    (message,) = pushed.waiting(pushed.push)

    assert set(message) == {
        "owner",
        "task_id",
        "config_id",
        "write",
        "sequence",
        "given",
        "state",
        "at",
        "said",
    }
    assert message["task_id"] == task_id
    for hidden in (WORD, "hook.example", "Hello", "And?"):
        assert hidden not in str(message)


# Many at once


def many(count: int) -> Script:
    """Return what an agent says that gives so many artifacts at once."""

    def give(turn: Turn) -> Updates:
        for number in range(count):
            yield api.artifact(f"{number}", name=f"{number}")
        yield api.input_required("And?") if turn.text != "stop" else api.completed()

    return give


def names(pushed: Pushed) -> list[str]:
    """Return the names of the artifacts that webhooks were told of."""
    updates = [content["artifactUpdate"] for _, content in pushed.webhooks.posts if "artifactUpdate" in content]
    return [update["artifact"]["name"] for update in updates]


def left_for(pushed: Pushed, posts: int) -> Callable[[], float]:
    """Return the seconds that a function has left which has the time for so many posts."""
    end = len(pushed.webhooks.posts) + posts
    return lambda: 60.0 if len(pushed.webhooks.posts) < end else 11.9


def test_a_change_is_one_message_for_each_webhook_however_much_there_is_to_tell(tasks: Tasks) -> None:
    pushed = Pushed(tasks, agent(many(60)))
    task_id = pushed.send(config=CONFIG)
    pushed.create(task_id, id="other", url=OTHER)

    pushed.send(to=task_id)

    messages = pushed.waiting(pushed.push)
    assert sorted(message["sequence"] for message in messages) == [62, 124, 124]
    assert {len(str(message)) < 500 for message in messages} == {True}


def test_much_that_is_to_be_told_is_told_in_order(tasks: Tasks) -> None:
    pushed = Pushed(tasks, agent(many(60)))
    pushed.send(config=CONFIG)
    tasks.calls.clear()

    (delivery,) = pushed.deliver_all()

    assert (delivery.outcome, delivery.told) == ("delivered", 61)
    assert names(pushed) == [f"{number}" for number in range(60)]
    assert pushed.webhooks.states() == ["INPUT_REQUIRED"]
    assert tasks.calls.count("BatchGetItem") == 1 + 3


def test_what_there_is_no_time_for_is_told_the_next_time(tasks: Tasks) -> None:
    pushed = Pushed(tasks, agent(many(60)))
    pushed.send(config=CONFIG)
    (message,) = pushed.receive(pushed.push)

    first = pushed.deliver(message, seconds_left=left_for(pushed, 28))
    second = pushed.deliver(message, seconds_left=left_for(pushed, 0))
    third = pushed.deliver(message)

    assert [(each.outcome, each.told, each.hide_seconds) for each in (first, second, third)] == [
        ("continued", 28, 0),
        ("continued", 0, 0),
        ("delivered", 33, None),
    ]
    assert names(pushed) == [f"{number}" for number in range(60)]


def test_an_event_that_is_not_taken_holds_up_those_behind_it(tasks: Tasks) -> None:
    pushed = Pushed(tasks, agent(many(5)))
    pushed.send(config=CONFIG)
    (message,) = pushed.receive(pushed.push)
    pushed.webhooks.answering = lambda _url: 200 if len(pushed.webhooks.headers) <= 3 else 503

    refused = pushed.deliver(message)
    assert (refused.outcome, refused.told, refused.tries, refused.hide_seconds) == ("retried", 3, 1, 10)
    pushed.webhooks.posts.clear()
    pushed.webhooks.answering = lambda _url: 200

    assert pushed.deliver(message).outcome == "delivered"
    assert names(pushed) == ["3", "4"]


def test_each_event_has_its_own_tries(tasks: Tasks) -> None:
    pushed = Pushed(tasks, agent(many(3)))
    pushed.send(config=CONFIG)
    (message,) = pushed.receive(pushed.push)
    answers = iter([500, 500, 200, 500, 200, 200, 200])
    pushed.webhooks.answering = lambda _url: next(answers)

    deliveries = [pushed.deliver(message) for _ in range(4)]

    assert [(each.outcome, each.tries) for each in deliveries] == [
        ("retried", 1),
        ("retried", 2),
        ("retried", 1),
        ("delivered", 1),
    ]


def test_a_webhook_that_is_replaced_on_the_way_is_told_the_rest_at_its_new_url(tasks: Tasks) -> None:
    pushed = Pushed(tasks, agent(many(4)))
    task_id = pushed.send(config=CONFIG)

    def moves(url: str) -> int:
        if url == HOOK and len(pushed.webhooks.posts) == 1:
            pushed.create(task_id, url=OTHER)
        return 200

    pushed.webhooks.answering = moves
    (delivery,) = pushed.deliver_all()

    assert delivery.outcome == "delivered"
    assert [url for url, _ in pushed.webhooks.posts] == [HOOK] * 2 + [OTHER] * 4
    assert names(pushed) == ["0", "1", "1", "2", "3"]


def test_a_webhook_that_is_deleted_on_the_way_is_told_no_more(tasks: Tasks) -> None:
    pushed = Pushed(tasks, agent(many(4)))
    task_id = pushed.send(config=CONFIG)

    def goes(_url: str) -> int:
        pushed.configs.delete("anonymous", task_id, task_id)
        return 200

    pushed.webhooks.answering = goes

    assert outcomes(pushed.deliver_all()) == ["dropped"]
    assert len(pushed.webhooks.posts) == 1


def test_a_message_that_sqs_would_put_aside_is_put_aside_before_it_with_its_webhook(tasks: Tasks) -> None:
    pushed = Pushed(tasks, agent(many(3)))
    task_id = pushed.send(config=CONFIG)
    (message,) = pushed.receive(pushed.push)

    delivery = pushed.deliver(message, receipts=990, seconds_left=left_for(pushed, 2))

    assert (delivery.outcome, delivery.reason, delivery.told) == ("switched-off", "the webhook took too long", 2)
    assert pushed.listed(task_id) == []
    assert len(pushed.waiting(pushed.dead_letters)) == 1


# Once, and in order


def test_what_is_not_newer_than_what_was_delivered_is_dropped(pushed: Pushed) -> None:
    task_id = pushed.send()
    pushed.create(task_id)
    pushed.tell(task_id, sequence=2)
    pushed.tell(task_id, "SUBMITTED", sequence=1)
    assert outcomes(pushed.deliver_all()) == ["delivered", "dropped"]

    pushed.create(task_id)  # Another generation, so that the queue does not know the message.
    pushed.tell(task_id, "SUBMITTED", sequence=2)
    assert outcomes(pushed.deliver_all()) == ["dropped"]

    assert pushed.webhooks.states() == ["WORKING"]


def test_after_its_tasks_last_state_a_webhook_goes(tasks: Tasks) -> None:
    pushed = Pushed(tasks, yielding(api.artifact("done")))
    task_id = pushed.send(config=CONFIG)
    waiting = pushed.receive(pushed.push, count=1)
    pushed.show(waiting[0])

    assert outcomes(pushed.deliver_all()) == ["delivered"]

    assert pushed.webhooks.states() == ["COMPLETED"]
    assert pushed.listed(task_id) == []
    assert WORD not in str(tasks.all_items())
    assert pushed.deliver(waiting[0]).outcome == "dropped"


def test_a_finished_tasks_webhook_that_is_created_anew_is_told_of_nothing(tasks: Tasks) -> None:
    pushed = Pushed(tasks, yielding(api.artifact("done")))
    task_id = pushed.send(config=CONFIG)
    pushed.deliver_all()
    told = len(pushed.webhooks.posts)

    pushed.create(task_id)

    assert (pushed.deliver_all(), len(pushed.webhooks.posts)) == ([], told)


# Who is gone


def test_a_deleted_webhook_is_told_of_nothing_more(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)

    pushed.result("DeleteTaskPushNotificationConfig", {"taskId": task_id, "id": task_id})

    assert set(outcomes(pushed.deliver_all())) == {"dropped"}
    assert pushed.webhooks.posts == []


def test_an_expired_tasks_webhooks_are_told_of_nothing_more(pushed: Pushed) -> None:
    pushed.send(config=CONFIG)

    pushed.tasks.clock.advance(31 * DAY)

    assert set(outcomes(pushed.deliver_all())) == {"dropped"}


@pytest.mark.parametrize("left", [{HEAD}, set()])
def test_a_forgotten_tasks_webhooks_are_told_of_nothing_more(pushed: Pushed, left: set[str]) -> None:
    task_id = pushed.send(config=CONFIG)

    for entry in set(pushed.tasks.items(task_id)) - left:
        pushed.tasks.client.delete_item(
            TableName=pushed.tasks.name, Key={"task_id": {"S": task_id}, "entry": {"S": entry}}
        )

    assert set(outcomes(pushed.deliver_all())) == {"dropped"}


def test_what_was_said_is_gone_while_its_task_is_being_forgotten(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)

    for entry in pushed.tasks.items(task_id):
        if entry.startswith("event#"):
            pushed.tasks.client.delete_item(
                TableName=pushed.tasks.name, Key={"task_id": {"S": task_id}, "entry": {"S": entry}}
            )

    assert set(outcomes(pushed.deliver_all())) == {"dropped"}


def test_a_message_in_anothers_name_is_dropped(pushed: Pushed) -> None:
    pushed.send(config=CONFIG)
    (message, *_) = pushed.receive(pushed.push)
    message["Body"] = message["Body"].replace("anonymous", "key:mallory")

    assert pushed.deliver(message).outcome == "dropped"
    assert pushed.webhooks.posts == []


# What is not taken


def unsafe(_url: str) -> int:
    raise UnsafeUrlError("must be at a public address")


FAILING: Final[list[tuple[Callable[[str], int], str]]] = [
    (silent, "the webhook took too long"),
    (unsafe, "the URL must be at a public address"),
    (lambda _url: 500, "the webhook answered 500"),
    (lambda _url: 302, "the webhook answered 302"),
    (lambda _url: 404, "the webhook answered 404"),
]


@pytest.mark.parametrize(("answering", "reason"), FAILING)
def test_what_is_not_taken_is_tried_again_after_a_while(
    pushed: Pushed, answering: Callable[[str], int], reason: str
) -> None:
    pushed.send(config=CONFIG)
    pushed.webhooks.answering = answering
    (message, *_) = pushed.receive(pushed.push)

    tried = [pushed.deliver(message) for _ in range(5)]

    assert [delivery.hide_seconds for delivery in tried] == [10, 60, 300, 900, 2400]
    assert [delivery.tries for delivery in tried] == [1, 2, 3, 4, 5]
    assert {(delivery.outcome, delivery.reason, delivery.host) for delivery in tried} == {
        ("retried", reason, "hook.example")
    }


def test_one_webhook_that_takes_nothing_holds_up_no_other(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    pushed.create(task_id, id="other", url=OTHER)
    pushed.send(to=task_id)
    pushed.webhooks.answering = lambda url: 500 if url == HOOK else 200

    delivered = pushed.deliver_all()

    assert sorted(outcomes(delivered)) == ["delivered", "retried"]
    assert pushed.webhooks.states(OTHER) == ["INPUT_REQUIRED"]


def test_what_a_webhook_was_not_asked_to_take_is_no_try(pushed: Pushed) -> None:
    pushed.send(config=CONFIG)
    pushed.webhooks.answering = silent
    (message,) = pushed.receive(pushed.push)
    for _ in range(20):
        pushed.tasks.answer("BatchGetItem", error("InternalServerError", 500))
        with pytest.raises(UnavailableError):
            pushed.deliver(message)

    assert pushed.deliver(message, receipts=21).tries == 1


def test_a_webhook_that_is_replaced_has_all_its_tries(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    pushed.webhooks.answering = silent
    (message,) = pushed.receive(pushed.push)
    for _ in range(5):
        pushed.deliver(message)

    pushed.create(task_id, url=OTHER)

    assert [pushed.deliver(message).outcome for _ in range(6)] == ["retried"] * 5 + ["switched-off"]


def test_after_the_last_try_a_webhook_is_switched_off_and_its_messages_are_put_aside(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    pushed.send(to=task_id)
    pushed.webhooks.answering = silent

    delivered = pushed.wear_out()

    assert outcomes(delivered) == ["switched-off", "dead"]
    assert [message["sequence"] for message in pushed.waiting(pushed.dead_letters)] == [3, 6]
    assert pushed.listed(task_id) == []
    shown = pushed.result("GetTaskPushNotificationConfig", {"taskId": task_id, "id": task_id})
    assert (shown["url"], shown["id"]) == (HOOK, task_id)


def test_a_dead_letter_keeps_its_group_and_what_makes_it_the_same(pushed: Pushed) -> None:
    pushed.send(config=CONFIG)
    pushed.webhooks.answering = silent
    (message,) = pushed.receive(pushed.push)

    while not pushed.deliver(message).is_done:
        pass

    (dead,) = pushed.receive(pushed.dead_letters)
    for name in ("MessageGroupId", "MessageDeduplicationId"):
        assert dead["Attributes"][name] == message["Attributes"][name]


def test_what_comes_while_a_webhook_is_switched_off_is_told_once_it_is_created_again(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    pushed.webhooks.answering = silent
    pushed.wear_out()
    pushed.webhooks.answering = lambda _url: 200

    pushed.send(to=task_id)
    pushed.send("stop", to=task_id)
    assert outcomes(pushed.deliver_all()) == ["dead", "dead"]
    assert pushed.webhooks.posts == []

    pushed.create(task_id)
    redrive(DeadLetters(pushed.sqs, [pushed.dead_letters]), clock=now)

    assert outcomes(pushed.deliver_all()) == ["delivered"] * 3
    assert pushed.webhooks.states() == ["INPUT_REQUIRED", "INPUT_REQUIRED", "COMPLETED"]
    assert pushed.listed(task_id) == []


def test_dead_letters_that_are_put_back_too_early_are_dead_letters_again(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    pushed.send("stop", to=task_id)
    pushed.webhooks.answering = silent
    assert outcomes(pushed.wear_out()) == ["switched-off", "dead"]
    pushed.webhooks.answering = lambda _url: 200

    redrive(DeadLetters(pushed.sqs, [pushed.dead_letters]), clock=now)
    assert outcomes(pushed.deliver_all()) == ["dead"] * 2
    pushed.create(task_id)
    redrive(DeadLetters(pushed.sqs, [pushed.dead_letters]), clock=now)

    assert outcomes(pushed.deliver_all()) == ["delivered"] * 2
    assert pushed.webhooks.states() == ["INPUT_REQUIRED", "COMPLETED"]


def expires_at(pushed: Pushed, task_id: str, entry: str) -> int:
    (found,) = (item for name, item in pushed.tasks.items(task_id).items() if name.startswith(entry))
    return int(found["expires_at"]["N"])


@pytest.mark.parametrize("takes_the_first", [True, False])
def test_a_switched_off_webhook_that_meets_its_tasks_end_expires_with_the_task(
    pushed: Pushed,
    takes_the_first: bool,  # noqa: FBT001
) -> None:
    task_id = pushed.send(config=CONFIG)
    if takes_the_first:
        pushed.deliver_all()
    pushed.webhooks.answering = silent
    pushed.wear_out()
    pushed.tasks.clock.advance(DAY)
    assert expires_at(pushed, task_id, "config#") > expires_at(pushed, task_id, HEAD) + 20 * DAY // 1000

    pushed.send("stop", to=task_id)
    pushed.wear_out()

    assert expires_at(pushed, task_id, "config#") == expires_at(pushed, task_id, HEAD)


# What changes on the way


def test_a_webhook_that_is_replaced_is_told_at_its_new_url_of_what_waits(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)

    pushed.create(task_id, url=OTHER, token=None, authentication=None)

    assert set(outcomes(pushed.deliver_all())) == {"delivered"}
    assert (len(pushed.webhooks.states(OTHER)), pushed.webhooks.states(HOOK)) == (1, [])
    assert pushed.webhooks.headers[0] == {"Content-Type": "application/a2a+json"}


@pytest.mark.parametrize("tries", [0, 5])
def test_a_webhook_that_is_replaced_while_it_is_tried_is_tried_itself(pushed: Pushed, tries: int) -> None:
    task_id = pushed.send(config=CONFIG)
    (message,) = pushed.receive(pushed.push)
    pushed.webhooks.answering = silent
    for _ in range(tries):
        pushed.deliver(message)

    def replaced(url: str) -> int:
        if url == HOOK:
            pushed.create(task_id, url=OTHER)
        return 200 if url == OTHER else 500

    pushed.webhooks.answering = replaced

    assert pushed.deliver(message).outcome == "delivered"
    assert pushed.webhooks.states(OTHER) == ["INPUT_REQUIRED"]
    assert pushed.waiting(pushed.dead_letters) == []


def test_a_webhook_that_is_replaced_while_it_takes_the_last_state_is_told_that_itself(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    pushed.deliver_all()
    pushed.send("stop", to=task_id)

    def replaced(url: str) -> int:
        if url == HOOK and len(pushed.webhooks.posts) == 3:
            pushed.create(task_id, url=OTHER)
        return 200

    pushed.webhooks.answering = replaced

    assert outcomes(pushed.deliver_all()) == ["delivered"]
    assert (pushed.webhooks.states(HOOK)[-1], pushed.webhooks.states(OTHER)) == ("COMPLETED", ["COMPLETED"])
    assert pushed.listed(task_id) == []


def test_a_webhook_that_is_deleted_during_the_last_try_leaves_no_dead_letter(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    (message,) = pushed.receive(pushed.push)
    pushed.webhooks.answering = silent
    for _ in range(5):
        pushed.deliver(message)

    def deleted(_url: str) -> int:
        pushed.configs.delete("anonymous", task_id, task_id)
        return 500

    pushed.webhooks.answering = deleted

    assert pushed.deliver(message).outcome == "dropped"
    assert pushed.waiting(pushed.dead_letters) == []


# Whoever dies


def die(*_: object, **__: object) -> int:
    raise KeyboardInterrupt


@pytest.mark.parametrize("operation", ["BatchGetItem", "UpdateItem"])
def test_a_death_on_the_way_leaves_no_update_untold(pushed: Pushed, operation: str) -> None:
    pushed.send(config=CONFIG)
    (message,) = pushed.receive(pushed.push)
    pushed.tasks.before(operation, die)

    with pytest.raises(KeyboardInterrupt):
        pushed.deliver(message)

    assert pushed.deliver(message).outcome == "delivered"
    assert pushed.deliver(message).outcome == "dropped"


def test_a_death_between_switching_off_and_the_dead_letter_leaves_the_message(pushed: Pushed) -> None:
    pushed.send(config=CONFIG)
    (message,) = pushed.receive(pushed.push)
    pushed.webhooks.answering = silent
    for _ in range(5):
        pushed.deliver(message)
    pushed.sqs.meta.events.register_first("before-call.sqs.SendMessageBatch", die, unique_id="die")

    with pytest.raises(KeyboardInterrupt):
        pushed.deliver(message)
    pushed.sqs.meta.events.unregister("before-call.sqs.SendMessageBatch", unique_id="die")

    assert pushed.deliver(message).outcome == "dead"
    assert len(pushed.waiting(pushed.dead_letters)) == 1


def test_a_table_that_does_not_answer_leaves_the_message(pushed: Pushed) -> None:
    pushed.send(config=CONFIG)
    (message,) = pushed.receive(pushed.push)
    pushed.tasks.answer("BatchGetItem", error("ThrottlingException"))

    with pytest.raises(UnavailableError):
        pushed.deliver(message)

    assert pushed.deliver(message).outcome == "delivered"
