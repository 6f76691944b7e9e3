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
from tests.unit.factories import DAY, agent, yielding

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

    messages = pushed.waiting(pushed.push)

    assert [set(message) for message in messages] == [
        {"owner", "task_id", "config_id", "sequence", "key"},
        {"owner", "task_id", "config_id", "sequence", "key", "state", "at"},
    ]
    assert {message["task_id"] for message in messages} == {task_id}
    for hidden in (WORD, "hook.example", "Hello", "And?"):
        assert hidden not in str(messages)


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
    pushed.sqs.change_message_visibility(
        QueueUrl=pushed.push, ReceiptHandle=waiting[0]["ReceiptHandle"], VisibilityTimeout=0
    )

    assert outcomes(pushed.deliver_all()) == ["delivered", "delivered"]

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

    tried = [pushed.deliver(message, tries=tries) for tries in range(1, 6)]

    assert [delivery.hide_seconds for delivery in tried] == [10, 60, 300, 900, 2400]
    assert {(delivery.outcome, delivery.reason, delivery.host) for delivery in tried} == {
        ("retried", reason, "hook.example")
    }


def test_one_webhook_that_takes_nothing_holds_up_no_other(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    pushed.create(task_id, id="other", url=OTHER)
    pushed.send(to=task_id)
    pushed.webhooks.answering = lambda url: 500 if url == HOOK else 200

    delivered = pushed.deliver_all()

    assert sorted(outcomes(delivered)) == ["delivered", "delivered", "retried"]
    assert pushed.webhooks.states(OTHER) == ["INPUT_REQUIRED"]


def test_after_the_last_try_a_webhook_is_switched_off_and_its_messages_are_put_aside(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    pushed.webhooks.answering = silent

    delivered = pushed.deliver_all(tries=6)

    assert outcomes(delivered) == ["switched-off", "dead"]
    assert [message["sequence"] for message in pushed.waiting(pushed.dead_letters)] == [2, 3]
    assert pushed.listed(task_id) == []
    shown = pushed.result("GetTaskPushNotificationConfig", {"taskId": task_id, "id": task_id})
    assert (shown["url"], shown["id"]) == (HOOK, task_id)


def test_a_dead_letter_keeps_its_group_and_what_makes_it_the_same(pushed: Pushed) -> None:
    pushed.send(config=CONFIG)
    pushed.webhooks.answering = silent
    (message, *_) = pushed.receive(pushed.push)

    pushed.deliver(message, tries=6)

    (dead,) = pushed.receive(pushed.dead_letters)
    for name in ("MessageGroupId", "MessageDeduplicationId"):
        assert dead["Attributes"][name] == message["Attributes"][name]


def test_a_webhook_that_is_switched_off_is_told_of_nothing_until_it_is_created_again(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    pushed.webhooks.answering = silent
    pushed.deliver_all(tries=6)
    pushed.webhooks.answering = lambda _url: 200

    pushed.send(to=task_id)
    assert pushed.deliver_all() == []
    pushed.create(task_id)
    pushed.send(to=task_id)

    assert set(outcomes(pushed.deliver_all())) == {"delivered"}
    assert pushed.webhooks.states() == ["INPUT_REQUIRED"]
    assert len(pushed.listed(task_id)) == 1


def test_dead_letters_that_are_put_back_are_delivered_once_the_webhook_is_created_again(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    pushed.send("stop", to=task_id)
    pushed.webhooks.answering = silent
    assert outcomes(pushed.deliver_all(tries=6)) == ["switched-off", "dead", "dead", "dead"]
    pushed.webhooks.answering = lambda _url: 200

    redrive(DeadLetters(pushed.sqs, [pushed.dead_letters]), clock=now)
    assert outcomes(pushed.deliver_all()) == ["dead"] * 4
    pushed.create(task_id)
    redrive(DeadLetters(pushed.sqs, [pushed.dead_letters]), clock=now)

    assert outcomes(pushed.deliver_all()) == ["delivered"] * 4
    assert pushed.webhooks.states() == ["INPUT_REQUIRED", "COMPLETED"]
    assert pushed.listed(task_id) == []


# What changes on the way


def test_a_webhook_that_is_replaced_is_told_at_its_new_url_of_what_waits(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)

    pushed.create(task_id, url=OTHER, token=None, authentication=None)

    assert set(outcomes(pushed.deliver_all())) == {"delivered"}
    assert (len(pushed.webhooks.states(OTHER)), pushed.webhooks.states(HOOK)) == (1, [])
    assert pushed.webhooks.headers[0] == {"Content-Type": "application/a2a+json"}


def test_a_webhook_that_is_replaced_during_the_last_try_is_tried_itself(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    (message, *_) = pushed.receive(pushed.push)

    def replaced(_url: str) -> int:
        pushed.create(task_id, url=OTHER)
        return 500

    pushed.webhooks.answering = replaced
    last = pushed.deliver(message, tries=6)
    pushed.webhooks.answering = lambda _url: 200

    assert (last.outcome, last.hide_seconds) == ("retried", 10)
    assert pushed.deliver(message, tries=7).outcome == "delivered"
    assert pushed.waiting(pushed.dead_letters) == []


def test_a_webhook_that_is_deleted_during_the_last_try_leaves_no_dead_letter(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    (message, *_) = pushed.receive(pushed.push)

    def deleted(_url: str) -> int:
        pushed.configs.delete("anonymous", task_id, task_id)
        return 500

    pushed.webhooks.answering = deleted

    assert pushed.deliver(message, tries=6).outcome == "retried"
    assert pushed.deliver(message, tries=7).outcome == "dropped"
    assert pushed.waiting(pushed.dead_letters) == []


# Whoever dies


def die(*_: object, **__: object) -> int:
    raise KeyboardInterrupt


@pytest.mark.parametrize("operation", ["BatchGetItem", "UpdateItem"])
def test_a_death_on_the_way_leaves_no_update_untold(pushed: Pushed, operation: str) -> None:
    pushed.send(config=CONFIG)
    (message, *_) = pushed.receive(pushed.push)
    pushed.tasks.before(operation, die)

    with pytest.raises(KeyboardInterrupt):
        pushed.deliver(message)

    assert pushed.deliver(message, tries=2).outcome == "delivered"
    assert pushed.deliver(message, tries=3).outcome == "dropped"


def test_a_death_between_switching_off_and_the_dead_letter_leaves_the_message(pushed: Pushed) -> None:
    pushed.send(config=CONFIG)
    (message, *_) = pushed.receive(pushed.push)
    pushed.webhooks.answering = silent
    pushed.sqs.meta.events.register_first("before-call.sqs.SendMessageBatch", die, unique_id="die")

    with pytest.raises(KeyboardInterrupt):
        pushed.deliver(message, tries=6)
    pushed.sqs.meta.events.unregister("before-call.sqs.SendMessageBatch", unique_id="die")

    assert pushed.deliver(message, tries=7).outcome == "dead"
    assert len(pushed.waiting(pushed.dead_letters)) == 1


def test_a_table_that_does_not_answer_leaves_the_message(pushed: Pushed) -> None:
    pushed.send(config=CONFIG)
    (message, *_) = pushed.receive(pushed.push)
    pushed.tasks.answer("BatchGetItem", error("ThrottlingException"))

    with pytest.raises(UnavailableError):
        pushed.deliver(message)

    assert pushed.deliver(message, tries=2).outcome == "delivered"
