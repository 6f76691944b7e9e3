"""What a server should answer, worked out from the protocol and from what the README promises.

It shares no rule with the server: tasks are entries of a dict, turns run when they are asked for, and what happens
meanwhile happens in order.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tests.fuzz.knowledge import (
    CALL_SECONDS,
    DEFAULT_HISTORY,
    DEFAULT_PAGE,
    LAST_SECONDS,
    LEASE_MARGIN,
    MAX_CONFIGS,
    MAX_MESSAGES,
    MESSAGE_DAYS,
    QUEUED,
    RETENTION,
    RETRY_MARGIN,
    RUNS,
    SECOND,
    TOKEN_LIFETIME,
    WAIT_MARGIN,
    WAITS,
    WINDOW,
    WORKER_SECONDS,
    Begun,
    Config,
    Died,
    Refused,
    Running,
    Sent,
    Task,
    Turn,
    Walk,
    as_shown,
    not_found,
    read_time,
    refused,
    written,
)
from tests.fuzz.matching import MADE, Containing, Json, Made, Token
from tests.fuzz.scripted import LINGER_SECONDS
from tests.fuzz.steps import NOBODY, SELF, Ask, Attend, Step, named
from tests.fuzz.words import COULD_NOT, INTERRUPTED, TERMINAL, Work, agent_says, words_of


class Reference:
    """All that a server knows, and what it should answer."""

    def __init__(self, *, read_only: bool, background: bool, push: bool, now: int) -> None:
        self.read_only = read_only
        self.background = background
        self.push = push
        self.now = now
        self.tasks: dict[str, Task] = {}
        self.begun: dict[tuple[str, str], Begun] = {}
        self.tokens: list[Token] = []
        self.config_tokens: list[Token] = []
        self._results: list[tuple[Step, Json]] = []
        self._ids: list[str] = []
        self._meanwhile: list[Step] = []
        self._about: list[str] = []
        self._running: list[Running] = []

    # Steps

    def carry_out(self, step: Step, meanwhile: Sequence[Step], ids: Sequence[str]) -> list[tuple[Step, Json]]:
        """Return what a step should be answered, and what happens meanwhile, in the order of the answers.

        `ids` are those of the tasks that the server made, in their order.
        """
        self._results, self._ids, self._meanwhile = [], list(ids), list(meanwhile)
        self._carry_out(step)
        assert not self._ids, "a task that there should not be"
        return self._results

    def _carry_out(self, step: Step) -> None:
        step = self.about(step)
        self._about.append("")
        result: Json
        try:
            result = self._attend(step) if isinstance(step, Attend) else {"result": self._answer(step)}
        except Refused as refusal:
            result = refusal.refusal
        except Died:
            result = None
        self._about.pop()
        self._results.append((step, result))

    def about(self, step: Step) -> Step:
        """Return a step with the id of the task that it is about."""
        task_id = (self._about[-1] if self._about else "") or NOBODY
        if isinstance(step, Ask):
            return replace(step, params=named(step.params, task_id))
        if step.task_id != SELF:
            return step
        task = self.alive(step.owner, task_id)
        return Attend(step.owner, task_id, len(task.turns) if task else 1, task.run if task else 1)

    def _happen(self) -> None:
        if self._meanwhile:
            self._carry_out(self._meanwhile.pop(0))

    def _pass(self, seconds: int) -> None:
        self.now += seconds * SECOND
        for running in list(self._running):
            self._keep(running)

    def _answer(self, ask: Ask) -> Json:
        operations: dict[str, Callable[[str, Json], Json]] = {
            "SendMessage": self._send,
            "GetTask": self._get,
            "ListTasks": self._list,
            "CancelTask": self._cancel,
            "CreateTaskPushNotificationConfig": self._create_config,
            "GetTaskPushNotificationConfig": self._get_config,
            "ListTaskPushNotificationConfigs": self._list_configs,
            "DeleteTaskPushNotificationConfig": self._delete_config,
        }
        if not self.push and ask.method.endswith(("Config", "Configs")):
            raise refused(-32003, "Push notifications are not supported")
        return operations[ask.method](ask.owner, ask.params)

    # Tasks

    def alive(self, owner: str, task_id: str) -> Task | None:
        task = self.tasks.get(task_id)
        return task if task and task.owner == owner and self.now < self.expiry(task) else None

    def sweep(self) -> None:
        """Forget what messages came to the first time, where that has expired and is deleted."""
        for key, begun in list(self.begun.items()):
            first = (begun.first or begun).answer
            if not isinstance(first, Task) or self.now > self.expiry(first):
                del self.begun[key]

    def expiry(self, task: Task) -> int:
        return min(task.since, task.created + MESSAGE_DAYS) // SECOND * SECOND + RETENTION

    def _existing(self, owner: str, task_id: str) -> Task:
        task = self._found(owner, task_id)
        self._settle(task)
        return task

    def _found(self, owner: str, task_id: str) -> Task:
        if MADE.fullmatch(task_id):
            self._about[-1] = task_id
        task = self.alive(owner, task_id)
        if task is None:
            raise not_found()
        return task

    def _settle(self, task: Task) -> None:
        """Act on a passed deadline."""
        if task.deadline is None or self.now < task.deadline:
            return
        if task.is_queued and task.waits < WAITS:
            task.waits += 1
            self._queue(task)
        elif not task.is_queued and self.read_only and task.run < RUNS:
            task.run, task.waits, task.artifacts = task.run + 1, 1, task.base
            self._queue(task)
        else:
            word = "within a day" if task.is_queued else f"{RUNS} times" if self.read_only else "unknown"
            task.move("FAILED", self.now, agent_says(Containing(word)))
            task.deadline, task.is_queued = None, False

    def _queue(self, task: Task) -> None:
        task.is_queued, task.deadline = True, self.now + QUEUED
        task.changes += 1

    def present(self, task: Task, history_length: int | None, *, artifacts: bool = True) -> Json:
        limit = DEFAULT_HISTORY if history_length is None else history_length
        history = task.messages[-limit:] if limit else []
        said = task.messages[-1] if task.state in INTERRUPTED else task.said
        status = {"state": f"TASK_STATE_{task.state}", "timestamp": written(task.since)}
        shown: Json = {"id": task.task_id, "contextId": task.context, "status": status}
        if said:
            status["message"] = _within(task, said)
        if artifacts and task.artifacts:
            shown["artifacts"] = list(task.artifacts.values())
        if history:
            shown["history"] = [_within(task, message) for message in history]
        return shown

    def _get(self, owner: str, params: Json) -> Json:
        return self.present(self._existing(owner, params["id"]), params.get("historyLength"))

    def _cancel(self, owner: str, params: Json) -> Json:
        task = self._existing(owner, params["id"])
        if task.state in TERMINAL:
            raise refused(-32002, "finished", state=task.state)
        task.move("CANCELED", self.now)
        task.deadline, task.is_queued = None, False
        return self.present(task, None)

    # Messages

    def _send(self, owner: str, params: Json) -> Json:
        configuration = params.get("configuration", {})
        sent = Sent(
            owner, params["message"], configuration, params.get("metadata", {}), self.now + CALL_SECONDS * SECOND
        )
        if sent.config and not self.push:
            raise refused(-32003, "Push notifications are not supported")
        if sent.config:
            _check_url(sent.config["url"], "configuration.taskPushNotificationConfig.url")
        if any(part.get("mediaType", "text/plain") != "text/plain" for part in sent.message["parts"]):
            raise refused(-32005, "text/plain")
        if "taskId" in sent.message:
            return {"task": self._continue(sent)}
        return self._start(sent)

    def _is_queued(self, sent: Sent) -> bool:
        return self.background or sent.is_immediate

    def _start(self, sent: Sent) -> Json:
        early = self.now
        work = None
        if self.read_only and not self._is_queued(sent):
            known = Containing("-") if (sent.owner, sent.key) in self.begun else Made()
            work = self._work(sent, Work({}, known, _context(sent)), [])
            if work.dies:
                raise Died
        previous = self.begun.get((sent.owner, sent.key))
        if previous and (self.is_open(previous) or self.now < previous.early + WINDOW):
            return self._repeat(previous, sent)
        late = self.now if previous else early
        if work and work.is_reply:
            reply = {**work.said, "contextId": work.context}
            self._remember(sent, early, late, reply)
            self._end(work)
            return {"message": reply}
        task = self._begin(sent, early, late, work)
        self._about[-1] = task.task_id
        if work:
            self._finish(task, work)
            self._bring(task, sent)
            return {"task": self.present(task, sent.configuration.get("historyLength"))}
        self._bring(task, sent)
        return {"task": self._take_turn(task, sent)}

    def _begin(self, sent: Sent, early: int, late: int, work: Work | None) -> Task:
        task_id = self._ids.pop(0)
        assert MADE.fullmatch(task_id)
        assert task_id not in self.tasks or not self.alive(self.tasks[task_id].owner, task_id)
        if work and isinstance(work.task_id, Made):
            work.task_id.value = task_id
        turn = Turn(sent, early, self.now)
        context = work.context if work else _context(sent)
        task = Task(task_id, sent.owner, context, early, late, [turn], since=self.now)
        task.is_watched = bool(sent.config)
        self.tasks[task_id] = task
        self._remember(sent, early, late, task)
        return task

    def is_open(self, begun: Begun) -> bool:
        """Tell whether the turn that a message began waits or runs."""
        task = begun.answer
        if not isinstance(task, Task) or not self.alive(task.owner, task.task_id):
            return False
        return task.deadline is not None and len(task.turns) == 1

    def _remember(self, sent: Sent, early: int, late: int, answer: Json) -> None:
        previous = self.begun.get((sent.owner, sent.key))
        first = (previous.first or previous) if previous else None
        self.begun[sent.owner, sent.key] = Begun(early, late, answer, first)

    def _repeat(self, begun: Begun, sent: Sent) -> Json:
        if isinstance(begun.answer, Task):
            return {"task": self._join(begun.answer, sent)}
        return {"message": begun.answer}

    def _join(self, task: Task, sent: Sent) -> Json:
        """Answer a copy of a message."""
        self._about[-1] = task.task_id
        self._settle(task)
        if sent.config and task.state not in TERMINAL:
            self._configure(task, sent.config)
        return self._wait_for(task, sent)

    def _wait_for(self, task: Task, sent: Sent) -> Json:
        while task.deadline is not None and not sent.is_immediate and self._left(sent.end) > WAIT_MARGIN:
            self._pass(1)
            self._happen()
            task = self._existing(task.owner, task.task_id)
        return self.present(task, sent.configuration.get("historyLength"))

    def _continue(self, sent: Sent) -> Json:
        done: dict[int, Work] = {}
        while True:
            task = self._found(sent.owner, sent.message["taskId"])
            if self._has_taken(task, sent):
                return self._join(task, sent)
            self._settle(task)
            self._admit(task, sent)
            early, changes, turn = self.now, task.changes, len(task.turns)
            if self._is_queued(sent) or not self.read_only:
                self._check_room(task, sent)
                self._follow(task, sent, early)
                self._bring(task, sent)
                return self._take_turn(task, sent)
            if turn not in done:
                work = Work(task.artifacts, Made(task.task_id), task.context)
                done[turn] = self._work(sent, work, task.messages)
            if done[turn].dies:
                raise Died
            self._check_room(task, sent)
            if task.changes == changes:
                self._follow(task, sent, early)
                self._finish(task, done[turn])
                self._bring(task, sent)
                return self.present(task, sent.configuration.get("historyLength"))
            if self._has_taken(task, sent):
                return self._join(task, sent)
            if self._left(sent.end) < RETRY_MARGIN:
                raise refused(-32603, "Internal error")

    def _has_taken(self, task: Task, sent: Sent) -> bool:
        is_open = task.deadline is not None and task.turns[-1].sent.key == sent.key
        return is_open or any(turn.sent.key == sent.key and self.now < turn.taken + WINDOW for turn in task.turns)

    def _admit(self, task: Task, sent: Sent) -> None:
        if sent.message.get("contextId", as_shown(task.context)) != as_shown(task.context):
            raise refused(-32602, "Invalid parameters", field="message.contextId")
        if task.state in TERMINAL:
            raise refused(-32004, "finished", state=task.state)
        if task.state not in INTERRUPTED:
            raise refused(-32004, "busy", state=task.state)
        if self.now >= task.created + MESSAGE_DAYS:
            raise refused(-32004, "older than 30 days", state=task.state)
        if len(task.messages) + 2 > MAX_MESSAGES:
            raise refused(-32004, f"may have {MAX_MESSAGES} messages", state=task.state)

    def _follow(self, task: Task, sent: Sent, taken: int) -> None:
        task.turns.append(Turn(sent, taken, self.now))
        task.is_watched = task.is_watched or bool(sent.config)
        task.base, task.run, task.waits = task.artifacts, 1, 1
        task.move("WORKING", self.now)

    def _take_turn(self, task: Task, sent: Sent) -> Json:
        if self._is_queued(sent):
            if len(task.turns) == 1:
                task.state = "SUBMITTED"
            self._queue(task)
            return self._wait_for(task, sent)
        task.deadline = sent.end
        self._run(task, sent.end)
        return self.present(task, sent.configuration.get("historyLength"))

    # Turns

    def _attend(self, step: Attend) -> Json:
        self._about[-1] = step.task_id
        task = self.alive(step.owner, step.task_id)
        if task is None or task.deadline is None or (len(task.turns), task.run) != (step.turn, step.run):
            return {"outcome": "dropped", "state": "", "hidden": 0}
        if not task.is_queued:
            if self.now < task.deadline:
                return {"outcome": "hidden", "state": "", "hidden": (task.deadline - self.now) // SECOND + 1}
            self._settle(task)
            return {"outcome": "settled", "state": f"TASK_STATE_{task.state}", "hidden": 0}
        task.is_queued, task.artifacts = False, task.base
        if task.state != "WORKING":
            task.move("WORKING", self.now)
        task.deadline = self.now + (WORKER_SECONDS + LEASE_MARGIN) * SECOND
        task.changes += 1
        state = self._run(task, self.now + WORKER_SECONDS * SECOND)
        return {"outcome": "ran", "state": f"TASK_STATE_{state}", "hidden": 0}

    def _run(self, task: Task, end: int) -> str:
        """Run a claimed turn, and return the state that it is found in at its end."""
        sent = replace(task.turns[-1].sent, end=end)
        work = Work(task.base, Made(task.task_id), task.context)
        running = Running(task, len(task.turns), task.run, work)
        self._running.append(running)
        self._work(sent, work, task.messages[:-1])
        self._running.remove(running)
        if work.dies:
            raise Died
        if not work.lost_to and running.is_over:
            work.lost_to = task.state
        if work.lost_to:
            return work.lost_to
        self._finish(task, work)
        return task.state

    def _finish(self, task: Task, work: Work) -> None:
        task.move(work.state, self.now, work.said)
        task.deadline, task.artifacts = None, work.artifacts
        if work.state in INTERRUPTED:
            task.turns[-1].question = work.said
        self._end(work)

    def _end(self, work: Work) -> None:
        if work.vanishes:
            raise Died

    def _keep(self, running: Running) -> None:
        """Make readable what a running turn has come to."""
        task, work = running.task, running.work
        if work.lost_to or work.is_closed or not work.has_news:
            return
        if running.is_over:
            work.lost_to = task.state
            return
        task.artifacts = work.artifacts
        task.changes += 1
        if work.has_said:
            task.move("WORKING", self.now, work.said)
        work.has_news = work.has_said = False

    def _left(self, end: int) -> float:
        return (end - self.now) / SECOND

    def _work(self, sent: Sent, work: Work, earlier: Sequence[Json]) -> Work:
        """Do as the words of a message say."""
        told = " | ".join(part["text"] for message in earlier for part in message["parts"])
        known = {
            "task": work.task_id,
            "context": work.context,
            "caller": sent.owner,
            "message": sent.message["messageId"],
            "metadata": sent.metadata,
            "modes": sent.configuration.get("acceptedOutputModes", []),
        }
        for word in words_of(sent.message):
            if word.kind == "stop":
                break
            if word.kind == "raise":
                work.fail(COULD_NOT)
                return work
            if self._stages(work, word.kind):
                continue
            if not work.apply(word, told, known):
                return work
            if not work.is_closed and self._left(sent.end) < LAST_SECONDS:
                work.fail("did not finish this task in the time")
                return work
        if not work.is_closed:
            work.state, work.said = "COMPLETED", None
        return work

    def _stages(self, work: Work, kind: str) -> bool:
        """Carry a word out that is no update, and tell whether it was one."""
        match kind:
            case "wait":
                self._pass(1)
            case "linger":
                self._pass(LINGER_SECONDS)
            case "meanwhile":
                self._happen()
            case "die":
                work.dies = True
            case "vanish":
                work.vanishes = True
            case _:
                return False
        return True

    # Lists

    def _list(self, owner: str, params: Json) -> Json:
        wanted = {name: params.get(name) for name in ("contextId", "status", "statusTimestampAfter")}
        walk = self._walk(owner, wanted, params["pageToken"]) if params.get("pageToken") else None
        matching = [task for task in self.tasks.values() if self._matches(owner, task, wanted)]
        total = walk.total if walk else len(matching)
        left = sorted((task for task in matching if walk is None or _place(task) < walk.behind), key=_place)[::-1]
        size = params.get("pageSize", DEFAULT_PAGE)
        behind = _place(left[size - 1]) if len(left) > size else None
        shown = list(self._shown(left[:size], wanted, params, is_first=walk is None))
        token: Json = ""
        if behind:
            token = Token(walk=Walk(owner, wanted, behind, total, self.now))
            self.tokens.append(token)
        return {"tasks": shown, "nextPageToken": token, "pageSize": size, "totalSize": total}

    def _shown(self, tasks: Sequence[Task], wanted: Json, params: Json, *, is_first: bool) -> Iterator[Json]:
        """Yield a page's tasks: on the first page those that have just failed are at the top."""
        length = params.get("historyLength", 0)

        def show(task: Task) -> Json:
            shown = self.present(task, length, artifacts=False)
            return shown | ({"artifacts": list(task.artifacts.values())} if params.get("includeArtifacts") else {})

        shown: list[tuple[tuple[int, str] | tuple[()], Json]] = []
        for task in tasks:
            before, since = show(task), task.since
            self._settle(task)
            has_moved = task.since != since
            if not is_first and has_moved:
                shown.append(((), before))
            elif not has_moved or wanted["status"] in (None, f"TASK_STATE_{task.state}"):
                shown.append((_place(task) if has_moved else (), show(task)))
        yield from (each for place, each in sorted(shown, key=lambda pair: pair[0], reverse=True))

    def _matches(self, owner: str, task: Task, wanted: Json) -> bool:
        if not self.alive(owner, task.task_id):
            return False
        context, state, since = wanted["contextId"], wanted["status"], wanted["statusTimestampAfter"]
        if context and context != as_shown(task.context):
            return False
        return state in (None, f"TASK_STATE_{task.state}") and (since is None or task.since >= read_time(since))

    def _walk(self, owner: str, wanted: Json, token: str) -> Walk:
        for each in self.tokens:
            walk = each.walk
            if each.value == token and (walk.owner, walk.wanted) == (owner, wanted):
                if self.now >= walk.issued + TOKEN_LIFETIME:
                    break
                assert isinstance(walk, Walk)
                return walk
        raise refused(-32602, "Invalid parameters", field="pageToken")

    # Webhooks

    def _check_room(self, task: Task, sent: Sent) -> None:
        if sent.config and len(task.configs) == MAX_CONFIGS:
            config_id = sent.config.get("id") or task.task_id
            if config_id not in task.configs:
                raise refused(-32004, f"{MAX_CONFIGS} push notification configs")

    def _bring(self, task: Task, sent: Sent) -> None:
        """Keep the webhook that came with a message that counts."""
        if sent.config:
            self._put_config(task, sent.config)

    def _put_config(self, task: Task, config: Json) -> Json:
        config_id = config.get("id") or task.task_id
        known = task.configs.get(config_id)
        if known is None and len(task.configs) == MAX_CONFIGS:
            raise refused(-32004, f"{MAX_CONFIGS} push notification configs")
        shown = {"id": config_id, "taskId": task.task_id, "url": config["url"]}
        if "authentication" in config:
            shown["authentication"] = {"scheme": config["authentication"]["scheme"]}
        task.configs[config_id] = Config(known.created if known else self.now, shown)
        return shown

    def _configure(self, task: Task, config: Json) -> Json:
        shown = self._put_config(task, config)
        if not task.is_watched and task.state not in TERMINAL:
            task.changes += 1
            task.is_watched = True
        return shown

    def _create_config(self, owner: str, params: Json) -> Json:
        _check_url(params["url"], "url")
        return self._configure(self._existing(owner, params["taskId"]), params)

    def _get_config(self, owner: str, params: Json) -> Json:
        task = self._existing(owner, params["taskId"])
        if params["id"] not in task.configs:
            raise refused(-32001, "no push notification config")
        return task.configs[params["id"]].shown

    def _list_configs(self, owner: str, params: Json) -> Json:
        walk = None
        if token := params.get("pageToken"):
            known = (each.walk for each in self.config_tokens if each.value == token)
            walk = next((walk for walk in known if walk.wanted == (owner, params["taskId"])), None)
            if walk is None or self.now >= walk.issued + TOKEN_LIFETIME:
                raise refused(-32602, "Invalid parameters", field="pageToken")
        task = self._existing(owner, params["taskId"])
        left = sorted(task.configs.values(), key=lambda config: config.created)
        left = [config for config in left if walk is None or config.created > walk.behind[0]]
        size = params.get("pageSize") or DEFAULT_PAGE
        answer: Json = {"configs": [config.shown for config in left[:size]]} if left else {}
        if len(left) > size:
            wanted = owner, task.task_id
            token = Token(walk=Walk(owner, wanted, (left[size - 1].created, ""), 0, self.now))
            self.config_tokens.append(token)
            answer["nextPageToken"] = token
        return answer

    def _delete_config(self, owner: str, params: Json) -> Json:
        self._existing(owner, params["taskId"]).configs.pop(params["id"], None)
        return {}


def _within(task: Task, message: Json) -> Json:
    return {**message, "taskId": task.task_id, "contextId": task.context}


def _context(sent: Sent) -> Json:
    return sent.message.get("contextId") or Made()


def _place(task: Task) -> tuple[int, str]:
    return task.since, task.task_id


def _check_url(url: str, path: str) -> None:
    if not url.startswith("https://"):
        raise refused(-32602, "Invalid parameters", field=path)
