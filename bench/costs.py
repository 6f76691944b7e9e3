"""The tables of costs, and of the prices that they are made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench import prices
from bench.background import ACTING, ONE_SHOT, WITH_WEBHOOK
from bench.chain import PUSH, RELAY, RPC
from bench.interpreters import middle
from bench.report import number, table

if TYPE_CHECKING:
    from bench.background import Passed
    from bench.measurements import Results
    from bench.staging import Stage


def by_kind(stage: Stage, results: Results) -> dict[str, dict[str, float]]:
    """US dollars for a million tasks of each kind, by what they are for."""
    return {kind: prices.million(_task(stage, results, each)) for kind, each in results.background.passed.items()}


def _task(stage: Stage, results: Results, passed: Passed) -> prices.Task:
    done = passed.done

    def all_of(what: str) -> float:
        return sum(each[what] for each in done.values())

    return prices.Task(
        shares=[_share(stage, results, passed, function) for function in done],
        write_units=all_of("write_units"),
        read_units=all_of("read_units"),
        standard_requests=all_of("standard_requests"),
        fair_requests=all_of("fair_requests"),
        fifo_requests=all_of("fifo_requests"),
        stored_bytes=passed.stored_bytes,
        sent_bytes=done[RPC]["answer_bytes"] + passed.posted_bytes,
    )


def _share(stage: Stage, results: Results, passed: Passed, function: str) -> prices.Share:
    done, batch = passed.done[function], prices.RELAY_BATCH if function == RELAY else 1
    cold = results.cold["this server"] if function == RPC else results.background.cold[function]
    return prices.Share(
        memory_mb=stage.memory[function],
        invocations=done["invocations"] / batch,
        cpu_seconds=passed.cpu[function],
        cold_seconds=middle(cold, "total") / 1000,
        calls=done["calls"],
        queue_calls=done["queue_calls"],
        posts=passed.posts if function == PUSH else 0,
        log_bytes=done["log_bytes"],
        log_lines=done["log_lines"],
    )


def report(stage: Stage, results: Results) -> str:
    """The table of costs, that of prices, and what was assumed."""
    costs, passed = by_kind(stage, results), results.background.passed
    log, updates = passed[ONE_SHOT].done[RPC], number(passed[WITH_WEBHOOK].posts)
    parts = [(what, *(f"{dollars[what]:.3f}" for dollars in costs.values())) for what in costs[ONE_SHOT]]
    sums = ("all", *(f"{sum(dollars.values()):.2f}" for dollars in costs.values()))
    by_price = [(what, f"{price.dollars:.10g}", price.source) for what, price in prices.PRICES.items()]
    return "\n".join(
        [
            "## A million tasks",
            "",
            "In US dollars, one request a task, messages of 1 KB. A one-shot task of a read-only agent logs",
            f"{number(log['log_bytes'])} bytes in {number(log['log_lines'])} lines: its own, and its metrics.",
            f"A webhook is told of {updates} updates.",
            "",
            table(("what", *costs), [*parts, sums]),
            "",
            "Not in the sums, since a month costs it with ten tasks as with a million; the free tiers cover all of it:",
            "",
            *standing("fair" if passed[ACTING].done[RELAY]["fair_requests"] else "standard"),
            "",
            "Prices of us-east-1, on demand, first tier, no free tier; looked up in November 2026, not in AWS's list:",
            "",
            table(("price of", "US dollars", "read in"), by_price),
            "",
            "Assumed, since no measurement here can tell:",
            "",
            *assumptions(stage),
        ]
    )


def standing(work_queue: str) -> list[str]:
    """What is to be paid by the month; the work queue is of this kind."""
    metrics = prices.METRICS * prices.PRICES["CloudWatch, a metric for a month"].dollars
    work, push = prices.idle_queue(work_queue), prices.idle_queue("FIFO")
    return [
        f"- {metrics:.2f} for the {prices.METRICS} metrics that one-shot tasks make.",
        f"- {work:.2f} for Lambda's looking into the work queue, {prices.POLLS_A_MINUTE} times a minute, and, with",
        f"  push notifications, {push:.2f} for the push queue.",
    ]


def assumptions(stage: Stage) -> list[str]:
    """What the sums rest on beside the measurements."""
    memory = ", ".join(f"{name} {megabytes}" for name, megabytes in stage.memory.items())
    call, queue, post = (
        f"{seconds * 1000:.0f} ms" for seconds in (prices.CALL_SECONDS, prices.QUEUE_SECONDS, prices.POST_SECONDS)
    )
    return [
        f"- A function has a CPU like this machine's at {prices.FULL_CPU_MB:,} MB, and its part of one below that.",
        f"  They have, in MB: {memory}.",
        f"- It waits {call} for a call of DynamoDB, {queue} for one of SQS, and {post} for a webhook.",
        f"- An invocation of the relay is handed {prices.RELAY_BATCH} outbox: a million tasks in a month seldom meet.",
        "- Reading the table's stream is free for Lambda. What the agent does outside of this server is not in it.",
        f"- {prices.COLD_STARTS:.0%} of the invocations are cold starts, each as long as here.",
        f"- {prices.TRACED:.0%} of the invocations are traced, Lambda's default sampling.",
        f"- A line of the access log has {prices.ACCESS_LOG_BYTES} bytes.",
        f"- Tasks and logs are kept for {prices.RETENTION_MONTHS} month; deleting is free.",
        "- Encryption with the AWS-managed key costs next to nothing: DynamoDB keeps the key for minutes.",
    ]
