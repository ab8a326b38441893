"""Part: verbs inside the caller's own open transaction: they happen with it or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tenure.errors import LeaseHeld, Misuse, NotFound
from tenure.protocol.job import Ending, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import State, Verb
from tenure.store.contract import Driver
from tenure.testing.conformance.bench import LEASE, Bench, new_job, token, wanted


class Undone(Exception):
    """Raised by a caller that changes its mind."""


def test_an_enqueue_happens_with_the_callers_transaction(caller_bench: Bench) -> None:
    job = new_job()
    with caller_bench.transaction() as driver:
        [stored] = driver.do(caller_bench.verbs.enqueue, [job])
        assert stored.created
        assert driver.do(caller_bench.verbs.get, job.id).state is State.AVAILABLE
    assert caller_bench.get(job.id).state is State.AVAILABLE


def test_an_enqueue_goes_with_the_callers_transaction(caller_bench: Bench) -> None:
    job = new_job(unique_key="k")
    with pytest.raises(Undone):
        _change_of_mind(caller_bench, lambda driver: driver.do(caller_bench.verbs.enqueue, [job]))
    with pytest.raises(NotFound):
        caller_bench.get(job.id)
    assert caller_bench.worker().claim(5) == []
    assert caller_bench.enqueue(unique_key="k") != job.id


def test_several_verbs_are_one_transaction(caller_bench: Bench) -> None:
    job = caller_bench.enqueue(max_attempts=1)
    worker = caller_bench.worker()
    held = worker.claim_one()
    worker.record(held, "before", "1")
    before = caller_bench.snapshot(job)
    verbs = caller_bench.verbs

    def work(driver: Driver) -> None:
        driver.do(verbs.renew, worker.owner, [token(held)], 900.0)
        driver.do(verbs.progress, worker.owner, token(held), '"half"')
        driver.do(verbs.record_step, worker.owner, token(held), "undone", "1")
        driver.do(verbs.settle, worker.owner, [Ending(token(held), Verb.FAIL, reason="x")])
        driver.do(verbs.operate, Verb.RETRY, [job])
        [again] = driver.do(verbs.claim, worker.claimer, wanted())
        assert again.generation == held.generation + 1
        driver.do(verbs.settle, worker.owner, [Ending(token(again), Verb.COMPLETE)])
        driver.do(verbs.prune, 0.0, limit=10)
        driver.do(verbs.recover)

    with pytest.raises(Undone):
        _change_of_mind(caller_bench, work)
    before.assert_same(caller_bench.snapshot(job))
    assert caller_bench.do(verbs.admit).floor == 0
    assert caller_bench.do(verbs.recall_step, job, "before") == "1"
    assert caller_bench.do(verbs.recall_step, job, "undone") is None
    assert worker.complete(held).verdict == "done"


def test_a_completion_and_the_callers_work_are_one(caller_bench: Bench) -> None:
    caller_bench.enqueue()
    worker = caller_bench.worker()
    held = worker.claim_one()
    following = new_job()
    with caller_bench.transaction() as driver:
        [answer] = driver.do(caller_bench.verbs.settle, worker.owner, [Ending(token(held), Verb.COMPLETE)])
        assert answer.verdict == "done"
        driver.do(caller_bench.verbs.enqueue, [following])
    assert caller_bench.get(held.id).state is State.COMPLETED
    assert caller_bench.get(following.id).state is State.AVAILABLE


def test_d1_a_guard_makes_an_effect_and_the_right_to_it_one(caller_bench: Bench) -> None:
    caller_bench.enqueue()
    worker, verbs = caller_bench.worker(), caller_bench.verbs
    held = worker.claim_one()
    effect = new_job()
    with caller_bench.transaction() as driver:
        assert driver.do(verbs.guard, worker.owner, token(held)).verdict is Verdict.DONE
        driver.do(verbs.enqueue, [effect])
        [answer] = driver.do(verbs.settle, worker.owner, [Ending(token(held), Verb.COMPLETE, result="7")])
        assert answer.verdict is Verdict.DONE
    assert caller_bench.get(effect.id).state is State.AVAILABLE
    assert caller_bench.get(held.id).result == "7"


def test_d1_a_guard_refuses_whoever_has_been_taken_over(caller_bench: Bench) -> None:
    caller_bench.enqueue()
    first, second = caller_bench.worker("ada"), caller_bench.worker("bob")
    old = first.claim_one()
    caller_bench.shift(LEASE + 1)
    new = second.claim_one()
    with caller_bench.transaction() as driver:
        answer = driver.do(caller_bench.verbs.guard, first.owner, token(old))
        assert (answer.verdict, answer.generation, answer.worker) == (Verdict.STALE, new.generation, "bob")
        assert driver.do(caller_bench.verbs.guard, first.owner, token(new)).verdict is Verdict.STALE
        assert driver.do(caller_bench.verbs.guard, second.owner, token(old)).verdict is Verdict.STALE
        assert driver.do(caller_bench.verbs.guard, second.owner, token(new)).verdict is Verdict.DONE
        assert driver.do(caller_bench.verbs.guard, second.owner, Token("no such job", 1)).state is None


def test_a_refusal_leaves_the_callers_transaction_usable(caller_bench: Bench) -> None:
    job = new_job()
    caller_bench.worker("ada").take("report", create=True)
    rival = caller_bench.worker("bob")
    verbs = caller_bench.verbs
    with caller_bench.transaction() as driver:
        driver.do(verbs.enqueue, [job])
        with pytest.raises(LeaseHeld):
            driver.do(verbs.claim_named, rival.claimer, "report", 30.0, create=True)
        with pytest.raises(NotFound):
            driver.do(verbs.get, "no such job")
    assert caller_bench.get(job.id).state is State.AVAILABLE
    assert caller_bench.get("report").worker == "ada"


def test_a_verb_that_raises_has_changed_nothing(caller_bench: Bench) -> None:
    caller_bench.enqueue()
    worker = caller_bench.worker()
    held = worker.claim_one()
    endings = [Ending(token(held), Verb.COMPLETE), Ending(token(held), Verb.CLAIM)]
    with caller_bench.transaction() as driver, pytest.raises(Misuse):
        driver.do(caller_bench.verbs.settle, worker.owner, endings)
    assert caller_bench.get(held.id).state is State.RUNNING


def test_only_a_connection_of_the_stores_kind_can_be_joined(caller_bench: Bench) -> None:
    for stranger in (None, "connection", object()):
        with pytest.raises(Misuse):
            caller_bench.store.join(stranger)
        with pytest.raises(Misuse):
            caller_bench.store.ajoin(stranger)


def _change_of_mind(bench: Bench, work: Callable[[Driver], object]) -> None:
    with bench.transaction() as driver:
        work(driver)
        raise Undone
