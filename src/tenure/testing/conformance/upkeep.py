"""Part: pruning, the floor, recovery, and the largest generation."""

from __future__ import annotations

import logging

import pytest

from tenure.errors import NotAllowed, NotFound
from tenure.protocol.job import Enqueued, Filter
from tenure.protocol.lifecycle import State, Verb
from tenure.store.contract import FLOOR_STEP, MAX_GENERATION
from tenure.testing.conformance.bench import LEASE, Bench, new_job

WEEK = 7 * 86_400.0


def test_a_prune_removes_what_ended_long_enough_ago(bench: Bench) -> None:
    worker = bench.worker()
    completed, cancelled, discarded = (bench.enqueue() for _ in range(3))
    for held, verb in zip(worker.claim(3), (Verb.COMPLETE, Verb.CANCEL, Verb.DISCARD), strict=True):
        worker.end(held, verb)
    bench.shift(100.0)
    fresh = bench.enqueue()
    worker.complete(worker.claim_one())
    waiting, running = bench.enqueue(), bench.enqueue(priority=1)
    worker.claim_one()
    assert _prune(bench, 101.0) == 0
    bench.shift(2.0)
    assert _prune(bench, 101.0) == 3
    assert _all(bench) == {fresh, waiting, running}
    for job in (completed, cancelled, discarded):
        with pytest.raises(NotFound):
            bench.get(job)
    bench.shift(WEEK)
    assert _prune(bench, 101.0) == 1
    assert _all(bench) == {waiting, running}


def test_a_prune_takes_the_history_and_the_steps_along(bench: Bench) -> None:
    worker = bench.worker()
    bench.enqueue(id="report")
    worker.end(worker.claim_one(), Verb.FAIL)
    held = worker.claim_one()
    worker.record(held, "charge", "1")
    worker.complete(held)
    bench.shift(10.0)
    assert _prune(bench, 5.0) == 1
    assert bench.history("report") == []
    assert bench.do(bench.verbs.recall_step, "report", "charge") is None
    bench.enqueue(id="report")
    assert bench.history("report") == []
    assert bench.do(bench.verbs.recall_step, "report", "charge") is None


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_a_prune_walks_in_small_steps(bench: Bench, limit: int) -> None:
    worker = bench.worker()
    jobs = sorted(bench.enqueue() for _ in range(7))
    over = {jobs[0], jobs[2], jobs[3], jobs[6]}
    for job in over:
        worker.complete(worker.take(job))
    bench.shift(10.0)
    removed = 0
    after: str | None = None
    for _ in range(20):
        step = bench.do(bench.verbs.prune, 5.0, limit=limit, after=after)
        assert step.removed <= limit
        removed, before, after = removed + step.removed, after, step.cursor
        if after is None:
            break
        assert before is None or after > before
    assert (removed, after) == (len(over), None)
    assert _all(bench) == set(jobs) - over


def test_a_prune_step_looks_no_further_than_its_limit(bench: Bench) -> None:
    worker = bench.worker()
    jobs = sorted(bench.enqueue() for _ in range(4))
    for job in jobs:
        worker.complete(worker.take(job))
    bench.shift(10.0)
    step = bench.do(bench.verbs.prune, 5.0, limit=2)
    assert (step.removed, step.cursor) == (2, jobs[1])
    assert _all(bench) == set(jobs[2:])


def test_r3_an_id_that_comes_back_goes_on_above_its_old_generations(bench: Bench) -> None:
    worker = bench.worker()
    bench.enqueue(id="report", named=True)
    for _ in range(4):
        worker.end(worker.claim_one(), Verb.SNOOZE)
    old = worker.claim_one()
    worker.complete(old, '"old"')
    bench.shift(10.0)
    assert _prune(bench, 5.0) == 1
    assert bench.do(bench.verbs.admit).floor >= old.generation
    assert bench.do(bench.verbs.enqueue, [new_job(id="report", named=True)]) == [Enqueued("report", created=True)]
    assert worker.complete(old).verdict == "stale"
    new = worker.claim_one()
    assert new.generation > old.generation
    assert worker.complete(old).verdict == "stale"
    assert worker.complete(new).verdict == "done"


def test_r3_a_named_lease_that_comes_back_goes_on_above_its_old_generations(bench: Bench) -> None:
    worker = bench.worker()
    for _ in range(3):
        worker.end(worker.take("report", create=True), Verb.RELEASE)
    old = worker.take("report")
    worker.complete(old)
    bench.shift(10.0)
    assert _prune(bench, 5.0) == 1
    new = worker.take("report", create=True)
    assert new.generation > old.generation
    assert [answer.verdict for answer in worker.renew(old)] == ["stale"]


def test_r3_the_floor_lies_under_every_claim(bench: Bench) -> None:
    bench.subject.set_floor(1000)
    worker = bench.worker()
    job = bench.enqueue()
    assert worker.claim_one().generation == 1001
    bench.shift(LEASE + 1.0)
    assert worker.claim_one().generation == 1002
    assert worker.take("report", create=True).generation == 1001
    bench.subject.set_floor(2000)
    bench.shift(LEASE + 1.0)
    assert worker.claim_one().generation == 2001
    assert worker.take("report").generation == 2001
    bench.move(Verb.CANCEL, job)
    assert bench.get(job).generation > 2001


def test_a_prune_never_lowers_the_floor(bench: Bench) -> None:
    bench.subject.set_floor(5000)
    worker = bench.worker()
    worker.complete(worker.take("report", create=True))
    bench.subject.set_floor(9000)
    bench.shift(10.0)
    assert _prune(bench, 5.0) == 1
    assert bench.do(bench.verbs.admit).floor == 9000


def test_r44_a_recovery_raises_the_floor_above_anything_issued(bench: Bench) -> None:
    assert bench.do(bench.verbs.admit).raised is False
    worker = bench.worker()
    job = bench.enqueue()
    old = worker.claim_one()
    first = bench.do(bench.verbs.recover)
    assert first.raised
    assert first.floor >= old.generation + FLOOR_STEP
    assert bench.do(bench.verbs.admit).floor == first.floor
    assert worker.complete(old).verdict == "done"
    bench.enqueue()
    new = worker.claim_one()
    assert new.generation == first.floor + 1
    second = bench.do(bench.verbs.recover)
    assert second.floor >= new.generation + FLOOR_STEP
    assert bench.get(job).generation == old.generation


def test_r41_a_floor_is_lifted_to_what_a_destination_has_met(bench: Bench) -> None:
    bench.enqueue()
    lifted = bench.do(bench.verbs.lift_floor, 41)
    assert (lifted.floor, lifted.raised) == (41, True)
    assert bench.worker().claim_one().generation == 42
    for lower in (41, 7):
        again = bench.do(bench.verbs.lift_floor, lower)
        assert (again.floor, again.raised) == (41, False)


def test_r41_whoever_raises_the_floor_logs_it_with_from_to_and_why(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.subject.set_floor(40)
    with caplog.at_level(logging.WARNING, "tenure"):
        for _ in range(2):
            bench.do(bench.verbs.lift_floor, 41)
        bench.do(bench.verbs.recover)
        bench.do(bench.verbs.admit)
    told = [(record.levelname, record.getMessage()) for record in caplog.records if "floor" in record.getMessage()]
    raised = f"generation floor raised: {bench.store.name}: from"
    assert told == [
        ("WARNING", f"{raised} 40 to 41, as a destination has met that generation"),
        ("WARNING", f"{raised} 41 to {41 + FLOOR_STEP}, as an operator asked for it, as after a restore"),
    ]


def test_admission_changes_nothing_on_a_store_that_is_the_same(bench: Bench) -> None:
    bench.subject.set_floor(77)
    for _ in range(3):
        admission = bench.do(bench.verbs.admit)
        assert (admission.floor, admission.raised) == (77, False)


def test_r4_the_largest_generation_is_given_and_none_above_it(bench: Bench) -> None:
    bench.subject.set_floor(MAX_GENERATION - 1)
    worker = bench.worker()
    job = bench.enqueue()
    last = worker.claim_one()
    assert last.generation == MAX_GENERATION
    bench.shift(LEASE + 1.0)
    before = bench.snapshot(job)
    assert worker.claim(5) == []
    with pytest.raises(NotAllowed) as refusal:
        worker.take(job)
    assert (refusal.value.verb, refusal.value.state) == ("claim", "running")
    before.assert_same(bench.snapshot(job))
    assert worker.complete(last).verdict == "done"


def test_r4_a_job_that_is_used_up_does_not_stand_in_the_way(bench: Bench) -> None:
    bench.subject.set_floor(MAX_GENERATION - 1)
    worker = bench.worker()
    used_up = bench.enqueue(priority=100)
    worker.end(worker.claim_one(), Verb.RELEASE)
    job = bench.enqueue()
    assert [one.id for one in worker.claim(1)] == [job]
    with pytest.raises(NotAllowed):
        worker.take(used_up)
    assert bench.get(used_up).state is State.AVAILABLE


def test_r4_above_the_last_floor_nothing_is_claimed(bench: Bench) -> None:
    bench.subject.set_floor(MAX_GENERATION)
    worker = bench.worker()
    job = bench.enqueue()
    assert worker.claim(5) == []
    with pytest.raises(NotAllowed):
        worker.take("report", create=True)
    with pytest.raises(NotFound):
        bench.get("report")
    assert (bench.get(job).state, bench.get(job).generation) == (State.AVAILABLE, 0)


def _prune(bench: Bench, before: float) -> int:
    step = bench.do(bench.verbs.prune, before, limit=1000)
    assert step.cursor is None
    return step.removed


def _all(bench: Bench) -> set[str]:
    return {job.id for job in bench.do(bench.verbs.find, Filter(), limit=1000)}
