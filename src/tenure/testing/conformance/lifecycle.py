"""Part: generated from the transition table: every state, actor and verb, with the clock on either side of its need.

An allowed move must do what the table says; every other one must refuse and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tenure.errors import NotFound
from tenure.protocol.job import JobRecord, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import TABLE, Actor, Counter, Move, Need, State, Verb, move
from tenure.testing.conformance.bench import LEASE, Bench, Worker

PAIRS = sorted({(step.actor, step.verb) for step in TABLE})
BOUND = 2


@dataclass(frozen=True, slots=True)
class Scene:
    """One job brought to a state, whose last owner was `worker`, under `token`."""

    bench: Bench
    worker: Worker
    token: Token

    @property
    def job(self) -> str:
        """The job's id."""
        return self.token.job


@pytest.mark.parametrize("source", State)
@pytest.mark.parametrize(("actor", "verb"), PAIRS)
def test_the_table_is_kept(bench: Bench, actor: Actor, verb: Verb, source: State) -> None:
    step = move(actor, verb, source)
    # A takeover looks at due jobs too; one that waits for its time shows that it takes nothing that nobody owned.
    scene = _scene(bench, source, avoiding=verb, delay=60.0 if verb is Verb.TAKEOVER else 0.0)
    if step is None:
        _assert_refused(scene, actor, verb)
        return
    _put_clock(scene, step.need)
    _assert_moved(scene, step)


@pytest.mark.parametrize("step", [step for step in TABLE if step.need is not Need.NOTHING], ids=lambda step: step.verb)
def test_a_need_of_time_that_is_not_met_refuses(bench: Bench, step: Move) -> None:
    early = step.need is Need.DUE
    scene = _scene(bench, step.source, avoiding=step.verb, delay=60.0 if early else 0.0)
    bench.shift(LEASE + 1.0 if step.need is Need.LEASE_LIVE else 5.0)
    _assert_refused(scene, step.actor, step.verb)


@pytest.mark.parametrize("step", [step for step in TABLE if step.counts is not None], ids=lambda step: step.verb)
def test_a_counter_at_its_bound_discards(bench: Bench, step: Move) -> None:
    scene = _scene(bench, step.source, avoiding=step.verb, **{f"max_{step.counts}": BOUND})
    for count in range(1, BOUND + 1):
        before = bench.get(scene.job)
        _put_clock(scene, step.need)
        _act(scene, step.actor, step.verb)
        after = bench.get(scene.job)
        assert getattr(after, str(step.counts)) == count
        assert after.state is (State.DISCARDED if count == BOUND else step.target)
        assert after.generation == before.generation + step.raises
        if after.state is State.AVAILABLE:
            scene = Scene(bench, scene.worker, _claim(scene.worker))
        elif after.state is State.RUNNING:
            scene = Scene(bench, scene.worker, Token(scene.job, after.generation))


def _scene(bench: Bench, state: State, *, avoiding: Verb, delay: float = 0.0, **fields: int) -> Scene:
    """Bring a job to `state` along a way whose last owner's verb is not `avoiding`: no end shall be a repeated one."""
    worker = bench.worker()
    bench.enqueue(**fields)
    held = _claim(worker)
    back = Verb.SNOOZE if avoiding is Verb.RELEASE or delay else Verb.RELEASE
    if state is State.COMPLETED:
        worker.complete(held)
    elif state is not State.RUNNING:
        worker.end(held, back, delay=delay)
    if state is State.CANCELLED:
        bench.move(Verb.CANCEL, held.job)
    elif state is State.DISCARDED:
        bench.move(Verb.DISCARD, held.job)
    assert bench.get(held.job).state is state
    return Scene(bench, worker, held)


def _claim(worker: Worker) -> Token:
    claimed = worker.claim_one()
    return Token(claimed.id, claimed.generation)


def _put_clock(scene: Scene, need: Need) -> None:
    scene.bench.shift(LEASE + 1.0 if need is Need.LEASE_ENDED else 5.0)


def _assert_moved(scene: Scene, step: Move) -> None:
    before = scene.bench.get(scene.job)
    assert _act(scene, step.actor, step.verb)
    if step.target is None:
        with pytest.raises(NotFound):
            scene.bench.get(scene.job)
        return
    after = scene.bench.get(scene.job)
    assert after.state is step.target
    assert after.generation == before.generation + step.raises
    for counter in Counter:
        assert getattr(after, counter) == _expected_count(before, step, counter)
    assert (after.lease_remaining is not None) == (after.state is State.RUNNING)


def _expected_count(before: JobRecord, step: Move, counter: Counter) -> int:
    count: int = getattr(before, counter)
    return 0 if step.restarts else count + (step.counts is counter)


def _assert_refused(scene: Scene, actor: Actor, verb: Verb) -> None:
    before = scene.bench.snapshot(scene.job)
    repeats = before.record.ended is verb and before.record.state is State.COMPLETED
    assert not _act(scene, actor, verb) or repeats
    after = scene.bench.snapshot(scene.job)
    before.assert_same_job(after)
    told = [entry.event for entry in after.history[len(before.history) :]]
    refused_write = actor is Actor.OWNER and verb not in {Verb.RENEW, Verb.EXTEND} and not repeats
    assert told == ([f"stale {verb} refused"] if refused_write else [])


def _act(scene: Scene, actor: Actor, verb: Verb) -> bool:
    """Act, and tell whether the store said that it was done (or that it had been)."""
    return _ACTORS[actor](scene, verb)


def _as_claimer(scene: Scene, verb: Verb) -> bool:
    rival = scene.bench.worker("rival")
    looks = verb is Verb.TAKEOVER
    return bool(rival.claim(takeovers=looks))


def _as_owner(scene: Scene, verb: Verb) -> bool:
    worker, held = scene.worker, scene.token
    if verb is Verb.RENEW:
        return not worker.renew(held)
    if verb is Verb.EXTEND:
        return not worker.renew(held, duration=90.0)
    if verb is Verb.PROGRESS:
        return worker.progress(held, "1").verdict is Verdict.DONE
    if verb is Verb.STEP:
        return worker.record(held, "step", "1").verdict is Verdict.DONE
    return worker.end(held, verb).verdict in {Verdict.DONE, Verdict.ALREADY}


def _as_operator(scene: Scene, verb: Verb) -> bool:
    if verb is Verb.PRUNE:
        return scene.bench.do(scene.bench.verbs.prune, 0.0, limit=10).removed == 1
    [moved] = scene.bench.operate(verb, scene.job)
    return moved.moved


_ACTORS: dict[Actor, Callable[[Scene, Verb], bool]] = {
    Actor.CLAIMER: _as_claimer,
    Actor.OWNER: _as_owner,
    Actor.OPERATOR: _as_operator,
}
