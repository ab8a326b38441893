"""Part: claims, takeovers, renewals, late and stale writes. Rules R1 to R9 by name."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tenure.protocol.job import Claimed, Ending, Head, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import ENDINGS, State, Verb
from tenure.testing.conformance.bench import LATE, LEASE, QUEUE, Bench, Worker, token

PAST = LEASE + 1.0


# -- claiming


def test_r1_a_claim_gives_one_owner_a_lease_and_a_generation(bench: Bench) -> None:
    job = bench.enqueue(lease=12.0)
    before = bench.store.now()
    held = bench.worker("ada").claim_one()
    assert (held.id, held.generation, held.state) == (job, 1, State.RUNNING)
    assert bench.worker("bob").claim() == []
    record = bench.get(job)
    assert (record.state, record.generation, record.worker, record.attempts) == (State.RUNNING, 1, "ada", 0)
    assert record.lease_remaining == pytest.approx(12.0, abs=LATE)
    assert record.claimed_at is not None
    assert record.claimed_at >= before - timedelta(milliseconds=2)


def test_a_claim_goes_by_priority_then_queue_then_time_then_id(bench: Bench) -> None:
    now = bench.store.now()
    late, early = now - timedelta(seconds=10), now - timedelta(seconds=20)
    low = bench.enqueue(id="1", priority=-5, run_at=early)
    second_queue = bench.enqueue(id="2", queue="a", run_at=early)
    second_id = bench.enqueue(id="4", queue="b", run_at=late)
    first_id = bench.enqueue(id="3", queue="b", run_at=late, task="other")
    first_time = bench.enqueue(id="5", queue="b", run_at=early)
    high = bench.enqueue(id="6", queue="a", priority=5, run_at=late)
    worker = bench.worker()
    claimed = [worker.claim(1, queues=("b", "a", QUEUE), tasks=("work", "other")) for _ in range(6)]
    assert [one.id for [one] in claimed] == [high, first_time, first_id, second_id, second_queue, low]


def test_a_limited_claim_takes_the_first_in_order(bench: Bench) -> None:
    now = bench.store.now()
    jobs = [bench.enqueue(priority=priority, run_at=now - timedelta(seconds=9)) for priority in (1, 3, 2)]
    worker = bench.worker()
    assert [worker.claim_one().id for _ in jobs] == [jobs[1], jobs[2], jobs[0]]


def test_a_claim_keeps_to_its_queues_and_tasks(bench: Bench) -> None:
    job = bench.enqueue(queue="mail", task="send")
    worker, rival = bench.worker("ada"), bench.worker("bob")
    assert worker.claim(tasks=("send",)) == []
    assert worker.claim(queues=("mail",)) == []
    assert [one.id for one in worker.claim(queues=("mail",), tasks=("send",))] == [job]
    bench.shift(PAST)
    assert rival.claim(tasks=("send",)) == []
    assert rival.claim(queues=("mail",)) == []
    assert [one.id for one in rival.claim(queues=("mail",), tasks=("send",))] == [job]


def test_a_claim_that_knows_the_head_of_a_line_finds_all_that_stands_behind_it(bench: Bench) -> None:
    now = bench.store.now()
    late, head, early = now - timedelta(seconds=10), now - timedelta(seconds=20), now - timedelta(seconds=30)
    before = bench.enqueue(run_at=early)
    behind = [bench.enqueue(run_at=at) for at in (head, late)]
    elsewhere = [bench.enqueue(run_at=early, priority=5), bench.enqueue(run_at=early, queue="mail")]
    worker, queues, head_ms = bench.worker(), (QUEUE, "mail"), round(head.timestamp() * 1000 - 0.5)
    found = [one.id for one in worker.claim(4, queues=queues, heads=(Head(QUEUE, 0, head_ms),))]
    found += [one.id for one in worker.claim(9, queues=queues, heads=(Head(QUEUE, 0, head_ms),))]
    assert {*found} - {before} == {*behind, *elsewhere}
    assert [one.id for one in worker.claim(9, queues=queues)] == [job for job in [before] if job not in found]


def test_known_lines_hide_no_other_and_overtake_none(bench: Bench) -> None:
    """Also those whose priority lies above, below and between what is known, in every queue."""
    now, lines = bench.store.now(), ((QUEUE, 5), (QUEUE, 0), ("mail", -7), ("gone", 1))
    known = tuple(Head(*line, round(now.timestamp() * 1000) - 60_000) for line in lines)
    jobs = {
        (queue, priority): bench.enqueue(run_at=now - timedelta(seconds=1), priority=priority, queue=queue)
        for queue in (QUEUE, "mail")
        for priority in (-2147483648, -7, -3, 0, 2, 5, 9, 2147483647)
    }
    claimed = bench.worker().claim(99, queues=(QUEUE, "mail"), heads=known)
    order = sorted(jobs, key=lambda line: (-line[1], line[0] != QUEUE))
    assert [one.id for one in claimed] == [jobs[line] for line in order]


def test_a_job_is_claimed_once_it_is_due(bench: Bench) -> None:
    job = bench.enqueue(delay=60.0, priority=100)
    soon = bench.enqueue(delay=30.0)
    worker = bench.worker()
    bench.shift(29.0)
    assert worker.claim(5) == []
    bench.shift(2.0)
    assert [one.id for one in worker.claim(5)] == [soon]
    bench.shift(30.0)
    assert [one.id for one in worker.claim(5, takeovers=False)] == [job]


def test_a_live_lease_is_nobody_elses(bench: Bench) -> None:
    job = bench.enqueue()
    worker, rival = bench.worker("ada"), bench.worker("bob")
    held = worker.claim_one()
    bench.shift(LEASE - 2.0)
    before = bench.snapshot(job)
    assert rival.claim(5) == []
    assert worker.claim(5) == []
    before.assert_same(bench.snapshot(job))
    assert worker.complete(held).verdict is Verdict.DONE


@pytest.mark.parametrize("limit", [1, 3, 7, 10])
def test_r9_a_claim_never_exceeds_its_limit(bench: Bench, limit: int) -> None:
    abandoned = {bench.enqueue() for _ in range(3)} | {bench.enqueue(max_takeovers=1) for _ in range(2)}
    bench.worker("lost").claim(5)
    bench.shift(PAST)
    due = {bench.enqueue() for _ in range(5)}
    claimed = [one.id for one in bench.worker().claim(limit)]
    assert len(claimed) == len(set(claimed)) == limit
    assert len(abandoned & set(claimed)) == min(limit, 5)
    assert len(due & set(claimed)) == limit - min(limit, 5)


# -- takeovers


def test_r2_an_ended_lease_is_taken_over_under_a_higher_generation(bench: Bench) -> None:
    job = bench.enqueue()
    old = bench.worker("ada").claim_one()
    bench.shift(PAST)
    new = bench.worker("bob").claim_one()
    assert (new.id, new.state, new.attempts, new.takeovers) == (job, State.RUNNING, 0, 1)
    assert new.generation == old.generation + 1
    assert (new.lost_generation, new.lost_worker) == (old.generation, "ada")
    record = bench.get(job)
    assert (record.worker, record.takeovers, record.ended, record.finished_at) == ("bob", 1, Verb.TAKEOVER, None)
    assert record.ended_at is not None
    assert record.lease_remaining == pytest.approx(LEASE, abs=LATE)
    [entry] = bench.history(job)
    assert (entry.job, entry.generation, entry.event, entry.worker) == (job, old.generation, "takeover", "ada")
    assert abs(entry.at - record.now) < timedelta(seconds=5)


def test_a_takeover_by_the_same_owner_has_a_generation_of_its_own(bench: Bench) -> None:
    bench.enqueue()
    worker = bench.worker()
    old = worker.claim_one()
    bench.shift(PAST)
    new = worker.claim_one()
    assert (new.generation, new.lost_generation) == (old.generation + 1, old.generation)


def test_a_claim_that_does_not_look_takes_nothing_over(bench: Bench) -> None:
    job = bench.enqueue()
    bench.worker("ada").claim_one()
    bench.shift(PAST)
    rival = bench.worker("bob")
    assert rival.claim(5, takeovers=False) == []
    assert [one.id for one in rival.claim(5)] == [job]


def test_abandoned_jobs_come_before_due_ones_in_the_order_they_were_lost(bench: Bench) -> None:
    last = bench.enqueue(lease=20.0, priority=1)
    first = bench.enqueue(lease=10.0)
    bench.worker("lost").claim(2)
    due = bench.enqueue(priority=100)
    bench.shift(21.0)
    worker = bench.worker()
    assert [worker.claim_one().id for _ in range(3)] == [first, last, due]


def test_a_claim_after_an_ordinary_end_has_lost_nobody(bench: Bench) -> None:
    job = bench.enqueue()
    bench.worker("ada").claim_one()
    bench.shift(PAST)
    worker = bench.worker("bob")
    worker.end(worker.claim_one(), Verb.FAIL, reason="why")
    again = worker.claim_one()
    assert (again.lost_generation, again.lost_worker, again.takeovers, again.attempts) == (None, None, 1, 1)
    record = bench.get(job)
    assert (record.lost_generation, record.lost_worker) == (None, None)
    assert (record.ended, record.reason) == (Verb.FAIL, "why")


def test_a_poison_job_is_discarded_and_its_last_owner_is_stale(bench: Bench) -> None:
    job = bench.enqueue(max_takeovers=2)
    worker = bench.worker("ada")
    worker.claim_one()
    bench.shift(PAST)
    second = worker.claim_one()
    assert (second.state, second.takeovers) == (State.RUNNING, 1)
    bench.shift(PAST)
    poison = bench.worker("bob").claim_one()
    assert (poison.id, poison.state, poison.takeovers) == (job, State.DISCARDED, 2)
    assert poison.generation > second.generation
    assert (poison.lost_generation, poison.lost_worker) == (second.generation, "ada")
    record = bench.get(job)
    assert (record.state, record.ended, record.generation) == (State.DISCARDED, Verb.TAKEOVER, poison.generation)
    assert (record.lease_remaining, record.takeovers) == (None, 2)
    assert record.finished_at is not None
    assert record.reason is not None
    assert record.reason.startswith("worker lost 2")
    assert [(entry.generation, entry.event) for entry in bench.history(job)] == [(1, "takeover"), (2, "takeover")]
    _assert_powerless(bench, worker, second)
    assert bench.worker().claim(5) == []


def test_without_a_bound_no_takeover_is_too_many(bench: Bench) -> None:
    bench.enqueue()
    worker = bench.worker()
    for takeovers in range(6):
        held = worker.claim_one()
        assert (held.state, held.takeovers, held.generation) == (State.RUNNING, takeovers, takeovers + 1)
        bench.shift(PAST)


# -- renewing


def test_a_renewal_prolongs_by_the_leases_own_length(bench: Bench) -> None:
    bench.enqueue(lease=20.0)
    worker = bench.worker()
    held = worker.claim_one()
    for _ in range(5):
        bench.shift(15.0)
        assert worker.renew(held) == []
        assert bench.get(held.id).lease_remaining == pytest.approx(20.0, abs=LATE)
    assert bench.worker("bob").claim() == []
    bench.shift(21.0)
    assert len(bench.worker("bob").claim()) == 1


def test_an_extension_prolongs_by_the_seconds_asked_for(bench: Bench) -> None:
    bench.enqueue()
    worker = bench.worker()
    held = worker.claim_one()
    assert worker.renew(held, duration=300.0) == []
    assert bench.get(held.id).lease_remaining == pytest.approx(300.0, abs=LATE)
    for shorter in (None, 1.0):  # its holder may believe in the longer end already (R13)
        assert worker.renew(held, duration=shorter) == []
        assert bench.get(held.id).lease_remaining == pytest.approx(300.0, abs=LATE)
    bench.shift(290.0)
    assert bench.worker("bob").claim() == []
    assert worker.renew(held) == []
    assert bench.get(held.id).lease_remaining == pytest.approx(LEASE, abs=LATE)


def test_r6_a_renewal_is_refused_once_the_lease_has_ended(bench: Bench) -> None:
    bench.enqueue()
    worker = bench.worker("ada")
    held = worker.claim_one()
    bench.shift(PAST)
    before = bench.snapshot(held.id)
    [answer] = worker.renew(held)
    assert (answer.token, answer.verdict) == (token(held), Verdict.STALE)
    assert (answer.state, answer.generation, answer.worker) == (State.RUNNING, held.generation, "ada")
    [extension] = worker.renew(held, duration=600.0)
    assert extension.verdict is Verdict.STALE
    before.assert_same(bench.snapshot(held.id))
    assert bench.worker("bob").claim_one().id == held.id


def test_a_renewal_answers_only_for_what_it_refused(bench: Bench) -> None:
    for _ in range(3):
        bench.enqueue()
    worker, rival = bench.worker("ada"), bench.worker("bob")
    first, second, third = worker.claim(3)
    other = Token(third.id, third.generation + 1)
    missing = Token("no such job", 1)
    worker.complete(second)
    bench.shift(LEASE - 5.0)
    refused = worker.renew(first, second, other, missing)
    assert {(answer.token, answer.verdict) for answer in refused} == {
        (token(second), Verdict.STALE),
        (other, Verdict.STALE),
        (missing, Verdict.STALE),
    }
    assert len(refused) == 3
    [nobody] = [answer for answer in refused if answer.token == missing]
    assert (nobody.state, nobody.generation, nobody.worker) == (None, None, None)
    bench.shift(10.0)
    assert [one.id for one in rival.claim(5)] == [third.id]
    assert worker.renew(first) == []


def test_r5_a_renewal_needs_owner_and_generation(bench: Bench) -> None:
    job = bench.enqueue()
    worker, rival = bench.worker("ada"), bench.worker("bob")
    held = worker.claim_one()
    bench.shift(5.0)
    before = bench.snapshot(job)
    assert [answer.verdict for answer in rival.renew(held)] == [Verdict.STALE]
    assert [answer.verdict for answer in worker.renew(Token(job, held.generation - 1))] == [Verdict.STALE]
    assert [answer.verdict for answer in worker.renew(Token(job, held.generation + 1))] == [Verdict.STALE]
    before.assert_same(bench.snapshot(job))


# -- late and stale writes


def test_r6_a_late_end_stands_while_nobody_else_has_claimed(bench: Bench) -> None:
    job = bench.enqueue()
    worker = bench.worker()
    held = worker.claim_one()
    bench.shift(10 * PAST)
    assert worker.progress(held, "99").verdict is Verdict.DONE
    assert worker.record(held, "step", "1").verdict is Verdict.DONE
    assert worker.complete(held, "42").verdict is Verdict.DONE
    record = bench.get(job)
    assert (record.state, record.result, record.progress) == (State.COMPLETED, "42", "99")
    assert bench.worker("bob").claim() == []


def test_r5_after_a_takeover_the_old_owner_changes_nothing(bench: Bench) -> None:
    bench.enqueue()
    zombie = bench.worker("ada")
    old = zombie.claim_one()
    bench.shift(PAST)
    bench.worker("bob").claim_one()
    _assert_powerless(bench, zombie, old)


def test_r5_an_older_generation_of_the_same_owner_changes_nothing(bench: Bench) -> None:
    bench.enqueue()
    worker = bench.worker()
    old = worker.claim_one()
    bench.shift(PAST)
    new = worker.claim_one()
    _assert_powerless(bench, worker, old)
    assert worker.complete(new).verdict is Verdict.DONE


def test_r5_the_right_generation_in_wrong_hands_changes_nothing(bench: Bench) -> None:
    bench.enqueue()
    worker = bench.worker("ada")
    held = worker.claim_one()
    _assert_powerless(bench, bench.worker("bob"), held)
    assert worker.complete(held).verdict is Verdict.DONE


def test_r5_a_generation_not_yet_given_changes_nothing(bench: Bench) -> None:
    job = bench.enqueue()
    worker = bench.worker()
    _assert_powerless(bench, worker, Token(job, 0))
    held = worker.claim_one()
    _assert_powerless(bench, worker, Token(job, held.generation + 1))


def test_r5_two_generations_of_one_job_are_answered_apart(bench: Bench) -> None:
    # A worker may take over its own job while its first run is still going, and renews or ends both in one call.
    bench.enqueue()
    worker = bench.worker()
    old = worker.claim_one()
    bench.shift(PAST)
    new = worker.claim_one()
    for held in ((old, new), (new, old)):
        assert [(answer.token, answer.verdict) for answer in worker.renew(*held)] == [(token(old), Verdict.STALE)]
        assert worker.renew(new) == []
    endings = [
        Ending(token(old), Verb.COMPLETE, result='"old"'),
        Ending(token(new), Verb.COMPLETE, result='"new"'),
        Ending(token(old), Verb.FAIL),
    ]
    answers = bench.do(bench.verbs.settle, worker.owner, endings)
    assert [answer.verdict for answer in answers] == [Verdict.STALE, Verdict.DONE, Verdict.STALE]
    assert bench.get(old.id).result == '"new"'


@pytest.mark.parametrize("way_back", sorted(ENDINGS - {Verb.COMPLETE, Verb.CANCEL, Verb.DISCARD}))
def test_r3_generations_rise_over_every_way_back(bench: Bench, way_back: Verb) -> None:
    bench.enqueue()
    worker = bench.worker()
    old = worker.claim_one()
    worker.end(old, way_back)
    new = worker.claim_one()
    assert new.generation == old.generation + 1
    _assert_powerless(bench, worker, old)


def _assert_powerless(bench: Bench, worker: Worker, held: Claimed | Token) -> None:
    """Assert that no write of `worker` under this token changes the job."""
    right = token(held)
    before = bench.snapshot(right.job)
    assert [answer.verdict for answer in worker.renew(right)] == [Verdict.STALE]
    assert [answer.verdict for answer in worker.renew(right, duration=900.0)] == [Verdict.STALE]
    assert worker.progress(right, '"zombie"').verdict is Verdict.STALE
    assert worker.record(right, "zombie", '"zombie"').verdict is Verdict.STALE
    assert bench.do(bench.verbs.recall_step, right.job, "zombie") is None
    for verb in sorted(ENDINGS):
        answer = worker.end(right, verb, result='"zombie"', reason="zombie")
        assert (answer.verdict, answer.generation) == (Verdict.STALE, before.record.generation), verb
        assert (answer.state, answer.worker) == (before.record.state, before.record.worker), verb
    before.assert_same_job(bench.snapshot(right.job))
