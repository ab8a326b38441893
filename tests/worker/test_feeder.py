"""The feeder settles what has finished and claims for free slots, in one turn."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.errors import Unavailable
from tenure.protocol.job import Ending, Turn, Wanted
from tenure.protocol.lifecycle import Verb
from tenure.worker.prefetch import PATIENCE
from tests.support.processes import wait_for
from tests.worker.bench import (
    claimed,
    done,
    quiet_turn,
    stale,
)
from tests.worker.feeding import FeederBench, abandoned

NO_WORK = Turn([], [])


@pytest.fixture
def bench() -> FeederBench:
    return FeederBench()


# -- what is claimed


@pytest.mark.parametrize("busy", [0, 1, 2])
def test_b20_a_claim_asks_for_the_free_slots_and_no_more(bench: FeederBench, busy: int) -> None:
    for number in range(busy):
        bench.run(f"j{number}")
    bench.feeder.round()
    [(_, [wanted])] = bench.turns()
    assert wanted == Wanted(("default",), ("work",), 3 - busy, takeovers=False)


def test_b20_without_a_free_slot_nothing_is_asked(bench: FeederBench) -> None:
    for number in range(3):
        bench.run(f"j{number}")
    bench.feeder.round()
    assert bench.store.asked == []


def test_r13_what_was_claimed_is_trusted_from_before_the_request(bench: FeederBench) -> None:
    def slow(*call: Any) -> Turn:
        bench.clock.advance(4)
        return Turn([], [claimed()])

    bench.store.script["turn"] = slow
    sent_at = bench.clock()
    bench.feeder.round()
    assert bench.sent_at == [sent_at]


def test_a_filled_claim_asks_again_at_once_without_looking_for_takeovers(bench: FeederBench) -> None:
    abandoned(bench)
    bench.answers(Turn([], [claimed(f"j{number}") for number in range(3)]))
    bench.feeder.round()
    bench.finish(bench.executor.started[0])
    bench.feeder.round()
    assert [wanted[0].takeovers for _, wanted in bench.turns()] == [True, False]


def test_a_claim_that_takeovers_filled_is_followed_by_another(bench: FeederBench) -> None:
    """More jobs may be left whose lease has ended, and nothing rings for them."""
    abandoned(bench)
    bench.answers(Turn([], [claimed(f"j{number}", lost_generation=1) for number in range(3)]))
    bench.feeder.round()
    bench.finish(bench.executor.started[0])
    bench.feeder.round()
    assert [wanted[0].takeovers for _, wanted in bench.turns()] == [True, True]


def test_a_claim_that_found_less_than_it_asked_for_waits_for_the_bell(bench: FeederBench) -> None:
    bench.quiet()
    bench.feeder.round()
    assert bench.store.asked == []
    bench.feeder.ring()
    bench.feeder.round()
    assert len(bench.turns()) == 1


def test_a_ring_during_a_turn_is_not_forgotten(bench: FeederBench) -> None:
    def rung(*_: object, **__: object) -> Turn:
        bench.feeder.ring()
        return NO_WORK

    bench.store.script["turn"] = rung
    bench.feeder.round()
    bench.store.script["turn"] = quiet_turn
    bench.feeder.round()
    assert len(bench.turns()) == 2


def test_b20_queues_take_turns_at_the_front() -> None:
    bench = FeederBench(queues=("a", "b", "c"))
    for _ in range(4):
        bench.feeder.ring()
        bench.feeder.round()
    fronts = [wanted[0].queues for _, wanted in bench.turns()]
    assert fronts == [("b", "c", "a"), ("c", "a", "b"), ("a", "b", "c"), ("b", "c", "a")]


def test_nothing_is_claimed_while_leases_cannot_be_renewed(bench: FeederBench) -> None:
    run = bench.run()
    bench.store.script["renew"] = Unavailable("gone")
    bench.keeper.beat()
    bench.store.asked.clear()
    bench.feeder.round()
    assert bench.store.asked == []
    ending = bench.finish(run)
    bench.feeder.round()
    assert bench.turns() == [([ending], [])]


def test_b03_a_stopping_feeder_settles_and_claims_nothing(bench: FeederBench) -> None:
    run = bench.run()
    bench.feeder.stop_claiming()
    ending = bench.finish(run)
    bench.feeder.round()
    assert bench.turns() == [([ending], [])]


# -- what is claimed ahead, and given back


def full(bench: FeederBench, waiting: int = 1) -> list[str]:
    """Occupy all slots and let some more jobs wait for one."""
    for number in range(3):
        bench.run(f"busy {number}")
    jobs = [f"waits {number}" for number in range(waiting)]
    for job in jobs:
        bench.run(job)
    return jobs


def given_back(bench: FeederBench) -> list[tuple[str, str | None]]:
    endings = [ending for settled, _ in bench.turns() for ending in settled if ending.verb is Verb.RELEASE]
    return [(ending.token.job, ending.reason) for ending in endings]


def test_b20_a_claim_goes_a_little_ahead_where_jobs_were_short(bench: FeederBench) -> None:
    for number in range(4):
        bench.finish(bench.run(f"j{number}"))
    bench.feeder.round()
    [(_, [wanted])] = bench.turns()
    assert wanted.limit == 3 + 4


def test_what_was_claimed_ahead_is_kept_and_known_like_any_other(bench: FeederBench) -> None:
    for number in range(4):
        bench.finish(bench.run(f"short {number}"))
    bench.answers(Turn([], [claimed(f"j{number}") for number in range(5)]))
    bench.feeder.round()
    jobs = {f"j{number}" for number in range(5)}
    assert {lease.token.job for lease in bench.keeper.held()} == {run.claimed.id for run in bench.runs.all()} == jobs
    assert len(bench.executor.started) == 4 + 3


def test_b03_what_has_not_begun_is_given_back_when_claiming_stops(bench: FeederBench) -> None:
    first, second = full(bench, 2)
    bench.feeder.stop_claiming()
    bench.feeder.round()
    assert given_back(bench) == [(first, "the worker is stopping"), (second, "the worker is stopping")]
    bench.finish(bench.executor.started[0])
    assert len(bench.executor.started) == 3


def test_b20_what_has_waited_too_long_is_given_back(bench: FeederBench) -> None:
    bench.quiet()
    jobs = full(bench, 2)
    assert bench.feeder._pause() == PATIENCE
    bench.clock.advance(PATIENCE)
    bench.feeder.round()
    assert given_back(bench) == [(job, "the jobs before it took too long") for job in jobs]
    assert [run.claimed.id for run in bench.runs.all()] == ["busy 0", "busy 1", "busy 2"]


def test_what_has_not_begun_is_given_back_when_leases_cannot_be_renewed(bench: FeederBench) -> None:
    [job] = full(bench)
    bench.store.script["renew"] = Unavailable("gone")
    bench.keeper.beat()
    bench.feeder.round()
    assert given_back(bench) == [(job, "the worker cannot renew leases")]


def test_nothing_begins_while_leases_cannot_be_renewed(bench: FeederBench) -> None:
    full(bench)
    bench.store.script["renew"] = Unavailable("gone")
    bench.keeper.beat()
    bench.finish(bench.executor.started[0])
    assert len(bench.executor.started) == 3


# -- what is settled


def test_a_turn_settles_and_claims(bench: FeederBench) -> None:
    run = bench.run()
    bench.clock.advance(1.0)
    ending = bench.finish(run)
    bench.feeder.round()
    [(endings, [wanted])] = bench.turns()
    assert endings == [ending]
    assert wanted.limit == 3


def test_what_is_settled_is_neither_kept_nor_known_any_more(bench: FeederBench) -> None:
    run = bench.run()
    ending = bench.finish(run)
    bench.feeder.round()
    assert bench.settled == [(run, ending, done(run.lease.token))]
    assert bench.keeper.held() == []
    assert bench.runs.all() == []


def test_a_stale_end_is_told_and_never_repeated(bench: FeederBench) -> None:
    run = bench.run()
    answer = stale(run.lease.token, generation=2)
    bench.store.script["turn"] = lambda _claimer, endings, _wanted: Turn([answer] * len(endings), [])
    ending = bench.finish(run)
    bench.feeder.round()
    bench.feeder.ring()
    bench.feeder.round()
    assert bench.settled == [(run, ending, answer)]
    assert [endings for endings, _ in bench.turns()] == [[ending], []]


def test_the_first_word_about_an_end_counts(bench: FeederBench) -> None:
    run = bench.run()
    ending = bench.finish(run, Verb.COMPLETE)
    bench.feeder.finished(run, Ending(run.lease.token, Verb.FAIL))
    bench.feeder.round()
    assert [endings for endings, _ in bench.turns()] == [[ending]]


def test_a_run_that_lost_its_lease_settles_nothing(bench: FeederBench) -> None:
    run = bench.run()
    run.end()
    bench.finish(run)
    bench.feeder.finished(run, None)
    bench.quiet()
    assert bench.settled == []


def test_a_lone_finish_is_flushed_at_once(bench: FeederBench) -> None:
    run = bench.run()
    with bench.running():
        wait_for(bench.turns, 10.0, "the first look")
        bench.finish(run)
        wait_for(lambda: bench.settled, 10.0, "the end to be settled, though no look is due")
