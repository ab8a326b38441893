"""Part: what owners hold and leave behind: progress, steps, a feeder's turns, reports of workers."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.protocol.job import Ending, Foremost, Verdict, WorkerRecord
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import State, Verb
from tenure.testing.conformance.bench import LATE, LEASE, QUEUE, Bench, Worker, token, wanted

PAST = LEASE + 1.0


def test_r28_the_store_tells_what_an_owner_holds(bench: Bench) -> None:
    jobs = [bench.enqueue() for _ in range(4)]
    worker, rival = bench.worker("ada"), bench.worker("bob")
    mine, yours = worker.claim(3), rival.claim(1)
    worker.complete(mine[0])
    assert {one.job for one in worker.held()} < set(jobs)
    assert sorted(worker.held(), key=str) == sorted((token(one) for one in mine[1:]), key=str)
    assert rival.held() == [token(yours[0])]
    bench.shift(PAST)
    assert len(worker.held()) == 2
    taken = bench.worker("eve").claim(2)
    assert {one.id for one in taken} | {one.job for one in [*worker.held(), *rival.held()]} == {
        one.id for one in [*mine[1:], *yours]
    }
    assert bench.worker().held() == []


def test_progress_belongs_to_the_owner(bench: Bench) -> None:
    job = bench.enqueue()
    worker, rival = bench.worker("ada"), bench.worker("bob")
    held = worker.claim_one()
    answer = worker.progress(held, '{"page":1}')
    assert (answer.token, answer.verdict) == (token(held), Verdict.DONE)
    worker.progress(held, '{"page":2}')
    stale = rival.progress(held, '{"page":3}')
    assert (stale.verdict, stale.generation, stale.worker) == (Verdict.STALE, held.generation, "ada")
    assert bench.get(job).progress == '{"page":2}'
    assert rival.progress(Token("no such job", 1), "1").state is None
    bench.shift(PAST)
    rival.claim_one()
    assert bench.get(job).progress == '{"page":2}'


def test_a_steps_first_result_stays(bench: Bench) -> None:
    job = bench.enqueue()
    worker = bench.worker("ada")
    held = worker.claim_one()
    assert bench.do(bench.verbs.recall_step, job, "charge") is None
    assert worker.record(held, "charge", '"first"').verdict is Verdict.DONE
    again = worker.record(held, "charge", '"second"')
    assert (again.verdict, again.result) == (Verdict.ALREADY, '"first"')
    assert worker.record(held, "mail", '"sent"').verdict is Verdict.DONE
    bench.shift(PAST)
    rival = bench.worker("bob")
    new = rival.claim_one()
    assert worker.record(held, "late", '"zombie"').verdict is Verdict.STALE
    assert worker.record(held, "charge", '"zombie"').verdict is Verdict.STALE
    assert rival.record(new, "charge", '"third"').result == '"first"'
    assert bench.do(bench.verbs.recall_step, job, "charge") == '"first"'
    assert bench.do(bench.verbs.recall_step, job, "mail") == '"sent"'
    assert bench.do(bench.verbs.recall_step, job, "late") is None


def test_steps_of_two_jobs_are_two(bench: Bench) -> None:
    bench.enqueue()
    bench.enqueue()
    worker = bench.worker()
    one, other = worker.claim(2)
    worker.record(one, "charge", "1")
    assert bench.do(bench.verbs.recall_step, other.id, "charge") is None
    assert worker.record(other, "charge", "2").verdict is Verdict.DONE
    assert bench.do(bench.verbs.recall_step, one.id, "charge") == "1"


def test_a_turn_settles_and_claims(bench: Bench) -> None:
    jobs = [bench.enqueue() for _ in range(5)]
    worker = bench.worker()
    turn = bench.do(bench.verbs.turn, worker.claimer, [], [wanted(2)])
    assert (turn.answers, [one.id for one in turn.claimed]) == ([], jobs[:2])
    first, second = turn.claimed
    endings = [
        Ending(token(first), Verb.COMPLETE, result="1"),
        Ending(Token(second.id, second.generation + 1), Verb.COMPLETE, result="2"),
    ]
    turn = bench.do(bench.verbs.turn, worker.claimer, endings, [wanted(1)])
    assert [answer.verdict for answer in turn.answers] == [Verdict.DONE, Verdict.STALE]
    assert [one.id for one in turn.claimed] == jobs[2:3]
    assert (bench.get(first.id).result, bench.get(second.id).state) == ("1", State.RUNNING)
    turn = bench.do(bench.verbs.turn, worker.claimer, [Ending(token(second), Verb.RELEASE)], [])
    assert ([answer.verdict for answer in turn.answers], turn.claimed) == ([Verdict.DONE], [])
    assert bench.get(second.id).state is State.AVAILABLE


def test_a_turn_claims_for_each_want(bench: Bench) -> None:
    fast, slow = bench.enqueue(task="fast"), bench.enqueue(task="slow")
    bench.enqueue(task="slow", delay=9.0)
    wants = [wanted(1, tasks=("slow",)), wanted(3, tasks=("fast",), takeovers=False)]
    turn = bench.do(bench.verbs.turn, bench.worker().claimer, [], wants)
    assert [one.id for one in turn.claimed] == [slow, fast]


def test_the_outlook_tells_what_time_will_make_claimable(bench: Bench) -> None:
    worker = bench.worker("ada")
    assert _outlook(bench) == (False, False, None)
    job = bench.enqueue(delay=50.0, priority=3, lease=20.0)
    assert _outlook(bench) == (False, False, pytest.approx(50.0, abs=LATE))
    bench.enqueue(delay=60.0)
    assert _outlook(bench) == (False, False, pytest.approx(50.0, abs=LATE))
    assert _outlook(bench, "other") == (False, False, None)
    bench.shift(55.0)
    assert _outlook(bench) == (True, False, pytest.approx(5.0, abs=LATE))
    held = worker.claim_one()
    assert held.id == job
    assert _outlook(bench) == (False, False, pytest.approx(5.0, abs=LATE))
    bench.shift(10.0)
    worker.complete(worker.claim_one())
    assert _outlook(bench) == (False, False, pytest.approx(10.0, abs=LATE))
    worker.renew(held)
    assert _outlook(bench) == (False, False, pytest.approx(20.0, abs=LATE))
    bench.shift(21.0)
    assert _outlook(bench) == (False, True, None)
    worker.complete(bench.worker("bob").claim_one())
    bench.move(Verb.CANCEL, job)
    assert _outlook(bench) == (False, False, None)


def test_the_outlook_tells_what_is_due_and_abandoned_now_and_what_comes_after_that(bench: Bench) -> None:
    bench.enqueue()
    bench.enqueue(task="of others")
    bench.enqueue(delay=40.0)
    held = bench.worker("ada").take(bench.enqueue(lease=20.0), 20.0)
    bench.shift(30.0)
    assert _outlook(bench) == (True, True, pytest.approx(10.0, abs=LATE))
    assert bench.get(held.id).phase == "expired"


def test_the_outlook_asks_for_queues_and_not_for_tasks_and_changes_nothing(bench: Bench) -> None:
    before = bench.snapshot(bench.enqueue(delay=30.0))
    bench.enqueue(queue="other", task="of others", priority=-5)
    bench.enqueue(queue="other", delay=5.0, priority=5)
    assert _outlook(bench, "other") == (True, False, pytest.approx(5.0, abs=LATE))
    assert _outlook(bench, QUEUE, "other") == (True, False, pytest.approx(5.0, abs=LATE))
    assert _outlook(bench, QUEUE) == (False, False, pytest.approx(30.0, abs=LATE))
    bench.snapshot(before.record.id).assert_same(before)


def _outlook(bench: Bench, *queues: str) -> tuple[Any, ...]:
    outlook = bench.do(bench.verbs.outlook, queues or (QUEUE,))
    return outlook.due, outlook.abandoned, outlook.soonest


def test_workers_are_listed_with_what_they_hold(bench: Bench) -> None:
    worker, idle = bench.worker("ada"), bench.worker("bob")
    for one in (idle, worker):
        _report(bench, one)
        bench.shift(20.0)
    _report(bench, idle)
    bench.enqueue()
    worker.claim_one()
    bench.shift(5.0)
    listed = bench.do(bench.verbs.workers)
    assert [(one.owner, one.name, one.held) for one in listed] == [(idle.owner, "bob", 0), (worker.owner, "ada", 1)]
    assert [(one.host, one.pid, one.queues, one.slots) for one in listed] == [("host", 42, ("a", "b"), 8)] * 2
    assert [one.seen_ago for one in listed] == pytest.approx([5.0, 25.0], abs=LATE)
    bench.do(bench.verbs.forget, worker.owner)
    assert [one.owner for one in bench.do(bench.verbs.workers)] == [idle.owner]


def test_a_report_is_answered_with_what_has_been_due_longest(bench: Bench) -> None:
    worker = bench.worker("ada")
    assert _report(bench, worker) == []
    bench.enqueue(queue="elsewhere")
    bench.enqueue(queue="a", delay=60.0)
    assert _report(bench, worker) == []
    bench.enqueue(queue="a", task="first")
    bench.shift(10.0)
    bench.enqueue(queue="a", task="second")
    bench.enqueue(queue="a", task="urgent", priority=7)
    bench.enqueue(queue="b", task="first")
    bench.shift(5.0)
    told = sorted(_report(bench, worker), key=lambda one: (one.queue, one.task))
    assert [(one.queue, one.task) for one in told] == [("a", "first"), ("a", "urgent"), ("b", "first")]
    assert [one.due_for for one in told] == pytest.approx([15.0, 5.0, 5.0], abs=LATE)
    assert len(worker.claim(2, queues=("a",), tasks=("first", "urgent"))) == 2
    assert {(one.queue, one.task) for one in _report(bench, worker)} == {("a", "second"), ("b", "first")}


def _report(bench: Bench, worker: Worker) -> list[Foremost]:
    started = bench.store.now()
    record = WorkerRecord(worker.owner, worker.name, "host", 42, ("a", "b"), 8, started, seen_ago=99.0, held=99)
    return bench.do(bench.verbs.report, record)
