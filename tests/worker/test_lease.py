"""A lease as its holder sees it: a belief that ends by itself, in this process only, and asks when clocks disagree."""

from __future__ import annotations

import copy
import os
import pickle
import warnings
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler

import pytest

from tenure.errors import LeaseLost, Misuse, Unavailable
from tenure.hold import SUSPECT, Lease, lost_reason
from tenure.protocol.job import Answer, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import State, Verb
from tests.worker.bench import CLAIMER, LEASE, TRUST, Clock, new_lease

TOKEN = Token("j1", 7)


class Host:
    """Two clocks and a store that says yes; `asked` are the durations it was asked for."""

    def __init__(self) -> None:
        self.boot = Clock(1000.0)
        self.wall = Clock(1_900_000_000.0)
        self.asked: list[float | None] = []
        self.on_renew: Callable[[Lease, float | None], None] = lambda lease, duration: lease.renewed(
            self.boot(), duration
        )
        self.lease = Lease(TOKEN, CLAIMER.owner, LEASE, self.boot(), renew=self._renew, clock=self.boot, wall=self.wall)

    def _renew(self, lease: Lease, duration: float | None) -> None:
        self.asked.append(duration)
        self.on_renew(lease, duration)

    def advance(self, seconds: float) -> None:
        self.boot.advance(seconds)
        self.wall.advance(seconds)


def taken_over(lease: Lease, _duration: float | None) -> None:
    lease.lose("generation 8 took over")


@pytest.fixture
def host() -> Host:
    return Host()


# -- the trust window


def test_r13_a_belief_is_shorter_than_the_lease() -> None:
    lease = new_lease(Clock())
    assert lease.remaining() == pytest.approx(LEASE * TRUST)
    assert LEASE * TRUST < LEASE


def test_a_belief_ends_by_itself(host: Host) -> None:
    host.advance(LEASE * TRUST - 0.01)
    host.lease.check()
    host.advance(0.01)
    assert host.lease.lost
    assert host.lease.remaining() == 0.0
    host.advance(1.2)
    with pytest.raises(LeaseLost, match=r"job j1: the lease of generation 7 is lost: its time ran out 1\.2 s ago"):
        host.lease.check()


def test_a_belief_tells_its_end_without_looking_at_the_clock(host: Host) -> None:
    end = host.boot() + LEASE * TRUST
    assert host.lease.ends_at == pytest.approx(end)
    host.advance(10)
    host.lease.renewed(host.boot())
    assert host.lease.ends_at == pytest.approx(end + 10)
    host.lease.lose("generation 8 took over")
    assert host.lease.ends_at < 0


def test_r20_a_renewal_sent_earlier_never_shortens_the_belief(host: Host) -> None:
    host.advance(10)
    host.lease.renewed(host.boot())
    host.lease.renewed(host.boot() - 5)
    assert host.lease.remaining() == pytest.approx(LEASE * TRUST)


def test_r20_a_renewal_cannot_revive_a_belief_that_ended(host: Host) -> None:
    host.advance(LEASE)
    host.lease.renewed(host.boot())
    assert host.lease.lost


def test_what_is_lost_stays_lost_for_its_first_reason(host: Host) -> None:
    assert host.lease.lose("generation 8 took over")
    assert not host.lease.lose("it was released")
    host.lease.renewed(host.boot())
    assert host.lease.lost_reason == "generation 8 took over"


def test_an_extension_makes_the_belief_last_as_long_as_asked(host: Host) -> None:
    host.lease.extend(300.0)
    assert host.asked == [300.0]
    assert host.lease.remaining() == pytest.approx(300.0 * TRUST)


def test_a_lost_lease_is_not_extended(host: Host) -> None:
    host.advance(LEASE)
    with pytest.raises(LeaseLost):
        host.lease.extend(300.0)
    assert host.asked == []


def test_an_extension_that_the_store_refuses_is_a_loss(host: Host) -> None:
    host.on_renew = taken_over
    with pytest.raises(LeaseLost, match="generation 8 took over"):
        host.lease.extend(300.0)


def test_an_extension_that_cannot_be_asked_extends_nothing(host: Host) -> None:
    def away(_lease: Lease, _duration: float | None) -> None:
        raise Unavailable("gone")

    host.on_renew = away
    with pytest.raises(Unavailable):
        host.lease.extend(300.0)
    assert host.lease.remaining() == pytest.approx(LEASE * TRUST)


# -- the clocks disagree


def test_r14_while_the_clocks_agree_nobody_is_asked(host: Host) -> None:
    host.advance(LEASE * TRUST / 2)
    host.wall.advance(SUSPECT * 0.9)
    host.lease.check()
    assert host.asked == []


@pytest.mark.parametrize("jump", [3600.0, -3600.0, SUSPECT + 0.1])
def test_r14_after_a_jump_of_the_wall_clock_the_store_is_asked_once(host: Host, jump: float) -> None:
    host.wall.advance(jump)
    host.lease.check()
    host.lease.check()
    assert host.asked == [None]


def test_r14_what_the_store_says_after_a_jump_counts(host: Host) -> None:
    host.on_renew = taken_over
    host.wall.advance(3600)
    with pytest.raises(LeaseLost, match="generation 8 took over"):
        host.lease.check()


def test_r14_a_suspected_lease_is_not_trusted_while_the_store_is_away(host: Host) -> None:
    def away(_lease: Lease, _duration: float | None) -> None:
        raise Unavailable("gone")

    host.on_renew = away
    host.wall.advance(3600)
    with pytest.raises(Unavailable):
        host.lease.check()


def test_r14_the_wall_clock_never_decides(host: Host) -> None:
    host.wall.advance(10 * LEASE)
    assert not host.lease.lost
    host.boot.advance(LEASE)
    host.wall.advance(-10 * LEASE)
    assert host.lease.lost


# -- one process


def in_a_fork(action: Callable[[], object]) -> str:
    """Do something in a forked child and return the name and the words of what it raised."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # another test's daemon thread may be on its way out
        child = os.fork()
    if child == 0:
        try:
            action()
            said = "nothing was raised"
        except Misuse as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@pytest.mark.parametrize("use", ["check", "remaining", "lost", "extend"])
def test_r24_a_forked_child_does_not_own_the_lease(host: Host, use: str) -> None:
    actions: dict[str, Callable[[], object]] = {
        "check": host.lease.check,
        "remaining": host.lease.remaining,
        "lost": lambda: host.lease.lost,
        "extend": lambda: host.lease.extend(60.0),
    }
    said = in_a_fork(actions[use])
    assert said.startswith(f"Misuse: the lease on job j1 belongs to process {os.getpid()}")
    assert not host.lease.lost


@pytest.mark.parametrize("copier", [pickle.dumps, ForkingPickler.dumps, copy.copy, copy.deepcopy])
def test_r24_a_lease_cannot_be_copied(host: Host, copier: Callable[[object], object]) -> None:
    with pytest.raises(Misuse, match="pass its token instead"):
        copier(host.lease)


def test_a_token_can_be_copied_and_shown() -> None:
    assert pickle.loads(pickle.dumps(TOKEN)) == TOKEN
    assert str(TOKEN) == "j1:7"


# -- in words


@pytest.mark.parametrize(
    ("met", "words"),
    [
        (Answer(TOKEN, Verdict.STALE), "the job is gone from the store"),
        (Answer(TOKEN, Verdict.STALE, State.RUNNING, 7, "ada"), "its lease ended before it was renewed"),
        (Answer(TOKEN, Verdict.STALE, State.RUNNING, 8, "bea"), "generation 8 took over (bea)"),
        (Answer(TOKEN, Verdict.STALE, State.RUNNING, 8), "generation 8 took over"),
        (
            Answer(TOKEN, Verdict.STALE, State.COMPLETED, 8, "bea", Verb.COMPLETE),
            "the job is completed under generation 8",
        ),
        (
            Answer(TOKEN, Verdict.STALE, State.CANCELLED, 8, None, Verb.CANCEL),
            "the job is cancelled under generation 8",
        ),
    ],
)
def test_a_loss_is_told_in_words(met: Answer, words: str) -> None:
    assert lost_reason(met) == words
