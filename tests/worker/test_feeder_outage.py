"""The feeder while the store is away: nothing that ended is lost, a lost answer leaves nothing behind, and it stops."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tenure.errors import OutcomeUnknown, Unavailable
from tenure.protocol.events import Kind
from tenure.protocol.job import Answer, Ending, Turn, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.worker.feeder import LOOK
from tenure.worker.pace import FIRST
from tests.support.processes import wait_for
from tests.worker.bench import (
    NOTHING,
    quiet_turn,
)
from tests.worker.feeding import FeederBench


@pytest.fixture
def bench() -> FeederBench:
    return FeederBench()


def outage(*_: object, **__: object) -> None:
    raise Unavailable("gone")


def lost_answer(*_: object, **__: object) -> None:
    raise OutcomeUnknown("the answer was lost")


# -- an outage


def test_what_was_wanted_is_wanted_again_after_an_outage(bench: FeederBench) -> None:
    bench.store.script["turn"] = outage
    with pytest.raises(Unavailable):
        bench.feeder.round()
    bench.store.script["turn"] = quiet_turn
    bench.feeder.round()
    assert bench.store.names == ["outlook", "turn", "turn"]


def test_a_look_that_could_not_be_taken_is_taken_again_and_loses_no_end(bench: FeederBench) -> None:
    bench.quiet()
    run = bench.run()

    def ended_meanwhile(_queues: object) -> None:
        bench.finish(run)
        raise Unavailable("gone")

    bench.store.script["outlook"] = ended_meanwhile
    bench.clock.advance(LOOK)
    with pytest.raises(Unavailable):
        bench.feeder.round()
    bench.store.script["outlook"] = NOTHING
    bench.feeder.round()
    assert bench.store.names == ["outlook", "outlook", "turn"]
    assert [settled for settled, _, _ in bench.settled] == [run]


def test_ends_wait_for_the_store_to_come_back_in_their_order(bench: FeederBench) -> None:
    first, second = bench.run("first"), bench.run("second")
    endings = [bench.finish(first), bench.finish(second)]
    bench.store.script["turn"] = outage
    with pytest.raises(Unavailable):
        bench.feeder.round()
    assert bench.settled == []
    assert len(bench.keeper.held()) == 2
    third = bench.finish(bench.run("third"))
    bench.store.script["turn"] = quiet_turn
    bench.feeder.round()
    assert [ending for _, ending, _ in bench.settled] == [*endings, third]


def test_b04_an_outage_is_told_once_and_work_goes_on_after_it(bench: FeederBench) -> None:
    bench.store.script["turn"] = outage
    with bench.running():
        wait_for(lambda: bench.store.closed >= 2, 10.0, "two attempts, each over a new connection")
        seen = bench.feeder.last_round
        bench.clock.advance(1)
        bench.store.script["turn"] = quiet_turn
        wait_for(lambda: bench.feeder.last_round > seen, 10.0, "a round that succeeds")
    assert bench.told.kinds == [Kind.STORE_LOST, Kind.STORE_BACK]
    assert bench.crashes == []


def test_b04_a_round_that_asks_nothing_does_not_tell_that_the_store_is_back(bench: FeederBench) -> None:
    bench.store.script["turn"] = outage
    with bench.running():
        wait_for(lambda: bench.store.closed >= 1, 10.0, "an attempt")
        bench.keeper.healthy = False
        seen = bench.feeder.last_round
        bench.clock.advance(1)
        wait_for(lambda: bench.feeder.last_round > seen, 10.0, "a round that claims nothing")
        assert bench.told.kinds == [Kind.STORE_LOST]
        bench.store.script["turn"] = quiet_turn
        bench.keeper.healthy = True
        wait_for(lambda: Kind.STORE_BACK in bench.told.kinds, 10.0, "the store's return to be told")
    assert bench.told.kinds == [Kind.STORE_LOST, Kind.STORE_BACK]


def test_b04_a_failed_round_is_no_sign_of_life(bench: FeederBench) -> None:
    bench.store.script["turn"] = outage
    before = bench.feeder.last_round
    bench.clock.advance(1)
    with bench.running():
        wait_for(lambda: bench.store.closed >= 2, 10.0, "two attempts")
        assert bench.feeder.last_round == before


def test_r28_after_a_lost_answer_it_gives_back_what_it_does_not_know_of(bench: FeederBench) -> None:
    known = bench.run("known", generation=4)
    bench.store.script["turn"] = lost_answer
    with pytest.raises(OutcomeUnknown):
        bench.feeder.round()
    bench.store.asked.clear()
    bench.store.script["turn"] = quiet_turn
    bench.store.script["held"] = [known.lease.token, Token("claimed unheard", 7)]
    bench.feeder.round()
    assert bench.store.names == ["held", "turn"]
    [(endings, _)] = bench.turns()
    assert [(ending.token, ending.verb) for ending in endings] == [(Token("claimed unheard", 7), Verb.RELEASE)]


def test_r28_another_generation_of_a_known_job_is_given_back_too(bench: FeederBench) -> None:
    bench.run("j1", generation=1)
    bench.store.script["turn"] = lost_answer
    with pytest.raises(OutcomeUnknown):
        bench.feeder.round()
    bench.store.script["turn"] = quiet_turn
    bench.store.script["held"] = [Token("j1", 2)]
    bench.feeder.round()
    endings, _ = bench.turns()[-1]
    assert [ending.token for ending in endings] == [Token("j1", 2)]


def test_r28_it_asks_until_it_was_told_what_it_holds(bench: FeederBench) -> None:
    bench.store.script["turn"] = lost_answer
    bench.store.script["held"] = Unavailable("gone")
    for raised in (OutcomeUnknown, Unavailable):
        with pytest.raises(raised):
            bench.feeder.round()
    bench.store.script |= {"turn": quiet_turn, "held": []}
    bench.feeder.round()
    bench.feeder.ring()
    bench.feeder.round()
    assert bench.store.names == ["outlook", "turn", "held", "held", "turn", "turn"]


def test_ends_whose_answer_was_lost_are_repeated(bench: FeederBench) -> None:
    ending = bench.finish(bench.run())
    bench.store.script["turn"] = lost_answer
    with pytest.raises(OutcomeUnknown):
        bench.feeder.round()
    bench.store.script["turn"] = quiet_turn
    bench.feeder.round()
    assert [endings for endings, _ in bench.turns()] == [[ending], [ending]]


def test_what_was_left_behind_is_no_claim_whose_answer_was_lost(bench: FeederBench) -> None:
    """Its handler may go on, so its lease runs out: a job that is given back would run twice at once."""
    left, lost = bench.run("left behind"), Token("claimed unheard", 7)
    bench.runs.leave(left)
    bench.store.script["turn"] = lost_answer
    with pytest.raises(OutcomeUnknown):
        bench.feeder.round()
    bench.store.script["held"] = [left.lease.token, lost]
    bench.store.script["turn"] = quiet_turn
    bench.feeder.round()
    assert [[ending.token for ending in endings] for endings, _ in bench.turns()][1:] == [[lost]]


def test_an_outage_that_did_nothing_leaves_no_doubt(bench: FeederBench) -> None:
    bench.store.script["turn"] = outage
    with pytest.raises(Unavailable):
        bench.feeder.round()
    bench.store.script["turn"] = quiet_turn
    bench.feeder.round()
    assert "held" not in bench.store.names


# -- the end


def test_stopping_waits_for_what_is_settled(bench: FeederBench) -> None:
    run = bench.run()
    bench.feeder.start()
    bench.finish(run)
    assert bench.feeder.stop(10.0)
    assert [settled for settled, _, _ in bench.settled] == [run]


def test_stopping_tries_once_more_to_settle_after_an_outage(bench: FeederBench) -> None:
    run = bench.run()
    bench.store.script["turn"] = outage
    bench.feeder.start()
    bench.finish(run)
    wait_for(lambda: bench.store.closed >= 3, 10.0, "attempts that failed, before a pause that is long")
    bench.store.script["turn"] = quiet_turn
    assert bench.feeder.stop(10.0)
    assert [settled for settled, _, _ in bench.settled] == [run]


def test_stopping_does_not_wait_for_a_store_that_is_away(bench: FeederBench) -> None:
    run = bench.run()
    bench.store.script["turn"] = outage
    bench.feeder.start()
    bench.finish(run)
    assert not bench.feeder.stop(10.0)
    assert bench.settled == []


def test_no_turn_waits_for_a_lock_while_a_worker_stops(bench: FeederBench) -> None:
    stopping, careful = threading.Event(), []
    first, second = bench.run("first"), bench.run("second")

    def turn(*asked: Any, **how: bool) -> Turn:
        careful.append(how["careful"])
        if len(careful) == 1:
            bench.finish(second)
            assert stopping.wait(10.0)
        return quiet_turn(*asked)

    bench.store.script["turn"] = turn
    bench.finish(first)
    bench.feeder.start()
    bench.once_it_stops(stopping.set)
    assert bench.feeder.stop(10.0)
    assert careful == [False, True]


@pytest.mark.parametrize(("fails", "settles"), [(1, True), (2, True), (3, False)])
def test_a_store_that_is_away_while_a_worker_stops_is_asked_twice(
    bench: FeederBench, fails: int, settles: bool
) -> None:
    """The first of these turns has begun before, and may have met a connection that was broken long ago."""
    stopping, turns = threading.Event(), 0

    def turn(*asked: Any, **_: bool) -> Turn:
        nonlocal turns
        turns += 1
        assert stopping.wait(10.0)
        if turns <= fails:
            raise Unavailable("gone")
        return quiet_turn(*asked)

    bench.store.script["turn"] = turn
    bench.finish(bench.run())
    bench.feeder.start()
    bench.once_it_stops(stopping.set)
    assert bench.feeder.stop(10.0) is settles
    assert len(bench.settled) == settles


@pytest.mark.parametrize("for_good", [False, True])
def test_stopping_settles_all_others_while_one_job_is_locked_and_that_one_once_it_is_free(for_good: bool) -> None:
    """More than one turn takes: the first waits for the lock until its time is over, no other does."""
    bench, stopping = FeederBench(slots=3 * FIRST), threading.Event()
    runs = bench.finish_many(3 * FIRST)
    tries = 0

    def turn(_claimer: object, endings: list[Ending], _wanted: object, *, careful: bool = False) -> Turn:
        nonlocal tries
        if not careful:
            assert stopping.wait(10.0)
            raise Unavailable("the request took longer than its timeout")
        tries += any(ending.token.job == "j5" for ending in endings)
        locked = for_good or tries < 4
        verdicts = [Verdict.BUSY if locked and ending.token.job == "j5" else Verdict.DONE for ending in endings]
        return Turn([Answer(ending.token, verdict) for ending, verdict in zip(endings, verdicts, strict=True)], [])

    bench.store.script["turn"] = turn
    bench.feeder.start()
    bench.once_it_stops(stopping.set)
    assert bench.feeder.stop(1.0 if for_good else 10.0) is not for_good
    assert {run.lease.token.job for run in runs} - {run.lease.token.job for run, _, _ in bench.settled} == (
        {"j5"} if for_good else set()
    )


def test_an_unexpected_error_ends_the_worker_loudly(bench: FeederBench) -> None:
    bench.store.script["turn"] = ZeroDivisionError("a fault in a store")
    with bench.running():
        wait_for(lambda: bench.crashes, 10.0, "the crash to be told")
    [crash] = bench.crashes
    assert isinstance(crash, ZeroDivisionError)


# -- one job that somebody else has locked


def test_one_locked_job_holds_up_no_other(bench: FeederBench) -> None:
    """A handler that left the transaction of its guard open: its own end waits, those of others do not."""
    bench.quiet()
    locked, fine = bench.run("locked"), bench.run("fine")
    seen: list[bool] = []
    free = False

    def turn(_claimer: object, endings: list[Ending], _wanted: object, *, careful: bool = False) -> Turn:
        seen.append(careful)
        if not careful and not free:
            raise Unavailable("the request took longer than its timeout")
        verdicts = [Verdict.DONE if free or ending.token.job != "locked" else Verdict.BUSY for ending in endings]
        return Turn([Answer(ending.token, verdict) for ending, verdict in zip(endings, verdicts, strict=True)], [])

    bench.store.script["turn"] = turn
    bench.finish(locked)
    bench.finish(fine)
    with pytest.raises(Unavailable):
        bench.feeder.round()
    bench.feeder.round()
    assert [run for run, _, _ in bench.settled] == [fine]
    late = bench.run("late")
    bench.finish(late)
    bench.feeder.round()
    assert [run for run, _, _ in bench.settled] == [fine, late]
    assert [len(endings) for endings, _ in bench.turns()] == [2, 2, 1]
    free = True
    bench.clock.advance(1.0)
    bench.feeder.round()
    assert [run for run, _, _ in bench.settled] == [fine, late, locked]
    bench.finish(bench.run("after"))
    bench.feeder.round()
    assert seen == [False, True, True, True, False]


def test_a_locked_job_is_asked_for_once_more_at_the_end(bench: FeederBench) -> None:
    bench.quiet()
    run = bench.run("locked")
    asked = []

    def turn(_claimer: object, endings: list[Ending], _wanted: object, **_: bool) -> Turn:
        asked.append(len(endings))
        return Turn([Answer(ending.token, Verdict.BUSY) for ending in endings], [])

    bench.store.script["turn"] = turn
    with bench.running():
        bench.finish(run)
        wait_for(lambda: asked, 10.0, "the run to be settled")
    assert len(asked) >= 2
    assert bench.settled == []
