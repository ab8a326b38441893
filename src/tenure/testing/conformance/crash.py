"""Part: a crash at every point of every verb: nothing is half done, and repeating is safe (R26, R30).

Each scene prepares a job and names one verb. The verb is failed before and after each request that it makes, which must
leave nothing behind; and it is failed after its commit, which must leave all of it, once, however often it is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from tenure.errors import LeaseHeld, OutcomeUnknown, Unavailable
from tenure.protocol.job import Ending, Filter, NewJob, Verdict, WorkerRecord
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import ENDINGS, State, Verb
from tenure.protocol.op import Op
from tenure.testing.conformance.bench import LEASE, Bench, Snapshot, Worker, new_job, token, wanted
from tenure.testing.conformance.tamper import Fault, Tampering

STEP = "charge"
JOB = "the job"
CRASHED = object()


@dataclass(frozen=True, slots=True)
class Scene:
    """A verb about to be run: `once` asserts what its first answer says, `again` what a repeat is answered."""

    verb: Callable[..., Op[Any]]
    args: tuple[Any, ...]
    once: Callable[[Any], None]
    again: Callable[[Any], None]
    held: tuple[Worker, Token] | None = None  # who holds what after the verb, as the store must tell (R28)


@dataclass(frozen=True, slots=True)
class Picture:
    """All that can be seen of a small store."""

    jobs: dict[str, Snapshot]
    step: str | None
    owners: list[str]
    floor: int

    def assert_same(self, other: Picture, *, floor: bool = True) -> None:
        """Assert that nothing was changed in between."""
        assert other.jobs.keys() == self.jobs.keys()
        for job, snapshot in self.jobs.items():
            snapshot.assert_same(other.jobs[job])
        assert (other.step, other.owners) == (self.step, self.owners)
        assert not floor or other.floor == self.floor

    def is_same(self, other: Picture) -> bool:
        """Tell whether nothing was changed in between."""
        try:
            self.assert_same(other)
        except AssertionError:
            return False
        return True


def _enqueue(bench: Bench) -> Scene:
    jobs: list[NewJob] = [new_job(unique_key="k"), new_job()]
    ids = [job.id for job in jobs]
    return Scene(
        bench.verbs.enqueue,
        (jobs,),
        once=lambda answer: _equal([(one.id, one.created) for one in answer], [(job, True) for job in ids]),
        again=lambda answer: _equal([(one.id, one.created) for one in answer], [(job, False) for job in ids]),
    )


def _claim(bench: Bench) -> Scene:
    worker = bench.worker("bob")
    bench.enqueue(id=JOB)
    return Scene(
        bench.verbs.claim,
        (worker.claimer, wanted(5)),
        once=lambda answer: _equal([(one.id, one.generation) for one in answer], [(JOB, 1)]),
        again=lambda answer: _equal(answer, []),
        held=(worker, Token(JOB, 1)),
    )


def _takeover(bench: Bench) -> Scene:
    worker = bench.worker("bob")
    _held(bench)
    bench.shift(LEASE + 1.0)
    return Scene(
        bench.verbs.claim,
        (worker.claimer, wanted(5)),
        once=lambda answer: _equal([(one.id, one.generation) for one in answer], [(JOB, 2)]),
        again=lambda answer: _equal(answer, []),
        held=(worker, Token(JOB, 2)),
    )


def _claim_named(bench: Bench) -> Scene:
    worker = bench.worker("bob")

    def claim(duration: float) -> Op[Any]:
        return bench.verbs.claim_named(worker.claimer, JOB, duration, create=True)

    return Scene(
        claim,
        (LEASE,),
        once=lambda answer: _equal((answer.id, answer.generation), (JOB, 1)),
        again=lambda answer: _equal(type(answer), LeaseHeld),
        held=(worker, Token(JOB, 1)),
    )


def _renew(bench: Bench) -> Scene:
    worker, right = _held(bench)
    bench.shift(10.0)
    return Scene(
        bench.verbs.renew,
        (worker.owner, [right]),
        once=lambda answer: _equal(answer, []),
        again=lambda answer: _equal(answer, []),
        held=(worker, right),
    )


def _settle(verb: Verb) -> Callable[[Bench], Scene]:
    def scene(bench: Bench) -> Scene:
        worker, right = _held(bench)
        return Scene(
            bench.verbs.settle,
            (worker.owner, [Ending(right, verb, result='"r"', reason="because")]),
            once=lambda answer: _equal([one.verdict for one in answer], [Verdict.DONE]),
            again=lambda answer: _equal([one.verdict for one in answer], [Verdict.ALREADY]),
        )

    return scene


def _stale_end(bench: Bench) -> Scene:
    worker, right = _held(bench)
    bench.move(Verb.CANCEL, JOB)

    def stale(answer: Any) -> None:
        _equal([one.verdict for one in answer], [Verdict.STALE])

    return Scene(bench.verbs.settle, (worker.owner, [Ending(right, Verb.COMPLETE)]), once=stale, again=stale)


def _turn(bench: Bench) -> Scene:
    worker, right = _held(bench)
    bench.enqueue(id="the next")
    return Scene(
        bench.verbs.turn,
        (worker.claimer, [Ending(right, Verb.COMPLETE, result='"r"')], [wanted(1)]),
        once=lambda turn: _equal((turn.answers[0].verdict, turn.claimed[0].id), (Verdict.DONE, "the next")),
        again=lambda turn: _equal((turn.answers[0].verdict, turn.claimed), (Verdict.ALREADY, [])),
        held=(worker, Token("the next", 1)),
    )


def _progress(bench: Bench) -> Scene:
    worker, right = _held(bench)

    def done(answer: Any) -> None:
        _equal(answer.verdict, Verdict.DONE)

    return Scene(bench.verbs.progress, (worker.owner, right, '"half"'), once=done, again=done, held=(worker, right))


def _record_step(bench: Bench) -> Scene:
    worker, right = _held(bench)
    return Scene(
        bench.verbs.record_step,
        (worker.owner, right, STEP, "1"),
        once=lambda answer: _equal(answer.verdict, Verdict.DONE),
        again=lambda answer: _equal((answer.verdict, answer.result), (Verdict.ALREADY, "1")),
        held=(worker, right),
    )


def _operate(verb: Verb) -> Callable[[Bench], Scene]:
    def scene(bench: Bench) -> Scene:
        _held(bench)
        if verb is Verb.RETRY:
            bench.move(Verb.DISCARD, JOB)
        return Scene(
            bench.verbs.operate,
            (verb, [JOB], "because"),
            once=lambda answer: _equal([one.moved for one in answer], [True]),
            again=lambda answer: _equal([one.moved for one in answer], [False]),
        )

    return scene


def _prune(bench: Bench) -> Scene:
    worker = bench.worker("ada")
    worker.complete(worker.take("named", create=True))
    bench.shift(10.0)

    def prune(before: float) -> Op[Any]:
        return bench.verbs.prune(before, limit=10)

    return Scene(
        prune,
        (5.0,),
        once=lambda answer: _equal(answer.removed, 1),
        again=lambda answer: _equal(answer.removed, 0),
    )


def _report(bench: Bench) -> Scene:
    record = WorkerRecord("owner", "ada", "host", 1, (), 1, datetime(2030, 1, 1, tzinfo=UTC), seen_ago=0.0, held=0)
    return Scene(bench.verbs.report, (record,), once=_none_wait, again=_none_wait)


def _forget(bench: Bench) -> Scene:
    scene = _report(bench)
    bench.do(scene.verb, *scene.args)
    return Scene(bench.verbs.forget, ("owner",), once=_nothing, again=_nothing)


def _recover(bench: Bench) -> Scene:
    def raised(answer: Any) -> None:
        assert answer.raised

    return Scene(bench.verbs.recover, (), once=raised, again=raised)


def _lift_floor(bench: Bench) -> Scene:
    return Scene(
        bench.verbs.lift_floor,
        (41,),
        once=lambda answer: _equal((answer.floor, answer.raised), (41, True)),
        again=lambda answer: _equal((answer.floor, answer.raised), (41, False)),
    )


def _guard(bench: Bench) -> Scene:
    worker, right = _held(bench)

    def done(answer: Any) -> None:
        _equal(answer.verdict, Verdict.DONE)

    return Scene(bench.verbs.guard, (worker.owner, right), once=done, again=done, held=(worker, right))


def _reading(name: str, *args: Any) -> Callable[[Bench], Scene]:
    def scene(bench: Bench) -> Scene:
        _held(bench)
        return Scene(getattr(bench.verbs, name), args, once=_anything, again=_anything)

    return scene


SCENES: dict[str, Callable[[Bench], Scene]] = {
    "enqueue": _enqueue,
    "claim": _claim,
    "takeover": _takeover,
    "claim_named": _claim_named,
    "renew": _renew,
    **{f"settle {verb}": _settle(verb) for verb in sorted(ENDINGS)},
    "settle stale": _stale_end,
    "turn": _turn,
    "progress": _progress,
    "record_step": _record_step,
    **{f"operate {verb}": _operate(verb) for verb in (Verb.CANCEL, Verb.DISCARD, Verb.RELEASE, Verb.RETRY)},
    "prune": _prune,
    "report": _report,
    "forget": _forget,
    "recover": _recover,
    "lift_floor": _lift_floor,
    "guard": _guard,
    "recall_step": _reading("recall_step", JOB, STEP),
    "held": _reading("held", "nobody"),
    "get": _reading("get", JOB),
    "history": _reading("history", JOB),
    "queues": _reading("queues"),
    "workers": _reading("workers"),
    "admit": _reading("admit"),
}


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
@pytest.mark.parametrize("name", SCENES)
def test_a_crash_before_the_commit_leaves_nothing(own_bench: Bench, name: str, fault: Fault) -> None:
    scene = SCENES[name](own_bench)
    before = _picture(own_bench)
    tampering = Tampering(fault)
    kept = False
    while (answer := _run(own_bench, scene, tampering)) is CRASHED:
        kept = kept or not before.is_same(_picture(own_bench))
        tampering = Tampering(fault, at=tampering.at + 1)
    assert 0 < tampering.seen <= tampering.at
    # Where each request is a transaction, the one that changes the job may stand although a later one was never made.
    assert not (kept and own_bench.subject.one_transaction)
    (scene.again if kept else scene.once)(answer)
    _assert_held(scene)


@pytest.mark.parametrize("name", SCENES)
def test_a_lost_answer_leaves_all_of_it_once(own_bench: Bench, name: str) -> None:
    scene = SCENES[name](own_bench)
    before = _picture(own_bench)
    with pytest.raises(OutcomeUnknown):
        own_bench.tampered(Tampering(Fault.LOST)).do(scene.verb, *scene.args)
    after = _picture(own_bench)
    _assert_generations_rose(before, after)
    _assert_held(scene)
    for _ in range(2):
        scene.again(_run(own_bench, scene, Tampering(Fault.NONE)))
    if name != "settle stale":
        after.assert_same(_picture(own_bench), floor=(name != "recover"))
    _assert_held(scene)


def test_a_lost_claim_is_found_and_given_back(own_bench: Bench) -> None:
    own_bench.enqueue(id=JOB)
    worker = own_bench.worker("ada")
    with pytest.raises(OutcomeUnknown):
        own_bench.tampered(Tampering(Fault.LOST)).do(own_bench.verbs.claim, worker.claimer, wanted(1))
    [lost] = worker.held()
    assert worker.end(lost, Verb.RELEASE).verdict is Verdict.DONE
    new = own_bench.worker("bob").claim_one()
    assert (new.generation, new.attempts, new.takeovers) == (lost.generation + 1, 0, 0)
    assert worker.complete(lost).verdict is Verdict.STALE


def test_a_lost_completion_stays_known_to_its_owner_only(own_bench: Bench) -> None:
    worker, right = _held(own_bench)
    own_bench.shift(LEASE + 1.0)
    ending = [Ending(right, Verb.COMPLETE, result='"first"')]
    with pytest.raises(OutcomeUnknown):
        own_bench.tampered(Tampering(Fault.LOST)).do(own_bench.verbs.settle, worker.owner, ending)
    rival = own_bench.worker("bob")
    assert rival.claim(5) == []
    assert worker.complete(right, '"second"').result == '"first"'
    record = own_bench.get(JOB)
    assert (record.state, record.result, record.generation) == (State.COMPLETED, '"first"', right.generation)


def _run(bench: Bench, scene: Scene, tampering: Tampering) -> Any:
    try:
        return bench.tampered(tampering).do(scene.verb, *scene.args)
    except Unavailable:
        return CRASHED
    except LeaseHeld as refusal:
        return refusal


def _held(bench: Bench) -> tuple[Worker, Token]:
    worker = bench.worker("ada")
    bench.enqueue(id=JOB)
    return worker, token(worker.claim_one())


def _picture(bench: Bench) -> Picture:
    jobs = [job.id for job in bench.do(bench.verbs.find, Filter(), limit=100)]
    return Picture(
        {job: bench.snapshot(job) for job in jobs},
        bench.do(bench.verbs.recall_step, JOB, STEP),
        [worker.owner for worker in bench.do(bench.verbs.workers)],
        bench.do(bench.verbs.admit).floor,
    )


def _assert_held(scene: Scene) -> None:
    if scene.held is not None:
        worker, right = scene.held
        assert worker.held() == [right]


def _assert_generations_rose(before: Picture, after: Picture) -> None:
    assert after.floor >= before.floor
    for job in before.jobs.keys() & after.jobs.keys():
        assert after.jobs[job].record.generation >= before.jobs[job].record.generation


def _equal(one: object, other: object) -> None:
    assert one == other


def _nothing(answer: object) -> None:
    assert answer is None


def _none_wait(answer: object) -> None:
    assert answer == []


def _anything(_answer: object) -> None: ...
