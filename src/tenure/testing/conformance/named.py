"""Part: one job taken by its id: named leases, and tasks that somebody wants now."""

from __future__ import annotations

import pytest

from tenure.errors import LeaseHeld, NotAllowed, NotFound
from tenure.protocol.lifecycle import State, Verb
from tenure.testing.conformance.bench import LATE, LEASE, QUEUE, Bench


def test_a_named_lease_is_made_where_there_is_none(bench: Bench) -> None:
    worker = bench.worker("ada")
    held = worker.take("nightly report", 45.0, create=True)
    assert (held.id, held.generation, held.state, held.task) == ("nightly report", 1, State.RUNNING, None)
    assert held.lease == 45.0
    record = bench.get("nightly report")
    assert (record.task, record.queue, record.arguments, record.worker) == (None, "", "{}", "ada")
    assert (record.max_takeovers, record.max_attempts, record.priority) == (None, None, 0)
    assert record.lease_remaining == pytest.approx(45.0, abs=LATE)
    bench.shift(40.0)
    assert worker.renew(held) == []
    assert bench.get("nightly report").lease_remaining == pytest.approx(45.0, abs=LATE)


def test_a_named_lease_is_refused_to_others_while_it_lives(bench: Bench) -> None:
    worker, rival = bench.worker("ada"), bench.worker("bob")
    held = worker.take("report", 45.0, create=True)
    before = bench.snapshot("report")
    for claimer in (rival, worker):
        with pytest.raises(LeaseHeld) as refusal:
            claimer.take("report", create=True)
        assert (refusal.value.job, refusal.value.holder, refusal.value.generation) == ("report", "ada", held.generation)
        assert refusal.value.remaining == pytest.approx(45.0, abs=LATE)
    before.assert_same(bench.snapshot("report"))


def test_a_named_lease_that_ended_is_taken_over(bench: Bench) -> None:
    old = bench.worker("ada").take("report", 10.0, create=True)
    bench.shift(11.0)
    rival = bench.worker("bob")
    assert rival.claim(5, queues=("", QUEUE), tasks=("", "work")) == []
    new = rival.take("report", 20.0)
    assert (new.generation, new.lost_generation, new.lost_worker) == (old.generation + 1, old.generation, "ada")
    assert new.takeovers == 1
    assert [entry.event for entry in bench.history("report")] == ["takeover"]


def test_a_named_lease_counts_while_it_is_owned(bench: Bench) -> None:
    worker = bench.worker()
    held = worker.take("report", create=True)
    assert [(counts.queue, counts.running) for counts in bench.do(bench.verbs.queues)] == [("", 1)]
    worker.end(held, Verb.RELEASE)
    assert bench.do(bench.verbs.queues) == []


def test_a_released_named_lease_can_be_taken_again(bench: Bench) -> None:
    worker = bench.worker("ada")
    old = worker.take("report", create=True)
    worker.end(old, Verb.RELEASE)
    assert bench.worker().claim(5, queues=("", QUEUE), tasks=("", "work")) == []
    new = bench.worker("bob").take("report")
    assert new.generation == old.generation + 1
    assert (new.lost_generation, new.takeovers) == (None, 0)


def test_a_task_can_be_taken_by_its_id(bench: Bench) -> None:
    job = bench.enqueue(arguments='{"n":1}', priority=-100, max_attempts=3)
    bench.enqueue(priority=100)
    worker = bench.worker()
    held = worker.take(job, 45.0, create=True)
    assert (held.id, held.task, held.arguments, held.max_attempts) == (job, "work", '{"n":1}', 3)
    assert held.lease == 45.0
    bench.shift(40.0)
    assert worker.renew(held) == []
    assert bench.get(job).lease_remaining == pytest.approx(45.0, abs=LATE)


def test_a_job_that_is_not_there_is_not_taken(bench: Bench) -> None:
    with pytest.raises(NotFound):
        bench.worker().take("no such job")
    with pytest.raises(NotFound):
        bench.get("no such job")


def test_a_job_that_is_not_due_is_not_taken(bench: Bench) -> None:
    job = bench.enqueue(delay=60.0)
    before = bench.snapshot(job)
    with pytest.raises(NotAllowed, match="not due") as refusal:
        bench.worker().take(job)
    assert (refusal.value.verb, refusal.value.state) == ("claim", "available")
    before.assert_same(bench.snapshot(job))


@pytest.mark.parametrize("verb", [Verb.COMPLETE, Verb.CANCEL, Verb.DISCARD])
def test_a_job_that_is_over_is_not_taken(bench: Bench, verb: Verb) -> None:
    worker = bench.worker()
    worker.end(worker.take("report", create=True), verb)
    before = bench.snapshot("report")
    with pytest.raises(NotAllowed) as refusal:
        worker.take("report", create=True)
    assert (refusal.value.verb, refusal.value.state) == ("claim", before.record.state)
    before.assert_same(bench.snapshot("report"))


def test_a_poison_job_is_discarded_also_when_taken_by_its_id(bench: Bench) -> None:
    job = bench.enqueue(max_takeovers=1)
    bench.worker("ada").claim_one()
    bench.shift(LEASE + 1.0)
    poison = bench.worker("bob").take(job)
    assert (poison.state, poison.takeovers, poison.lost_worker) == (State.DISCARDED, 1, "ada")
    assert bench.get(job).state is State.DISCARDED
