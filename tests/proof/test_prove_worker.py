"""What a worker of `tenure prove` writes down, when it is stopped at any moment of writing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import pytest

from tenure.errors import TenureError
from tenure.hold import Lease
from tenure.proof.history import History, Line, Meta
from tenure.proof.judge import Judgement, judge
from tenure.proof.prove import worker
from tenure.proof.prove.worker import Orders, Updates
from tenure.proof.recorder import Recorder
from tenure.protocol.lease import Effect, Token
from tenure.worker.context import Job
from tests.proof.lines import claim

ORDERS = Orders(
    name="A", queue="q", folder="", seed=1, threads=1, lease=30.0, updates=1, workload="update", fence=True, port=0,
    destination="d", duplicate=False, reorder=False,
)  # fmt: skip


ASKED = 3  # the reading before the gate: two are the lease's own
READINGS = 12


class Clock:
    """A clock that jumps as many seconds as are listed for the reading with that number."""

    def __init__(self, stops: dict[int, float]) -> None:
        self._stops = stops
        self._now = 1.0
        self.readings = 0

    def __call__(self) -> float:
        self.readings += 1
        self._now += self._stops.get(self.readings, 0.001)
        return self._now


class Place:
    """A destination that takes everything."""

    def read(self, _scope: str) -> str:
        return "[]"

    def write(self, *_told: object) -> None:
        pass


@dataclass
class Run:
    """As much of a job as one update asks for."""

    id: str
    lease: Lease

    @property
    def generation(self) -> int:
        return self.lease.generation

    @contextmanager
    def effect(self) -> Iterator[Effect]:
        with self.lease.effect() as token:
            yield token


def updated(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Judgement:
    """Pass the gate on this clock, and have the judge look at what was written down."""
    monkeypatch.setattr(worker, "boot_clock", clock)
    monkeypatch.setattr(worker.Updates, "_tell", lambda *_: None)
    monkeypatch.setattr(worker, "THINKING", (0.0, 0.0))
    lines: list[Line] = []
    updates = Updates(ORDERS, Recorder(lines.append, "process A", clock=clock), "owner A")
    lease = Lease(Token("j", 1), "owner A", 30.0, 0.0, renew=lambda *_: None, clock=clock, wall=clock)
    updates._update(cast(Job, Run("j", lease)), cast(Any, Place()), "s")
    return judge(History.of([Meta(), claim(1, 0.0), *lines]))  # type: ignore[list-item]  # calls are all that was written


@pytest.mark.parametrize("reading", range(1, READINGS + 2))
def test_a_stop_at_any_moment_raises_no_false_alarm(reading: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """I16 speaks of the gate; whoever is stopped between it and its note has still passed it in time."""
    try:
        judged = updated(Clock({reading: 60.0}), monkeypatch)
    except TenureError:
        return  # the gate itself was met too late, and stayed shut
    assert judged["I16"].verdict == "kept", judged["I16"].violations


def test_a_gate_that_lets_late_holders_through_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lease, "check", lambda _: None)
    (violation,) = updated(Clock({ASKED: 60.0}), monkeypatch)["I16"].violations
    assert "after it had stopped believing in its lease" in violation.sentence


def test_a_deadline_is_told_where_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock({})
    assert updated(clock, monkeypatch)["I16"].checked == 1
    assert clock.readings == READINGS
