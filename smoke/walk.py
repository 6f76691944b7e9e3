"""The checks in their order, and a line for each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias

from smoke import access, cards, push, requests, tasks
from smoke.errors import NotCheckedError, WrongError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smoke.visit import Visit

OK: Final = "ok"
SKIPPED: Final = "skipped"
FAILED: Final = "FAILED"

Checks: TypeAlias = "Mapping[str, Callable[[Visit], str]]"

CHECKS: Final[Checks] = {
    "card": cards.is_served,
    "card's fields": cards.is_well_formed,
    "card's address": cards.names_this_address,
    "card's ETag": cards.can_be_cached,
    "card's HEAD": cards.answers_head,
    "card's signatures": cards.is_signed,
    "credentials": access.has_credentials,
    "no credentials": access.nobody_is_let_in,
    "a wrong key": access.a_wrong_key_is_refused,
    "preflight": access.pages_may_call,
    "other versions": requests.other_versions_are_refused,
    "version 1.0": requests.the_version_is_taken_as_it_may_be_given,
    "broken JSON": requests.broken_json_is_refused,
    "no request": requests.what_is_no_request_is_refused,
    "unknown method": requests.an_unknown_method_is_refused,
    "notification": requests.a_notification_has_no_answer,
    "trailing slash": requests.a_trailing_slash_leads_to_the_same,
    "wrong parameters": requests.wrong_parameters_are_named,
    "unknown task": requests.an_unknown_task_is_not_found,
    "streaming": requests.streaming_is_refused,
    "extended card": requests.the_extended_card_is_refused,
    "content type": requests.other_content_is_refused,
    "extensions": requests.a_required_extension_is_required,
    "SendMessage": tasks.a_message_is_answered,
    "the same again": tasks.the_same_message_is_the_same_task,
    "returnImmediately": tasks.a_task_is_begun_at_once,
    "history": tasks.the_history_is_as_long_as_asked,
    "ListTasks": tasks.tasks_are_listed,
    "pages": tasks.lists_are_paged,
    "filters": tasks.lists_are_filtered,
    "listed artifacts": tasks.lists_have_artifacts_for_the_asking,
    "another context": tasks.another_context_is_refused,
    "next turn": tasks.an_interrupted_task_goes_on,
    "CancelTask": tasks.an_unfinished_task_is_canceled,
    "finished task": tasks.a_finished_task_stays_as_it_is,
    "push undeclared": push.undeclared_configs_are_refused,
    "push configs": push.configs_are_kept,
    "push inwards": push.inward_webhooks_are_refused,
    "push, no task": push.configs_of_unknown_tasks_are_refused,
}
"""The name of each line, and what it checks."""

WIDTH: Final = max(len(name) for name in CHECKS)


def walk(checks: Checks, visit: Visit, say: Callable[[str], None]) -> Counter[str]:
    """Make the checks, and say what each saw; how many went how."""
    counts: Counter[str] = Counter()
    for name, check in checks.items():
        before = visit.wire.seconds
        outcome, seen = _outcome(check, visit)
        counts[outcome] += 1
        spent = visit.wire.seconds - before
        said = f"{outcome:8}{name:{WIDTH + 2}}{seen}"
        say(f"{said} [{spent * 1000:.0f} ms]" if spent else said)
    return counts


def _outcome(check: Callable[[Visit], str], visit: Visit) -> tuple[str, str]:
    try:
        return OK, check(visit)
    except NotCheckedError as error:
        return SKIPPED, str(error)
    except WrongError as error:
        return FAILED, str(error)
