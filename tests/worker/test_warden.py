"""The warden stops runs whose time is over, by the clock and by nothing else."""

from __future__ import annotations

import pytest

from tenure.errors import LeaseLost
from tenure.protocol.events import Kind
from tenure.protocol.lifecycle import Verb
from tenure.worker.keeper import Keeper
from tenure.worker.run import Run, Runs, Stop
from tenure.worker.warden import Warden
from tests.support.processes import wait_for
from tests.worker.bench import CLAIMER, LEASE, TRUST, VERBS, Clock, IdleExecutor, ScriptedStore, Told, new_run

PATIENCE = 2.0


class Bench:
    def __init__(self) -> None:
        self.clock = Clock()
        self.told = Told()
        self.executor = IdleExecutor()
        self.runs = Runs()
        self.keeper = Keeper(
            ScriptedStore(),
            VERBS,
            CLAIMER.owner,
            on_lost=lambda lease, reason: self.warden.lost(lease, reason),
            emitter=self.told.emitter,
            clock=self.clock,
        )
        self.warden = Warden(
            self.runs,
            self.keeper,
            self.told.emitter,
            patience=PATIENCE,
            crashed=self._never_crashed,
            clock=self.clock,
        )

    def left_behind(self, run: Run) -> bool:
        """Whether nothing settles this run, and nobody takes what the store has of it for a lost claim."""
        return self.runs.get(run.lease.token) is None and not self.runs.never_had([run.lease.token])

    @staticmethod
    def _never_crashed(error: BaseException) -> None:
        raise AssertionError from error

    def run(self, job: str = "j1", generation: int = 1, *, timeout: float | None = None) -> Run:
        run = new_run(self.clock, self.executor, job, generation, timeout=timeout)
        run.begins()
        self.runs.add([run])
        self.keeper.add([run.lease])
        self.warden.watch([run])
        return run


@pytest.fixture
def bench() -> Bench:
    return Bench()


# -- the lease's end


def test_a_run_is_left_alone_while_its_lease_lasts(bench: Bench) -> None:
    run = bench.run()
    bench.clock.advance(LEASE * TRUST - 0.01)
    bench.warden.look()
    assert run.stop is None
    assert bench.executor.stopped == []


def test_r20_a_run_whose_lease_ended_unrenewed_is_stopped_and_settles_nothing(bench: Bench) -> None:
    run = bench.run()
    bench.clock.advance(LEASE * TRUST)
    bench.warden.look()
    assert run.ended
    assert run.obeyed() is None
    assert bench.executor.stopped == [run]
    assert bench.keeper.held() == []
    assert bench.left_behind(run)
    [lost] = bench.told.events
    assert (lost.kind, lost.job, lost.generation) == (Kind.LEASE_LOST, "j1", 1)


def test_a_lease_that_is_not_renewed_is_told_of_once_before_it_ends(bench: Bench) -> None:
    run = bench.run()
    third = LEASE / 3
    assert bench.warden.look() == pytest.approx(bench.clock() + LEASE * TRUST - third)
    bench.clock.advance(LEASE * TRUST - third - 0.01)
    bench.warden.look()
    assert bench.told.events == []
    bench.clock.advance(0.02)
    assert bench.warden.look() == pytest.approx(bench.clock() + third - 0.01)
    bench.warden.look()
    [soon] = bench.told.events
    assert (soon.kind, soon.job, soon.generation) == (Kind.DEADLINE_SOON, "j1", 1)
    assert run.stop is None
    run.job.check()


def test_r19_the_gate_is_closed_before_the_warden_looks(bench: Bench) -> None:
    run = bench.run()
    bench.clock.advance(LEASE * TRUST)
    with pytest.raises(LeaseLost), run.job.effect():
        pytest.fail("an effect started after the lease had ended")


def test_a_renewed_lease_is_watched_to_its_new_end(bench: Bench) -> None:
    run = bench.run()
    bench.clock.advance(20)
    bench.keeper.beat()
    bench.clock.advance(20)
    bench.warden.look()
    assert run.stop is None


def test_what_the_store_says_is_lost_is_stopped_at_once(bench: Bench) -> None:
    run = bench.run()
    bench.warden.lost(run.lease, "generation 2 took over (bea)")
    assert bench.executor.stopped == [run]
    assert run.job.stop_reason == "generation 2 took over (bea)"
    assert run.ended


def test_a_loss_of_an_earlier_generation_does_not_stop_the_later_run(bench: Bench) -> None:
    before = bench.run(generation=1)
    after = bench.run(generation=2)
    bench.warden.lost(before.lease, "generation 2 took over (ada)")
    assert bench.executor.stopped == [before]
    assert after.stop is None
    assert bench.keeper.held() == [after.lease]


# -- the run's own limit


def test_b36_a_run_is_told_at_its_limit_and_ends_as_a_failed_attempt(bench: Bench) -> None:
    run = bench.run(timeout=5.0)
    bench.clock.advance(4.9)
    bench.warden.look()
    assert bench.executor.stopped == []
    bench.clock.advance(0.1)
    bench.warden.look()
    assert run.stop == Stop("it ran longer than its limit of 5 s", Verb.FAIL)
    assert bench.executor.stopped == [run]
    assert bench.told.kinds == [Kind.TIMED_OUT]
    ending = run.obeyed()
    assert ending is not None
    assert (ending.verb, ending.failure and ending.failure.type) == (Verb.FAIL, "TimeLimit")


def test_a_run_past_its_limit_keeps_its_lease_while_it_may_still_obey(bench: Bench) -> None:
    run = bench.run(timeout=5.0)
    bench.clock.advance(5.0)
    bench.warden.look()
    assert bench.keeper.held() == [run.lease]
    assert not run.lease.lost


def test_r25_a_told_run_starts_no_further_effect(bench: Bench) -> None:
    run = bench.run(timeout=5.0)
    bench.clock.advance(5.0)
    bench.warden.look()
    with pytest.raises(LeaseLost, match="longer than its limit"), run.job.effect():
        pytest.fail("an effect started after the limit")


def test_the_limit_is_told_once(bench: Bench) -> None:
    bench.run(timeout=5.0)
    bench.clock.advance(5.0)
    bench.warden.look()
    bench.warden.look()
    assert bench.told.kinds == [Kind.TIMED_OUT]


# -- which reason wins


def test_a_loss_overrules_a_limit_and_settles_nothing(bench: Bench) -> None:
    run = bench.run(timeout=5.0)
    bench.clock.advance(5.0)
    bench.warden.look()
    bench.warden.lost(run.lease, "generation 2 took over (bea)")
    assert run.obeyed() is None
    assert run.ended


def test_a_shutdown_does_not_overrule_a_limit(bench: Bench) -> None:
    run = bench.run(timeout=5.0)
    bench.clock.advance(5.0)
    bench.warden.look()
    bench.warden.tell(run, Stop("the worker is shutting down", Verb.RELEASE))
    ending = run.obeyed()
    assert ending is not None
    assert ending.verb is Verb.FAIL


def test_a_run_that_ended_is_not_told_anything(bench: Bench) -> None:
    run = bench.run(timeout=5.0)
    run.end()
    bench.clock.advance(LEASE)
    bench.warden.look()
    bench.warden.lost(run.lease, "too late")
    assert run.stop is None
    assert bench.told.events == []


# -- patience


def test_b36_a_run_that_does_not_stop_is_left_behind_after_the_patience(bench: Bench) -> None:
    run = bench.run(timeout=5.0)
    bench.clock.advance(5.0)
    bench.warden.look()
    bench.clock.advance(PATIENCE - 0.01)
    bench.warden.look()
    assert bench.executor.abandoned == []
    bench.clock.advance(0.01)
    bench.warden.look()
    assert bench.executor.abandoned == [run]
    assert bench.keeper.held() == []  # the lease lapses: the retry cannot overlap an unfenced first run
    assert run.lease.lost
    assert bench.left_behind(run)


def test_a_run_that_obeyed_keeps_its_end(bench: Bench) -> None:
    run = bench.run(timeout=5.0)
    bench.clock.advance(5.0)
    bench.warden.look()
    assert run.end()  # the handler stopped, and its end waits to be settled
    bench.clock.advance(PATIENCE)
    bench.warden.look()
    assert bench.runs.get(run.lease.token) is run
    assert bench.keeper.held() == [run.lease]


def test_b03_a_run_told_to_stop_for_a_shutdown_is_left_to_the_shutdown(bench: Bench) -> None:
    """Were it left behind for want of patience, nobody would give the job back and its lease would have to lapse."""
    run = bench.run()
    bench.warden.tell(run, Stop("the worker is shutting down", Verb.RELEASE))
    bench.clock.advance(PATIENCE)
    bench.keeper.beat()
    bench.warden.look()
    assert not run.ended
    assert bench.runs.get(run.lease.token) is run
    assert bench.keeper.held() == [run.lease]


def test_a_lost_run_that_does_not_stop_gives_up_its_slot(bench: Bench) -> None:
    run = bench.run()
    bench.warden.lost(run.lease, "generation 2 took over (bea)")
    bench.clock.advance(PATIENCE)
    bench.warden.look()
    assert bench.executor.abandoned == [run]


# -- when it looks


def test_it_looks_again_at_the_first_end_it_knows_of(bench: Bench) -> None:
    bench.run("long")
    bench.run("short", timeout=5.0)
    assert bench.warden.look() == pytest.approx(bench.clock() + 5.0)


def test_a_run_that_ended_and_waits_to_be_settled_is_not_looked_after(bench: Bench) -> None:
    run = bench.run(timeout=5.0)
    run.end()
    bench.clock.advance(LEASE)
    assert bench.warden.look() > bench.clock()


def test_a_run_that_was_told_to_stop_is_looked_after_when_its_lease_ends(bench: Bench) -> None:
    run = bench.run()
    bench.warden.tell(run, Stop("the worker is shutting down", Verb.RELEASE))
    bench.clock.advance(LEASE * TRUST - 0.01)
    assert bench.warden.look() == pytest.approx(run.lease.ends_at)


def test_a_sleeping_warden_is_woken_for_a_run_that_ends_sooner(bench: Bench) -> None:
    bench.warden.start()
    try:
        wait_for(lambda: bench.warden._wake_at > 0, 10.0, "the warden to sleep")
        bench.run(timeout=0.0)
        wait_for(lambda: bench.told.kinds == [Kind.TIMED_OUT], 10.0, "the limit to be noticed")
    finally:
        bench.warden.stop()
