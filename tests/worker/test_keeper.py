"""The keeper renews all held leases in one statement a beat; no answer makes a belief longer than the store's lease."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tenure.errors import BadSettings, OutcomeUnknown, TenureError, Unavailable
from tenure.hold import Lease
from tenure.protocol.events import Kind
from tenure.protocol.job import Answer, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import State
from tenure.worker.keeper import Keeper
from tests.support.processes import wait_for
from tests.worker.bench import CLAIMER, LEASE, TRUST, VERBS, Clock, ScriptedStore, Told, new_lease, stale

SHORT = 1.0
BEAT = SHORT / 3
FAILURES = [Unavailable("gone"), OutcomeUnknown("the answer was lost"), BadSettings("it lacks a migration")]


class Bench:
    def __init__(self) -> None:
        self.clock = Clock()
        self.store = ScriptedStore()
        self.told = Told()
        self.lost: list[tuple[Lease, str]] = []
        self.keeper = Keeper(
            self.store,
            VERBS,
            CLAIMER.owner,
            on_lost=lambda lease, reason: self.lost.append((lease, reason)),
            emitter=self.told.emitter,
            clock=self.clock,
        )

    def hold(self, job: str = "j1", generation: int = 1, *, duration: float = LEASE) -> Lease:
        lease = new_lease(self.clock, job, generation, duration=duration)
        self.keeper.add([lease])
        return lease

    def is_healthy(self) -> bool:
        return self.keeper.healthy

    def takes(self, seconds: float) -> None:
        """Let every renewal be confirmed, after as many seconds under way."""

        def confirmed() -> list[Answer]:
            self.clock.advance(seconds)
            return []

        self.answers(confirmed)

    def answers(self, answer: Callable[[], object]) -> None:
        """Let every renewal be answered by `answer`, which may move the clock while the request is under way."""
        self.store.script["renew"] = lambda *_: answer()

    @contextmanager
    def running(self) -> Iterator[None]:
        self.keeper.start()
        try:
            yield
        finally:
            self.keeper.stop()

    def beats(self, count: int) -> None:
        wait_for(lambda: len(self.store.asked) >= count, 10.0, f"{count} renewals")


@pytest.fixture
def bench() -> Bench:
    return Bench()


# -- one beat


def test_one_statement_renews_everything_held(bench: Bench) -> None:
    held = [bench.hold(f"j{number}") for number in range(100)]
    bench.keeper.beat()
    assert bench.store.asked == [("renew", (CLAIMER.owner, [lease.token for lease in held]))]


def test_nothing_held_is_nothing_asked(bench: Bench) -> None:
    bench.keeper.beat()
    assert bench.store.asked == []


def test_a_renewal_extends_the_belief(bench: Bench) -> None:
    lease = bench.hold()
    bench.clock.advance(10)
    bench.keeper.beat()
    assert lease.remaining() == pytest.approx(LEASE * TRUST)


def test_r13_a_slow_renewal_counts_from_before_it_was_sent(bench: Bench) -> None:
    lease = bench.hold()
    bench.clock.advance(10)
    bench.takes(15)
    bench.keeper.beat()
    assert lease.remaining() == pytest.approx(LEASE * TRUST - 15)


def test_r13_an_answer_that_outlived_the_belief_does_not_revive_it(bench: Bench) -> None:
    lease = bench.hold()
    bench.clock.advance(10)
    bench.takes(LEASE - 10)
    bench.keeper.beat()
    assert lease.lost


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_r20_a_failed_renewal_extends_nothing_and_loses_nothing(bench: Bench, failure: TenureError) -> None:
    lease = bench.hold()
    bench.clock.advance(10)
    bench.store.script["renew"] = failure
    bench.keeper.beat()
    assert lease.remaining() == pytest.approx(LEASE * TRUST - 10)
    assert bench.lost == []


def test_a_row_locked_by_another_extends_nothing_and_loses_nothing(bench: Bench) -> None:
    lease = bench.hold()
    bench.clock.advance(10)
    bench.answers(lambda: [Answer(lease.token, Verdict.DONE, State.RUNNING, lease.generation, "ada")])
    bench.keeper.beat()
    assert lease.remaining() == pytest.approx(LEASE * TRUST - 10)
    assert bench.keeper.held() == [lease]
    assert bench.lost == []


def test_a_stale_answer_tells_the_holder_once_and_is_never_repeated(bench: Bench) -> None:
    lost, kept = bench.hold("lost"), bench.hold("kept")
    bench.answers(lambda: [stale(lost.token, generation=2)])
    bench.keeper.beat()
    bench.keeper.beat()
    assert bench.lost == [(lost, "generation 2 took over (bea)")]
    assert lost.lost
    assert not kept.lost
    assert bench.store.asked[1] == ("renew", (CLAIMER.owner, [kept.token]))


def test_a_stale_answer_about_an_earlier_generation_leaves_the_later_one_kept(bench: Bench) -> None:
    before = bench.hold(generation=1)
    after = new_lease(bench.clock, generation=2)

    def replaced() -> list[Answer]:
        bench.keeper.add([after])
        return [stale(before.token, generation=2, worker="ada")]

    bench.answers(replaced)
    bench.keeper.beat()
    assert [lease for lease, _ in bench.lost] == [before]
    assert bench.keeper.held() == [after]
    assert not after.lost


def test_a_dropped_lease_is_renewed_no_more(bench: Bench) -> None:
    lease = bench.hold()
    bench.keeper.drop(lease)
    bench.keeper.beat()
    assert bench.store.asked == []


def test_a_lease_that_ends_while_its_renewal_is_under_way_is_told_to_nobody(bench: Bench) -> None:
    lease = bench.hold()

    def settled() -> list[Answer]:
        bench.keeper.drop(lease)
        return [stale(lease.token, generation=1)]

    bench.answers(settled)
    bench.keeper.beat()
    assert bench.lost == []


def test_dropping_an_earlier_generation_leaves_the_later_one_kept(bench: Bench) -> None:
    before, after = bench.hold(generation=1), bench.hold(generation=2)
    bench.keeper.drop(before)
    assert bench.keeper.held() == [after]


# -- health


def test_an_outage_is_told_once_and_so_is_its_end(bench: Bench) -> None:
    bench.hold()
    bench.store.script["renew"] = Unavailable("gone")
    bench.keeper.beat()
    bench.keeper.beat()
    assert not bench.is_healthy()
    bench.store.script["renew"] = []
    bench.keeper.beat()
    bench.keeper.beat()
    assert bench.is_healthy()
    assert bench.told.kinds == [Kind.STORE_LOST, Kind.STORE_BACK]


def test_b04_a_keeper_that_lost_everything_asks_whether_the_store_is_back(bench: Bench) -> None:
    """Until it is, nothing may be claimed that could not be renewed; then claiming must go on."""
    lease = bench.hold()
    bench.store.script |= {"renew": Unavailable("gone"), "held": Unavailable("gone")}
    bench.keeper.beat()
    bench.keeper.drop(lease)
    bench.keeper.beat()
    assert not bench.is_healthy()
    bench.store.script["held"] = []
    bench.keeper.beat()
    assert bench.is_healthy()
    assert bench.told.kinds == [Kind.STORE_LOST, Kind.STORE_BACK]


# -- the thread


def test_a_lease_given_to_an_idle_keeper_is_renewed_after_one_beat(bench: Bench) -> None:
    with bench.running():
        bench.hold(duration=SHORT)
        bench.clock.advance(BEAT)
        bench.beats(1)


def test_a_shorter_lease_brings_the_next_beat_forward(bench: Bench) -> None:
    with bench.running():
        bench.hold("long", duration=600.0)
        bench.hold("short", duration=SHORT)
        bench.clock.advance(BEAT)
        bench.beats(1)


def test_r20_an_unanswered_renewal_is_tried_again_before_the_next_beat(bench: Bench) -> None:
    bench.store.script["renew"] = Unavailable("gone")
    with bench.running():
        bench.hold(duration=SHORT)
        bench.clock.advance(BEAT)
        bench.beats(1)
        bench.clock.advance(BEAT / 3)
        bench.beats(2)


def test_b04_a_keeper_that_lost_everything_asks_by_itself(bench: Bench) -> None:
    bench.store.script["renew"] = Unavailable("gone")
    with bench.running():
        lease = bench.hold(duration=SHORT)
        bench.clock.advance(BEAT)
        bench.beats(1)
        bench.keeper.drop(lease)
        bench.clock.advance(1.0)
        wait_for(lambda: bench.keeper.healthy, 10.0, "the keeper to find the store again")


def test_a_keeper_that_was_idle_is_not_late(bench: Bench) -> None:
    with bench.running():
        bench.clock.advance(100)
        bench.hold(duration=SHORT)
        bench.clock.advance(BEAT)
        bench.beats(1)
    assert bench.told.events == []


def test_a_shorter_lease_does_not_make_the_beat_before_it_late(bench: Bench) -> None:
    with bench.running():
        bench.hold("long", duration=600.0)
        bench.clock.advance(100)
        bench.hold("short", duration=SHORT)
        bench.clock.advance(BEAT)
        bench.beats(1)
    assert bench.told.events == []


@pytest.mark.parametrize(("held", "told"), [(1, "1 job"), (2, "2 jobs")])
def test_b06_a_late_beat_says_by_how_much(bench: Bench, held: int, told: str) -> None:
    with bench.running():
        for number in range(held):
            bench.hold(f"j{number}", duration=SHORT)
        bench.clock.advance(BEAT + 7)
        bench.beats(1)
    [late] = bench.told.events
    assert late.kind is Kind.KEEPER_LATE
    assert late.detail == f"the renewals of {told} were 7.0 s late"


def test_a_stopped_keeper_renews_no_more(bench: Bench) -> None:
    with bench.running():
        bench.hold(duration=SHORT)
    bench.clock.advance(BEAT)
    assert bench.store.asked == []
    bench.keeper.close()
    assert bench.store.closed == 1


def test_a_token_is_what_a_renewal_names(bench: Bench) -> None:
    bench.hold("j7", 3)
    bench.keeper.beat()
    [(_, (_, tokens))] = bench.store.asked
    assert tokens == [Token("j7", 3)]
