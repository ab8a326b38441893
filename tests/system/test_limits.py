"""Limits that hold: a hung job gives up its slot, nobody hoards, and what cannot be stored is not done twice."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any

import pytest

from tenure import BadArguments, State
from tenure.clock import boot_clock
from tenure.protocol.codec import MAX_BYTES
from tests.system.apps import (
    STEADY,
    app,
    come_back_for_a_child,
    echo,
    grow,
    grow_in_a_process,
    hold_a_slot,
    leave,
    leave_async,
    loop_for_ever,
    loop_in_a_process,
    quick,
    quick_async,
    quick_in_a_process,
    return_the_unspeakable,
    sleep_for_ever,
    swallow_the_cancellation,
    wait_for_a_child,
    wait_here,
)
from tests.system.conftest import Site

HUNG: dict[str, tuple[Any, Any]] = {
    "a loop in a thread": (loop_for_ever, quick),
    "a system call in a thread": (sleep_for_ever, quick),
    "an async handler that swallows its cancellation": (swallow_the_cancellation, quick_async),
    "a loop in a process": (loop_in_a_process, quick_in_a_process),
}


def test_b36_a_hung_job_gives_up_its_slot_in_every_mode(site: Site) -> None:
    """One slot for each mode, a hung job in it, a healthy one behind it; all modes on one worker."""
    hung = {name: task.enqueue().id for name, (task, _) in HUNG.items() if name != "a system call in a thread"}
    site.worker("ada", threads=1, slots=1, processes=1)
    site.wait_for_starts(list(hung.values()))
    healthy = [task.enqueue().id for _, task in HUNG.values()]
    site.wait_for_state(healthy, State.COMPLETED)
    assert site.journal.count("event", kind="job timed out") >= len(hung)
    [killed] = site.wait_for_state([hung["a loop in a process"]], State.DISCARDED)
    assert killed.failure is not None
    assert (killed.failure.type, killed.attempts, len(site.starts(killed.id))) == ("TimeLimit", 1, 1)


def test_b36_a_run_that_did_not_stop_lets_its_lease_lapse_and_is_told_so(site: Site) -> None:
    job = sleep_for_ever.options(lease=1.0, max_takeovers=1).enqueue().id
    worker = site.worker("ada")
    [dead] = site.wait_for_state([job], State.DISCARDED)
    assert dead.reason == "worker lost once"
    assert site.starts(job) == [(1, "ada")]
    assert worker.running


MOMENT = 0.5
"""Seconds for which a worker may hold a job that waits for one of its slots, while another worker has one free."""


def test_b20_while_one_job_takes_long_no_short_one_waits_for_it(site: Site) -> None:
    """A worker that was alone with many jobs leaves to another what it has no slot for."""
    site.worker("ada", threads=4)
    steady = wait_here.options(lease=STEADY)
    long = steady.options(priority=10).enqueue("long").id
    short = [one.id for one in steady.enqueue_many([{"name": "short"}] * 20)]
    site.wait(lambda: site.journal.count("start", worker="ada") == 4, "the slots of the first to be full")
    site.worker("bea", threads=4)
    site.wait(lambda: site.journal.count("start", worker="bea") == 4, "the slots of the other one to be full")
    with site.machine() as machine:
        site.journal.go("short")
        records = site.wait_for_state(short, State.COMPLETED)
        starts = {line["job"]: line["at"] for line in site.journal.find("start")}
        booted_at = time.time() - boot_clock()
        for record in records[-8:]:
            assert record.claimed_at is not None
            claimed_at = record.claimed_at.timestamp() - booted_at
            assert starts[record.id] - claimed_at <= MOMENT + machine.lateness(claimed_at, starts[record.id])
    assert app.client.get(long).state is State.RUNNING
    site.journal.go("long")
    site.wait_for_state([long], State.COMPLETED)


def test_b20_priority_is_strict_while_higher_work_keeps_coming(site: Site) -> None:
    """More comes for a while than two slots can do; the job of low priority waits as long as any of it is left."""
    urgent = hold_a_slot.options(priority=10)
    rest = [one.id for one in urgent.enqueue_many([{"seconds": 0.05}] * 40)]
    low = quick.enqueue().id
    site.worker("ada", threads=2)
    for least in range(0, 40, 4):
        site.wait(lambda least=least: site.journal.count("start") >= least, f"{least} jobs to start")  # type: ignore[misc]
        rest.extend(one.id for one in urgent.enqueue_many([{"seconds": 0.05}] * 5))
    [waited, *served] = site.wait_for_state([low, *rest], State.COMPLETED)
    assert waited.claimed_at is not None
    overtaken = [one for one in served if one.claimed_at and one.claimed_at > waited.claimed_at]
    long_before = waited.claimed_at - timedelta(seconds=0.5)  # what was stored just then may not have been seen
    assert [one.id for one in overtaken if one.id in rest[:40] or one.enqueued_at < long_before] == []


def test_b20_parents_that_hold_every_slot_are_freed_by_their_time_limit(site: Site) -> None:
    """No child starts before the first parent's time is over; then all find theirs ended, some in a second attempt."""
    parents = [one.id for one in wait_for_a_child.enqueue_many([{}] * 8)]
    for name in ("ada", "bea"):
        site.start_worker(name, threads=4)
    records = site.wait_for_state(parents, State.COMPLETED)
    children = [json.loads(record.result or "") for record in records]
    for child in site.wait_for_state(children, State.COMPLETED):
        assert (child.generation, child.attempts) == (1, 0)
    freed_at = min(line["at"] for line in site.journal.find("event", kind="job timed out"))
    assert freed_at <= min(line["at"] for line in site.journal.find("start", task=quick.name))
    assert {record.attempts for record in records} <= {0, 1}


def test_b20_parents_that_come_back_hold_no_slot(site: Site) -> None:
    parents = [one.id for one in come_back_for_a_child.enqueue_many([{}] * 8)]
    site.worker("ada", threads=1)
    records = site.wait_for_state(parents, State.COMPLETED)
    assert {record.attempts for record in records} == {0}
    children = {json.loads(record.result or "") for record in records}
    assert len(children) == len(parents)
    assert all(len(site.starts(child)) == 1 for child in children)


def test_b25_a_result_that_cannot_be_stored_ends_the_job_and_repeats_nothing(site: Site) -> None:
    job = return_the_unspeakable.enqueue().id
    site.worker("ada")
    [record] = site.wait_for_state([job], State.DISCARDED)
    assert len(site.starts(job)) == 1
    assert record.failure is not None
    assert record.failure.type == "BadResult"
    assert record.result is None


@pytest.mark.parametrize("task", [leave, leave_async], ids=lambda task: str(task.name))
def test_a_handler_cannot_end_the_worker(site: Site, task: Any) -> None:
    job = task.enqueue().id
    worker = site.worker("ada")
    [record] = site.wait_for_state([job], State.DISCARDED)
    assert (record.attempts, len(site.starts(job))) == (2, 2)
    following = [one.enqueue().id for one in (quick, quick_async)]
    site.wait_for_state(following, State.COMPLETED)
    assert worker.running


SIZES = (7_900, 8_100, 1_000_000, MAX_BYTES)
"""Bytes of arguments as JSON, and of results; a notice of PostgreSQL carries less than 8,000."""


def test_b35_what_is_within_the_limit_arrives_and_comes_back(site: Site) -> None:
    texts = ["x" * (size - len('{"text":""}')) for size in SIZES] + ["\N{GRINNING FACE}" * 2_000]
    site.worker("ada")
    jobs = [echo.enqueue(text).id for text in texts]
    many = [one.id for one in echo.enqueue_many([{"text": texts[2]}] * 20)]
    for record, text in zip(site.wait_for_state(jobs + many, State.COMPLETED), texts + [texts[2]] * 20, strict=True):
        assert json.loads(record.arguments) == {"text": text}
        assert json.loads(record.result or "") == text


HUGE = 50_000_000


def test_b35_what_is_above_the_limit_is_refused_with_both_numbers(site: Site) -> None:
    """Arguments at the call; a result when the run ends, and nothing is repeated; the worker goes on."""
    size = HUGE + len('{"text":""}')
    with pytest.raises(BadArguments, match=rf"echo: {size} bytes as JSON, above the limit of {MAX_BYTES}"):
        echo.enqueue("x" * HUGE)
    assert app.client.queues() == []

    site.worker("ada")
    jobs = [task.enqueue(HUGE, "returns").id for task in (grow, grow_in_a_process)]
    for record in site.wait_for_state(jobs, State.DISCARDED):
        assert record.failure is not None
        assert record.failure.type == "BadResult"
        assert f"{HUGE + 2} bytes as JSON, above the limit of {MAX_BYTES}" in record.failure.message
        assert len(site.starts(record.id)) == 1
    site.wait_for_state([quick.enqueue().id], State.COMPLETED)


@pytest.mark.parametrize("task", [grow, grow_in_a_process], ids=lambda task: str(task.name))
def test_b35_an_error_that_quotes_too_much_is_cut_and_stops_nobody(site: Site, task: Any) -> None:
    worker = site.worker("ada")
    job = task.enqueue(HUGE, "fails").id
    [record] = site.wait_for_state([job], State.DISCARDED)
    assert record.failure is not None
    assert record.failure.message.endswith(f"x… (the first 16384 of {HUGE} characters)")
    assert len(record.failure.message) < 17_000
    cancelled = grow.enqueue(HUGE, "cancels").id
    [record] = site.wait_for_state([cancelled], State.CANCELLED)
    assert len(record.reason or "") < 17_000
    site.wait_for_state([quick.enqueue().id], State.COMPLETED)
    assert site.journal.count("event", kind="store unreachable") == 0
    assert worker.running


def test_b35_many_jobs_are_stored_in_one_call_or_none_is(site: Site) -> None:
    """In a process of their own, so that the memory that it took can be told."""
    child = site.processes.python(
        "-m", "tests.system.bulk", "1", "999", "5000", "20000", "100000", environment=site.environment()
    )
    assert child.wait(90.0) == 0, child.stderr.read_text()
    [counts] = app.client.queues()
    assert counts.due == 1 + 999 + 5_000 + 20_000 + 100_000
    refused, *grown = child.lines()
    assert refused == "BadArguments quick: [99999].number: Expected `int`, got `str`"
    for line in grown:
        jobs, kilobytes = map(int, line.split())
        assert kilobytes < 20_000 + 4 * jobs, f"{jobs} jobs took {kilobytes} kB"
