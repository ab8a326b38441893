"""Part: how runs end, what a repeated end is answered, what a refused one leaves in the history."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure.errors import Misuse
from tenure.protocol.job import Ending, Failure, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import ENDINGS, FINAL, State, Verb, ending
from tenure.testing.conformance.bench import LEASE, Bench, token

WITH_DELAY = (Verb.FAIL, Verb.RETRY, Verb.SNOOZE)
FAILURE = Failure("ValueError", "shop/orders.py:12", "no such order: 'ä'", 'Traceback:\n  line 12\n    "x"')


@pytest.mark.parametrize("verb", sorted(ENDINGS))
def test_an_end_does_what_the_table_says(bench: Bench, verb: Verb) -> None:
    job = bench.enqueue(max_attempts=5)
    worker = bench.worker("ada")
    held = worker.claim_one()
    bench.shift(3.0)
    answer = worker.end(held, verb, result='"r"', reason="because", failure=FAILURE)
    assert (answer.token, answer.verdict) == (token(held), Verdict.DONE)
    record = bench.get(job)
    assert record.state is ending(verb).target
    assert (record.generation, record.worker, record.lease_remaining) == (held.generation, "ada", None)
    assert (record.ended, record.takeovers) == (verb, 0)
    assert record.ended_at is not None
    assert abs(record.ended_at - record.now) < timedelta(seconds=5)
    assert record.attempts == (1 if ending(verb).counts else 0)
    assert record.finished_at == (record.ended_at if record.state in FINAL else None)
    completes = verb is Verb.COMPLETE
    assert record.result == ('"r"' if completes else None)
    if not completes:
        assert (record.reason, record.failure) == ("because", FAILURE)


@pytest.mark.parametrize("verb", sorted(ENDINGS - {Verb.COMPLETE}))
def test_an_end_other_than_complete_is_told_in_the_history(bench: Bench, verb: Verb) -> None:
    job = bench.enqueue()
    worker = bench.worker("ada")
    held = worker.claim_one()
    worker.end(held, verb, reason="because", failure=FAILURE)
    [entry] = bench.history(job)
    assert (entry.job, entry.generation, entry.event, entry.worker) == (job, held.generation, verb, "ada")
    assert (entry.reason, entry.failure) == ("because", FAILURE)
    assert entry.at == bench.get(job).ended_at


def test_r5_of_many_completed_at_once_each_needs_owner_and_generation(bench: Bench) -> None:
    jobs = sorted(bench.enqueue() for _ in range(4))
    ada, bob = bench.worker("ada"), bench.worker("bob")
    for held in ada.claim(4):
        ada.end(held, Verb.RELEASE)
    mine, (yours,) = ada.claim(3), bob.claim(1)
    older = Token(mine[1].id, mine[1].generation - 1)
    ends = [Ending(one, Verb.COMPLETE, result=f'"{one.job}"') for one in (token(mine[0]), older, token(mine[2]))]
    ends.append(Ending(token(yours), Verb.COMPLETE, result='"stolen"'))
    for verdicts in ([Verdict.DONE, Verdict.STALE] * 2, [Verdict.ALREADY, Verdict.STALE] * 2):
        assert [answer.verdict for answer in bench.do(bench.verbs.settle, ada.owner, ends)] == verdicts
    records = {job: bench.get(job) for job in jobs}
    done = {mine[0].id, mine[2].id}
    assert {job: record.result for job, record in records.items()} == {
        job: f'"{job}"' if job in done else None for job in jobs
    }
    assert {job for job, record in records.items() if record.state is State.RUNNING} == {*jobs} - done
    for job in done:
        assert (records[job].ended, records[job].finished_at) == (Verb.COMPLETE, records[job].ended_at)


def test_an_uneventful_life_has_no_history(bench: Bench) -> None:
    job = bench.enqueue()
    worker = bench.worker()
    held = worker.claim_one()
    worker.renew(held)
    worker.progress(held, "1")
    worker.record(held, "step", "1")
    worker.complete(held)
    assert bench.history(job) == []


@pytest.mark.parametrize("verb", WITH_DELAY)
def test_an_end_brings_the_job_back_after_its_delay(bench: Bench, verb: Verb) -> None:
    job = bench.enqueue()
    worker = bench.worker()
    worker.end(worker.claim_one(), verb, delay=60.0)
    record = bench.get(job)
    assert record.ended_at is not None
    assert abs(record.run_at - record.ended_at - timedelta(seconds=60)) <= timedelta(milliseconds=2)
    bench.shift(55.0)
    assert worker.claim() == []
    bench.shift(6.0)
    assert worker.claim_one().id == job


def test_a_release_brings_the_job_back_at_once(bench: Bench) -> None:
    job = bench.enqueue()
    worker = bench.worker()
    worker.end(worker.claim_one(), Verb.RELEASE, delay=60.0)
    assert bench.get(job).run_at == bench.get(job).ended_at
    assert bench.worker("bob").claim_one().id == job


def test_a_job_returns_in_the_order_of_its_new_time(bench: Bench) -> None:
    first = bench.enqueue(run_at=bench.store.now() - timedelta(seconds=99))
    second = bench.enqueue(run_at=bench.store.now() - timedelta(seconds=50))
    worker = bench.worker()
    worker.end(worker.claim_one(), Verb.SNOOZE)
    bench.shift(1.0)
    assert [one.id for one in worker.claim(2)] == [second, first]


def test_a_completion_forgets_what_failed_before(bench: Bench) -> None:
    job = bench.enqueue()
    worker = bench.worker()
    worker.end(worker.claim_one(), Verb.FAIL, reason="because", failure=FAILURE)
    assert bench.get(job).failure == FAILURE
    worker.complete(worker.claim_one(), "7")
    record = bench.get(job)
    assert (record.state, record.result, record.reason, record.failure) == (State.COMPLETED, "7", None, None)
    assert (record.attempts, record.ended) == (1, Verb.COMPLETE)


# -- attempts


@pytest.mark.parametrize("verb", [Verb.FAIL, Verb.RETRY])
def test_the_last_attempt_discards(bench: Bench, verb: Verb) -> None:
    job = bench.enqueue(max_attempts=3)
    worker = bench.worker("ada")
    for attempt in (1, 2):
        worker.end(worker.claim_one(), verb, failure=FAILURE)
        assert (bench.get(job).state, bench.get(job).attempts) == (State.AVAILABLE, attempt)
    last = worker.claim_one()
    assert last.attempts == 2
    assert worker.end(last, verb, failure=FAILURE, delay=5.0).verdict is Verdict.DONE
    record = bench.get(job)
    assert (record.state, record.attempts, record.ended) == (State.DISCARDED, 3, verb)
    assert (record.reason, record.failure) == ("attempts used up", FAILURE)
    assert record.finished_at == record.ended_at
    assert [(entry.generation, entry.event) for entry in bench.history(job)] == [(1, verb), (2, verb), (3, verb)]
    assert bench.history(job)[-1].reason == "attempts used up"
    bench.shift(60.0)
    assert worker.claim() == []
    assert worker.end(last, verb).verdict is Verdict.ALREADY


def test_the_last_attempt_keeps_a_reason_of_its_own(bench: Bench) -> None:
    job = bench.enqueue(max_attempts=1)
    worker = bench.worker()
    worker.end(worker.claim_one(), Verb.FAIL, reason="no such order")
    assert (bench.get(job).state, bench.get(job).reason) == (State.DISCARDED, "no such order")


def test_without_a_bound_no_attempt_is_the_last(bench: Bench) -> None:
    job = bench.enqueue()
    worker = bench.worker()
    for attempt in range(1, 8):
        worker.end(worker.claim_one(), Verb.FAIL)
        assert (bench.get(job).state, bench.get(job).attempts) == (State.AVAILABLE, attempt)


@pytest.mark.parametrize("verb", [Verb.SNOOZE, Verb.RELEASE])
def test_a_return_that_is_no_failure_burns_no_attempt(bench: Bench, verb: Verb) -> None:
    job = bench.enqueue(max_attempts=1)
    worker = bench.worker()
    for _ in range(3):
        worker.end(worker.claim_one(), verb)
    assert (bench.get(job).state, bench.get(job).attempts) == (State.AVAILABLE, 0)


def test_takeovers_and_attempts_are_counted_apart(bench: Bench) -> None:
    job = bench.enqueue(max_attempts=2, max_takeovers=2)
    worker = bench.worker()
    worker.claim_one()
    bench.shift(LEASE + 1.0)
    worker.end(worker.claim_one(), Verb.FAIL)
    record = bench.get(job)
    assert (record.state, record.attempts, record.takeovers) == (State.AVAILABLE, 1, 1)


# -- the same end again


@pytest.mark.parametrize("verb", sorted(ENDINGS))
def test_r7_a_repeated_end_is_answered_already(bench: Bench, verb: Verb) -> None:
    job = bench.enqueue()
    worker = bench.worker()
    held = worker.claim_one()
    assert worker.end(held, verb, result='"first"', reason="first").verdict is Verdict.DONE
    before = bench.snapshot(job)
    for _ in range(2):
        answer = worker.end(held, verb, result='"second"', reason="second", delay=60.0)
        assert (answer.token, answer.verdict) == (token(held), Verdict.ALREADY)
        assert answer.result == ('"first"' if verb is Verb.COMPLETE else None)
        bench.shift(1.0)
    before.assert_same(bench.snapshot(job))


@pytest.mark.parametrize("verb", sorted(ENDINGS))
def test_another_end_after_the_end_is_stale(bench: Bench, verb: Verb) -> None:
    job = bench.enqueue()
    worker = bench.worker()
    held = worker.claim_one()
    worker.end(held, verb, result='"first"')
    before = bench.snapshot(job)
    others = sorted(ENDINGS - {verb})
    for other in others:
        answer = worker.end(held, other, result='"second"')
        assert (answer.verdict, answer.ended, answer.state) == (Verdict.STALE, verb, before.record.state)
    after = bench.snapshot(job)
    before.assert_same_job(after)
    told = [(entry.generation, entry.event) for entry in after.history[len(before.history) :]]
    assert told == [(held.generation, f"stale {other} refused") for other in others]


@pytest.mark.parametrize("verb", [Verb.FAIL, Verb.RETRY, Verb.SNOOZE, Verb.RELEASE])
def test_r7_an_end_of_the_run_before_is_not_this_runs(bench: Bench, verb: Verb) -> None:
    job = bench.enqueue()
    worker, rival = bench.worker("ada"), bench.worker("bob")
    old = worker.claim_one()
    worker.end(old, verb)
    new = rival.claim_one()
    before = bench.snapshot(job)
    assert worker.end(new, verb).verdict is Verdict.STALE
    assert worker.end(old, verb).verdict is Verdict.STALE
    before.assert_same_job(bench.snapshot(job))
    assert rival.end(new, verb).verdict is Verdict.DONE


def test_r7_a_repeated_completion_stays_known_after_a_takeover_elsewhere(bench: Bench) -> None:
    bench.enqueue()
    worker = bench.worker("ada")
    zombie = worker.claim_one()
    bench.shift(LEASE + 1.0)
    rival = bench.worker("bob")
    held = rival.claim_one()
    rival.complete(held, '"bob"')
    assert worker.complete(zombie, '"ada"').verdict is Verdict.STALE
    assert (rival.complete(held).verdict, rival.complete(held).result) == (Verdict.ALREADY, '"bob"')


# -- refusals


def test_a_refused_end_is_told_under_the_generation_that_was_held(bench: Bench) -> None:
    job = bench.enqueue()
    worker = bench.worker("ada")
    old = worker.claim_one()
    bench.shift(LEASE + 1.0)
    new = bench.worker("bob").claim_one()
    answer = worker.complete(old)
    assert (answer.verdict, answer.state, answer.generation) == (Verdict.STALE, State.RUNNING, new.generation)
    assert answer.worker == "bob"
    assert [(entry.generation, entry.event, entry.worker) for entry in bench.history(job)] == [
        (old.generation, "takeover", "ada"),
        (old.generation, "stale complete refused", "ada"),
    ]


def test_d1_an_ending_that_confirms_counts_only_without_a_completion(bench: Bench) -> None:
    """A run that has completed its job in a transaction of its own says so at its end, in case that did not commit."""
    worker = bench.worker()
    first, second = bench.enqueue(max_attempts=9), bench.enqueue(max_attempts=9)
    held = {one.id: one for one in worker.claim(2)}
    worker.complete(held[first], "7")
    answer = worker.end(held[first], Verb.FAIL, reason="it did not commit", confirms=True)
    assert (answer.verdict, answer.result) == (Verdict.ALREADY, "7")
    assert worker.end(held[first], Verb.FAIL, reason="a plain one").verdict is Verdict.STALE
    assert worker.end(held[second], Verb.FAIL, reason="it did not commit", confirms=True).verdict is Verdict.DONE
    assert bench.get(first).state is State.COMPLETED
    assert (bench.get(second).state, bench.get(second).attempts) == (State.AVAILABLE, 1)


def test_refused_progress_and_steps_are_told_and_renewals_are_not(bench: Bench) -> None:
    job = bench.enqueue()
    held = bench.worker().claim_one()
    rival = bench.worker("bob")
    rival.renew(held)
    rival.progress(held, "1")
    rival.record(held, "step", "1")
    told = [(entry.generation, entry.event) for entry in bench.history(job)]
    assert told == [(held.generation, "stale progress refused"), (held.generation, "stale step refused")]


def test_an_end_of_a_job_that_is_not_there_is_stale(bench: Bench) -> None:
    answer = bench.worker().complete(Token("no such job", 1))
    assert (answer.verdict, answer.state, answer.generation, answer.worker) == (Verdict.STALE, None, None, None)
    assert bench.history("no such job") == []


def test_ends_are_settled_each_for_itself_and_answered_in_order(bench: Bench) -> None:
    for _ in range(4):
        bench.enqueue(max_attempts=1)
    worker = bench.worker()
    one, two, three, four = worker.claim(4)
    worker.complete(three, '"three"')
    endings = [
        Ending(token(four), Verb.FAIL, reason="broken"),
        Ending(Token("no such job", 1), Verb.COMPLETE),
        Ending(token(three), Verb.COMPLETE),
        Ending(Token(two.id, two.generation + 5), Verb.CANCEL),
        Ending(token(one), Verb.COMPLETE, result='"one"'),
        Ending(token(two), Verb.SNOOZE, delay=9.0),
    ]
    answers = bench.do(bench.verbs.settle, worker.owner, endings)
    assert [answer.token for answer in answers] == [ending.token for ending in endings]
    assert [str(answer.verdict) for answer in answers] == ["done", "stale", "already", "stale", "done", "done"]
    states = [str(bench.get(held.id).state) for held in (one, two, three, four)]
    assert states == ["completed", "available", "completed", "discarded"]
    assert bench.get(one.id).result == '"one"'
    assert answers[2].result == '"three"'


def test_many_ends_are_settled_at_once(bench: Bench) -> None:
    for _ in range(120):
        bench.enqueue()
    worker = bench.worker()
    held = worker.claim(120)
    endings = [Ending(token(one), Verb.COMPLETE, result=str(number)) for number, one in enumerate(held)]
    answers = bench.do(bench.verbs.settle, worker.owner, endings)
    assert [(answer.token, str(answer.verdict)) for answer in answers] == [(token(one), "done") for one in held]
    assert [bench.get(one.id).result for one in held[:3]] == ["0", "1", "2"]


@pytest.mark.parametrize("verb", sorted(set(Verb) - ENDINGS))
def test_what_ends_no_run_is_a_misuse(bench: Bench, verb: Verb) -> None:
    job = bench.enqueue()
    worker = bench.worker()
    held = worker.claim_one()
    before = bench.snapshot(job)
    with pytest.raises(Misuse, match=verb):
        worker.end(held, verb)
    before.assert_same(bench.snapshot(job))
