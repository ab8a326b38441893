"""The feeder looks for what time has made claimable: when, and what follows from what it finds."""

from __future__ import annotations

import pytest

from tenure.protocol.job import Outlook
from tenure.protocol.lease import SHORTEST
from tenure.protocol.lifecycle import Verb
from tenure.worker.feeder import LOOK, LOOK_WITHOUT_BELL
from tenure.worker.seldom import LONGEST, SHARE
from tests.worker.feeding import FeederBench, outlook


@pytest.fixture
def bench() -> FeederBench:
    return FeederBench()


def test_it_looks_when_the_next_lease_ends(bench: FeederBench) -> None:
    bench.store.script["outlook"] = outlook(soonest=0.75)
    bench.quiet()
    bench.clock.advance(0.5)
    bench.feeder.round()
    assert bench.store.asked == []
    assert bench.feeder._pause() == 0.25
    bench.store.script["outlook"] = outlook(abandoned=True)
    bench.clock.advance(0.25)
    bench.feeder.round()
    assert bench.store.names == ["outlook", "turn"]
    [(_, [wanted])] = bench.turns()
    assert wanted.takeovers


def test_between_two_looks_there_is_a_pause(bench: FeederBench) -> None:
    """What others will have to do soon is no reason to ask a thousand times a second."""
    bench.store.script["outlook"] = outlook(soonest=0.001)
    bench.quiet()
    assert bench.feeder._pause() == pytest.approx(0.01)


@pytest.mark.parametrize(("has_bell", "pause"), [(True, LOOK), (False, LOOK_WITHOUT_BELL)])
def test_it_looks_from_time_to_time_whatever_rings(bench: FeederBench, has_bell: bool, pause: float) -> None:
    bench.feeder.has_bell = has_bell
    bench.store.script["outlook"] = outlook(soonest=600.0)
    bench.quiet()
    bench.clock.advance(pause * 0.75)
    bench.feeder.round()
    assert bench.store.asked == []
    bench.clock.advance(pause * 0.25)
    bench.feeder.round()
    assert bench.store.names == ["outlook"]


def test_no_lease_waits_longer_than_a_second_after_its_end_for_a_look(bench: FeederBench) -> None:
    """The shortest lease, begun by somebody else right after a look that could not know of it."""
    bench.quiet()
    end = bench.clock() + SHORTEST

    def clockwork(_queues: object) -> Outlook:
        left = end - bench.clock()
        return outlook(abandoned=left <= 0, soonest=left if left > 0 else None)

    bench.store.script["outlook"] = clockwork
    while not bench.turns():
        bench.clock.advance(bench.feeder._pause())
        bench.feeder.round()
    assert end <= bench.clock() < end + 1.0


def test_a_look_that_finds_nothing_claims_nothing_and_comes_again() -> None:
    bench = FeederBench(queues=("b", "a"))
    bench.quiet()
    for _ in range(3):
        bench.clock.advance(LOOK)
        bench.feeder.round()
        bench.feeder.round()
    assert bench.store.asked == [("outlook", (["a", "b"],))] * 3


@pytest.mark.parametrize("lost", [False, True], ids=["due", "abandoned"])
def test_a_look_is_followed_by_a_claim_of_what_it_found(bench: FeederBench, lost: bool) -> None:
    bench.quiet()
    bench.store.script["outlook"] = outlook(due=not lost, abandoned=lost)
    bench.clock.advance(LOOK)
    bench.feeder.round()
    bench.feeder.round()
    assert bench.store.names == ["outlook", "turn"]
    [(_, [wanted])] = bench.turns()
    assert wanted.takeovers is lost


def test_a_look_that_others_have_work_for_is_not_repeated_at_once(bench: FeederBench) -> None:
    """What can be claimed now may be of a task that this worker does not have."""
    bench.quiet()
    bench.store.script["outlook"] = outlook(due=True, abandoned=True)
    bench.clock.advance(LOOK)
    for _ in range(3):
        bench.feeder.round()
    assert bench.store.names == ["outlook", "turn"]
    assert bench.feeder._pause() == pytest.approx(LOOK)


def test_a_look_goes_before_what_is_to_be_settled_or_claimed(bench: FeederBench) -> None:
    run = bench.run()
    bench.quiet()
    bench.clock.advance(LOOK)
    bench.finish(run)
    bench.feeder.round()
    bench.clock.advance(LOOK)
    bench.feeder.ring()
    bench.feeder.round()
    assert bench.store.names == ["outlook", "turn"] * 2


def test_the_first_free_slot_of_a_full_worker_goes_to_what_is_abandoned(bench: FeederBench) -> None:
    """Where jobs are long, whatever is due would hold that slot for as long again."""
    bench.quiet()
    runs = [bench.run(f"j{number}") for number in range(3)]
    bench.store.script["outlook"] = outlook(due=True, abandoned=True)
    bench.clock.advance(600.0)
    bench.feeder.ring()
    bench.finish(runs[0])
    bench.feeder.round()
    [(_, [wanted])] = bench.turns()
    assert (wanted.limit, wanted.takeovers) == (1, True)


def test_without_a_free_slot_no_look_is_taken(bench: FeederBench) -> None:
    bench.quiet()
    for number in range(3):
        bench.run(f"j{number}")
    bench.clock.advance(LOOK)
    bench.feeder.round()
    assert bench.store.asked == []


@pytest.mark.parametrize("verb", [Verb.FAIL, Verb.RETRY, Verb.SNOOZE])
def test_it_looks_when_a_job_of_its_own_comes_back(bench: FeederBench, verb: Verb) -> None:
    run = bench.run()
    bench.quiet()
    bench.finish(run, verb, delay=0.5)
    bench.feeder.round()
    assert bench.feeder._pause() == 0.5
    bench.clock.advance(0.5)
    bench.feeder.round()
    assert bench.store.names == ["turn", "outlook"]


class SlowBench(FeederBench):
    """A feeder whose looks take `took` seconds each."""

    def __init__(self, took: float) -> None:
        super().__init__()
        self.took = took
        self.store.script["outlook"] = self._slow

    def _slow(self, _queues: object) -> Outlook:
        self.clock.advance(self.took)
        return outlook()

    def look(self, times: int = 1) -> None:
        """Take looks, each when it is time, and forget them."""
        for _ in range(times):
            self.clock.advance(LONGEST)
            self.feeder.round()
            assert "outlook" in self.store.names
            self.store.asked.clear()


@pytest.mark.parametrize(("took", "pause"), [(0.01, LOOK), (0.2, 0.2 / SHARE), (5.0, LONGEST)])
def test_looks_that_take_long_take_a_small_share_of_the_time(took: float, pause: float) -> None:
    """Under an old transaction the store walks over every job that ran since."""
    bench = SlowBench(took)
    bench.look(3)
    bench.clock.advance(pause - 0.001)
    bench.feeder.round()
    assert bench.store.names == []
    bench.clock.advance(0.002)
    bench.feeder.round()
    assert bench.store.names == ["outlook"]


def test_a_look_that_was_slow_by_chance_delays_no_other() -> None:
    bench = SlowBench(0.0)
    bench.look(3)
    bench.took = 5.0
    bench.look(2)
    bench.clock.advance(LOOK)
    bench.feeder.round()
    assert bench.store.names == ["outlook"]


def test_a_job_that_comes_back_is_not_looked_for_before_slow_looks_are_paid_for() -> None:
    bench = SlowBench(0.2)
    bench.look(3)
    bench.finish(bench.run(), Verb.RETRY, delay=0.1)
    bench.feeder.round()
    bench.store.asked.clear()
    bench.clock.advance(0.2)
    bench.feeder.round()
    assert bench.store.names == []
    bench.clock.advance(0.2 / SHARE)
    bench.feeder.round()
    assert bench.store.names == ["outlook"]
