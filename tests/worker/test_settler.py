"""Many completions are settled beside the claim, where a store does two things at once; all else is the feeder's."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from tenure.errors import OutcomeUnknown, Unavailable
from tenure.protocol.events import Kind
from tenure.protocol.job import Answer, Ending, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.worker.settler import MANY
from tests.support.processes import wait_for
from tests.worker.bench import ScriptedStore, quiet_turn
from tests.worker.feeding import FeederBench

SLOTS = 3 * MANY


def all_done(_owner: str, endings: Sequence[Ending]) -> list[Answer]:
    return [Answer(ending.token, Verdict.DONE) for ending in endings]


class Held:
    """A store that answers when it is let."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()

    def __call__(self, owner: str, endings: Sequence[Ending]) -> list[Answer]:
        self.asked.set()
        assert self.go.wait(10.0)
        return all_done(owner, endings)


class SettlerBench(FeederBench):
    """A feeder with a settler, whose threads the test starts; by itself it would claim `MANY` at a time at least."""

    def __init__(self) -> None:
        self.beside = ScriptedStore()
        self.beside.script["settle"] = all_done
        super().__init__(slots=SLOTS, beside=self.beside)
        self.feeder._pace.limit = SLOTS
        assert self.feeder._settler is not None
        self.settler = self.feeder._settler

    def start_settler(self) -> None:
        """Start the settler's thread alone: the test makes the feeder's rounds."""
        self.settler.start()

    def round(self) -> None:
        """Make a round that wants something, and wait for the settler."""
        self.feeder.ring()
        self.feeder.round()
        self.wait_for_settler()

    def wait_for_settler(self) -> None:
        """Wait until what was handed over is settled, or is to be taken back."""
        wait_for(lambda: self.settler.idle or self.settler._failed, 10.0, "the settler to be done")

    def beside_turns(self) -> list[list[Ending]]:
        """What was settled beside a claim, batch by batch."""
        return [args[1] for name, args in self.beside.asked if name == "settle"]


@pytest.fixture
def bench() -> SettlerBench:
    return SettlerBench()


def test_many_completions_are_settled_beside_the_claim(bench: SettlerBench) -> None:
    bench.start_settler()
    runs = bench.finish_many(MANY)
    bench.round()
    [(endings, [wanted])] = bench.turns()
    assert endings == []
    assert wanted.limit > 0
    assert [ending.token for batch in bench.beside_turns() for ending in batch] == [run.lease.token for run in runs]
    assert [run for run, _, _ in bench.settled] == runs
    assert bench.keeper.held() == []
    assert len(bench.runs) == 0


def test_few_completions_cost_no_request_of_their_own(bench: SettlerBench) -> None:
    bench.start_settler()
    bench.finish_many(MANY - 1)
    bench.round()
    assert bench.beside_turns() == []
    assert len(bench.settled) == MANY - 1


def test_without_a_claim_too_many_are_settled_beside(bench: SettlerBench) -> None:
    """One of them may be locked: then those who wait for its lock are not those who claim."""
    bench.start_settler()
    bench.quiet()
    bench.finish_many(MANY)
    bench.feeder.round()
    bench.wait_for_settler()
    assert bench.turns() == []
    assert len(bench.settled) == MANY


def test_what_comes_back_to_its_queue_is_settled_in_the_turn(bench: SettlerBench) -> None:
    """The feeder looks again when it is due."""
    bench.start_settler()
    for number in range(MANY):
        bench.finish(bench.run(f"r{number}"), Verb.RETRY)
    bench.finish_many(MANY)
    bench.round()
    [(endings, _)] = bench.turns()
    assert {ending.verb for ending in endings} == {Verb.RETRY}
    [batch] = bench.beside_turns()
    assert {ending.verb for ending in batch} == {Verb.COMPLETE}


def test_while_a_batch_is_being_settled_the_turn_settles_the_next(bench: SettlerBench) -> None:
    bench.start_settler()
    bench.beside.script["settle"] = held = Held()
    bench.finish_many(MANY)
    bench.feeder.round()
    assert held.asked.wait(10.0)
    later = bench.run("later")
    bench.finish(later)
    bench.feeder.ring()
    bench.feeder.round()
    assert [run for run, _, _ in bench.settled] == [later]
    held.go.set()
    wait_for(lambda: bench.settler.idle, 10.0, "the batch to be settled")
    assert len(bench.settled) == MANY + 1


def test_a_feeder_that_was_not_started_settles_all_by_itself(bench: SettlerBench) -> None:
    bench.finish_many(MANY)
    bench.feeder.ring()
    bench.feeder.round()
    assert len(bench.settled) == MANY


# -- what cannot be settled beside


@pytest.mark.parametrize("error", [Unavailable("gone"), OutcomeUnknown("the answer was lost")])
def test_b34_what_could_not_be_settled_beside_is_settled_by_a_careful_turn(
    bench: SettlerBench, error: Exception
) -> None:
    """One job that somebody else has locked must not hold up the others for more than this once."""
    bench.start_settler()
    bench.beside.script["settle"] = error
    runs = bench.finish_many(MANY)
    bench.round()
    assert bench.settled == []
    assert len(bench.keeper.held()) == MANY
    careful = []

    def turn(*args: object, **kwargs: bool) -> object:
        careful.append(kwargs["careful"])
        return quiet_turn(*args)  # type: ignore[arg-type]

    bench.store.script["turn"] = turn
    bench.round()
    assert careful == [True]
    assert [run for run, _, _ in bench.settled] == runs
    assert bench.beside.closed == 1


def test_b34_while_a_job_is_locked_nothing_is_settled_beside(bench: SettlerBench) -> None:
    bench.start_settler()
    bench.feeder._careful = True
    bench.finish_many(MANY)
    bench.round()
    assert bench.beside_turns() == []
    assert len(bench.settled) == MANY


def test_r28_nobody_asks_what_is_held_while_some_of_it_is_being_settled(bench: SettlerBench) -> None:
    """What was settled between the question and its answer would look like a claim that nobody knows of."""
    bench.start_settler()
    bench.beside.script["settle"] = held = Held()
    [first, *_] = bench.finish_many(MANY)
    bench.store.script["turn"] = OutcomeUnknown("the answer was lost")
    with pytest.raises(OutcomeUnknown):
        bench.feeder.round()
    assert held.asked.wait(10.0)
    bench.store.script |= {"turn": quiet_turn, "held": [first.lease.token, Token("claimed unheard", 7)]}
    bench.feeder.round()
    assert "held" not in bench.store.names
    held.go.set()
    wait_for(lambda: bench.settler.idle, 10.0, "the batch to be settled")
    bench.store.script["held"] = [Token("claimed unheard", 7)]
    bench.feeder.round()
    assert [ending.token for ending in bench.turns()[-1][0]] == [Token("claimed unheard", 7)]


# -- the end


def test_stopping_waits_for_what_is_settled_beside(bench: SettlerBench) -> None:
    bench.beside.script["settle"] = held = Held()
    bench.finish_many(MANY)
    bench.feeder.start()
    assert held.asked.wait(10.0)
    bench.once_it_stops(held.go.set)
    assert bench.feeder.stop(10.0)
    assert len(bench.settled) == MANY


def test_stopping_settles_what_could_not_be_settled_beside(bench: SettlerBench) -> None:
    failing = threading.Event()

    def fails(*_: object) -> None:
        assert failing.wait(10.0)
        raise Unavailable("gone")

    bench.beside.script["settle"] = fails
    bench.finish_many(MANY)
    bench.feeder.start()
    wait_for(lambda: bench.beside_turns(), 10.0, "a batch to be handed over")
    bench.once_it_stops(failing.set)
    assert bench.feeder.stop(10.0)
    assert len(bench.settled) == MANY
    assert Kind.STORE_LOST not in bench.told.kinds


def test_stopping_leaves_what_is_never_answered(bench: SettlerBench) -> None:
    bench.beside.script["settle"] = held = Held()
    bench.finish_many(MANY)
    bench.feeder.start()
    assert held.asked.wait(10.0)
    assert not bench.feeder.stop(0.1)
    held.go.set()


def test_a_fault_in_the_settler_ends_the_worker_loudly(bench: SettlerBench) -> None:
    bench.beside.script["settle"] = ZeroDivisionError("a fault in a store")
    bench.finish_many(MANY)
    bench.feeder.start()
    wait_for(lambda: bench.crashes, 10.0, "the crash to be told")
    assert not bench.feeder.stop(0.1)
