"""ListTasks (§3.1.4): a caller's tasks page by page, the newest change of state first."""

from collections.abc import Callable
from itertools import repeat
from typing import Final

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from a2a_lambda.errors import TaskNotFoundError
from a2a_lambda.model import ListTasksRequest, ListTasksResponse, Task
from a2a_lambda.pages import Place, make_token, read_token
from a2a_lambda.presentation import show
from a2a_lambda.store import Page, TaskFilter, TaskStore
from a2a_lambda.task import Head
from a2a_lambda.timestamps import to_milliseconds

DEFAULT_PAGE_SIZE: Final = 50

MAX_PAGE_BYTES: Final = 4 * 1024 * 1024
"""A page ends early rather than being longer, unless a single task is."""


class Listing(Struct, frozen=True):
    """A list that is asked for, and the place in it where its next page begins."""

    owner: str
    wanted: TaskFilter
    place: Place | None
    """None for the first page."""

    @property
    def name(self) -> str:
        """What stands for the list in its page tokens."""
        return msgspec.json.encode([self.owner, self.wanted]).decode()


def read_listing(owner: str, request: ListTasksRequest, now: int) -> Listing:
    """Return the list that a request asks for.

    The page size, the history length and the artifacts may change from page to page; the filters may not.

    Raises:
        InvalidParamsError: the page token is not one of this list.
    """
    since = request.status_timestamp_after
    wanted = TaskFilter(
        context_id=request.context_id,
        state=None if request.status is UNSET else request.status,
        since=None if since is UNSET else to_milliseconds(since),
    )
    first = Listing(owner, wanted, None)
    return replace(first, place=read_token(request.page_token, first.name, now)) if request.page_token else first


def list_tasks(
    store: TaskStore, listing: Listing, request: ListTasksRequest, now: int, settle: Callable[[Head], Head]
) -> ListTasksResponse:
    """Return the next page of a list. The total is counted for the first page, and carried on in the token.

    `settle` gives a task as it stands once a turn that has outlived its deadline is acted on.
    """
    size = DEFAULT_PAGE_SIZE if request.page_size is UNSET else request.page_size
    if listing.place:
        cursor, total = listing.place.cursor, listing.place.total
    else:
        cursor, total = None, store.count(listing.owner, listing.wanted)
    page = _settled(store, listing, store.page(listing.owner, listing.wanted, cursor, size), settle)
    tasks, behind = _fill(store, page, request)
    token = make_token(Place(behind, total, now), listing.name) if behind else ""
    return ListTasksResponse(tasks=tasks, next_page_token=token, page_size=size, total_size=total)


def _settled(store: TaskStore, listing: Listing, page: Page, settle: Callable[[Head], Head]) -> Page:
    """Return a page with its tasks settled.

    A task that has changed its state by it now stands at the top of the list: there the first page shows it. A later
    page shows it as it was when the page was read, at the place where the list had it.
    """
    moved: list[tuple[Head, str]] = []
    stayed: list[tuple[Head, str]] = []
    for head, cursor in page.entries:
        settled = _settle_or_none(head, settle)
        if settled is None:
            continue
        if settled.status_at == head.status_at:
            stayed.append((settled, cursor))
        elif listing.place:
            stayed.append((head, cursor))
        elif listing.wanted.state in (None, settled.state):
            moved.append((settled, store.place(settled)))
    moved.sort(key=lambda entry: entry[1], reverse=True)
    return replace(page, entries=[*moved, *stayed])


def _settle_or_none(head: Head, settle: Callable[[Head], Head]) -> Head | None:
    try:
        return settle(head)
    except TaskNotFoundError:
        return None


def _fill(store: TaskStore, page: Page, request: ListTasksRequest) -> tuple[list[Task], str | None]:
    """Return as many of a page's tasks as an answer may carry, and the cursor behind the last of them."""
    limit = 0 if request.history_length is UNSET else request.history_length
    heads = [head for head, _ in page.entries]
    histories = store.histories(heads, limit) if limit else repeat([])
    tasks: list[Task] = []
    room, behind = MAX_PAGE_BYTES, None
    for (head, cursor), history in zip(page.entries, histories, strict=False):
        artifacts = store.artifacts(head) if request.include_artifacts is True else UNSET
        shown = show(store, head, history, artifacts)
        room -= len(msgspec.json.encode(shown))
        if room < 0 and tasks:
            return tasks, behind
        tasks.append(shown)
        behind = cursor
    return tasks, page.cursor
