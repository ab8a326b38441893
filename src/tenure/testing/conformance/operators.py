"""Part: what operators do to jobs from outside, and what that does to owners."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure.errors import Misuse
from tenure.protocol.job import Moved, Verdict
from tenure.protocol.lifecycle import ENDINGS, FINAL, TABLE, Actor, State, Verb, move
from tenure.testing.conformance.bench import Bench, new_job

TAKING_AWAY = (Verb.CANCEL, Verb.DISCARD, Verb.RELEASE)
OPERABLE = frozenset(step.verb for step in TABLE if step.actor is Actor.OPERATOR and step.target is not None)


@pytest.mark.parametrize("verb", TAKING_AWAY)
def test_r2_taking_a_job_away_makes_its_owner_stale_at_once(bench: Bench, verb: Verb) -> None:
    job = bench.enqueue()
    worker = bench.worker("ada")
    held = worker.claim_one()
    assert bench.operate(verb, job, reason="wrong order") == [Moved(job, moved=True, state=State.RUNNING)]
    record = bench.get(job)
    step = move(Actor.OPERATOR, verb, State.RUNNING)
    assert step is not None
    assert (record.state, record.generation) == (step.target, held.generation + 1)
    assert (record.lease_remaining, record.reason, record.ended) == (None, "wrong order", verb)
    assert (record.finished_at is not None) == (step.target in FINAL)
    before = bench.snapshot(job)
    assert [answer.verdict for answer in worker.renew(held)] == [Verdict.STALE]
    assert worker.progress(held, "1").verdict is Verdict.STALE
    assert worker.record(held, "step", "1").verdict is Verdict.STALE
    for late in sorted(ENDINGS):
        answer = worker.end(held, late, result='"late"')
        assert (answer.verdict, answer.state, answer.generation) == (Verdict.STALE, step.target, held.generation + 1)
    before.assert_same_job(bench.snapshot(job))
    assert worker.held() == []


@pytest.mark.parametrize("verb", [Verb.CANCEL, Verb.DISCARD])
def test_a_waiting_job_is_put_aside(bench: Bench, verb: Verb) -> None:
    job = bench.enqueue()
    scheduled = bench.enqueue(delay=60.0)
    assert bench.operate(verb, job, scheduled, reason="not needed") == [
        Moved(job, moved=True, state=State.AVAILABLE),
        Moved(scheduled, moved=True, state=State.AVAILABLE),
    ]
    record = bench.get(job)
    assert (record.generation, record.reason, record.ended) == (0, "not needed", None)
    assert record.finished_at is not None
    bench.shift(61.0)
    assert bench.worker().claim(5) == []


def test_an_operator_does_not_hide_how_the_last_run_ended(bench: Bench) -> None:
    job = bench.enqueue()
    worker = bench.worker()
    held = worker.claim_one()
    worker.end(held, Verb.FAIL)
    bench.move(Verb.CANCEL, job)
    assert bench.get(job).ended is Verb.FAIL
    assert worker.end(held, Verb.FAIL).verdict is Verdict.ALREADY
    assert worker.end(held, Verb.CANCEL).verdict is Verdict.STALE


def test_a_released_job_is_claimed_above_its_old_owner(bench: Bench) -> None:
    job = bench.enqueue()
    old = bench.worker("ada").claim_one()
    bench.move(Verb.RELEASE, job)
    record = bench.get(job)
    assert (record.state, record.attempts, record.takeovers) == (State.AVAILABLE, 0, 0)
    assert abs(record.run_at - record.now) < timedelta(seconds=5)
    new = bench.worker("bob").claim_one()
    assert new.generation > old.generation + 1
    assert new.lost_generation is None


@pytest.mark.parametrize("put_aside", [Verb.CANCEL, Verb.DISCARD])
def test_a_retry_starts_over_and_goes_on_counting_generations(bench: Bench, put_aside: Verb) -> None:
    job = bench.enqueue(max_attempts=5)
    worker = bench.worker()
    worker.end(worker.claim_one(), Verb.FAIL)
    old = worker.claim_one()
    bench.shift(31.0)
    old = worker.claim_one()
    assert (old.attempts, old.takeovers) == (1, 1)
    worker.end(old, put_aside)
    bench.shift(60.0)
    assert bench.operate(Verb.RETRY, job) == [Moved(job, moved=True, state=move_target(put_aside))]
    record = bench.get(job)
    assert (record.state, record.attempts, record.takeovers) == (State.AVAILABLE, 0, 0)
    assert (record.finished_at, record.result) == (None, None)
    assert abs(record.run_at - record.now) < timedelta(seconds=5)
    new = worker.claim_one()
    assert (new.id, new.generation, new.attempts) == (job, old.generation + 1, 0)
    assert worker.complete(old).verdict is Verdict.STALE


def test_dead_letters_can_be_retried_again_and_again(bench: Bench) -> None:
    job = bench.enqueue(max_attempts=1, max_takeovers=1)
    worker = bench.worker()
    for generation in (1, 2, 3):
        held = worker.claim_one()
        assert held.generation == generation
        worker.end(held, Verb.FAIL)
        assert bench.get(job).state is State.DISCARDED
        bench.move(Verb.RETRY, job)


def test_a_retry_yields_to_the_job_that_has_its_unique_key(bench: Bench) -> None:
    job = bench.enqueue(unique_key="k")
    bench.move(Verb.DISCARD, job)
    other = bench.enqueue(unique_key="k")
    before = bench.snapshot(job)
    assert bench.operate(Verb.RETRY, job) == [Moved(job, moved=False, state=State.DISCARDED)]
    before.assert_same(bench.snapshot(job))
    bench.move(Verb.CANCEL, other)
    bench.move(Verb.RETRY, job)
    [met] = bench.do(bench.verbs.enqueue, [new_job(unique_key="k")])
    assert (met.id, met.created) == (job, False)


def test_two_jobs_with_one_unique_key_are_not_both_retried(bench: Bench) -> None:
    jobs = []
    for _ in range(2):
        jobs.append(bench.enqueue(unique_key="k"))
        bench.move(Verb.CANCEL, jobs[-1])
    moved = bench.operate(Verb.RETRY, *jobs)
    assert [one.id for one in moved] == jobs
    assert sorted(one.moved for one in moved) == [False, True]
    assert sorted(str(bench.get(job).state) for job in jobs) == ["available", "cancelled"]


def test_every_job_is_answered_in_order(bench: Bench) -> None:
    waiting, over = bench.enqueue(), bench.enqueue()
    running = bench.enqueue(priority=5)
    worker = bench.worker()
    worker.claim_one()
    worker.complete(worker.take(over))
    assert bench.operate(Verb.CANCEL, over, "no such job", running, waiting) == [
        Moved(over, moved=False, state=State.COMPLETED),
        Moved("no such job", moved=False, state=None),
        Moved(running, moved=True, state=State.RUNNING),
        Moved(waiting, moved=True, state=State.AVAILABLE),
    ]
    assert bench.history("no such job") == []


def test_an_operators_moves_are_told_in_the_history(bench: Bench) -> None:
    job = bench.enqueue()
    bench.worker("ada").claim_one()
    bench.operate(Verb.RELEASE, job, reason="moving house")
    bench.operate(Verb.CANCEL, job, reason="not needed")
    bench.operate(Verb.CANCEL, job, reason="twice")
    bench.operate(Verb.RETRY, job)
    assert [(entry.generation, entry.event, entry.reason) for entry in bench.history(job)] == [
        (1, "release", "moving house"),
        (2, "cancel", "not needed"),
        (2, "retry", None),
    ]
    assert bench.history(job)[0].worker == "ada"


@pytest.mark.parametrize("verb", sorted(set(Verb) - OPERABLE))
def test_what_is_no_operators_verb_is_a_misuse(bench: Bench, verb: Verb) -> None:
    job = bench.enqueue()
    before = bench.snapshot(job)
    with pytest.raises(Misuse, match=verb):
        bench.operate(verb, job)
    before.assert_same(bench.snapshot(job))


def move_target(verb: Verb) -> State | None:
    """Name the state to which an owner's `verb` brings a running job."""
    step = move(Actor.OWNER, verb, State.RUNNING)
    return step.target if step is not None else None
