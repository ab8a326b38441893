"""The ringer wakes the feeder; a bell that breaks is closed once, told, and replaced when one can be opened again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import cast

from tenure.errors import Unavailable
from tenure.protocol.events import Kind
from tenure.store.contract import Bell
from tenure.worker.feeder import Feeder
from tenure.worker.ringer import Ringer
from tests.support.processes import wait_for
from tests.worker.bench import Told


class FakeFeeder:
    def __init__(self) -> None:
        self.has_bell = False
        self.rings = 0

    def ring(self) -> None:
        self.rings += 1


class FakeBell:
    """Rings, breaks or is woken when the test says so; may be closed once, as descriptors may."""

    def __init__(self) -> None:
        self.news = threading.Event()
        self.rang = False
        self.broken = False
        self.closed = 0

    def wait(self, seconds: float) -> bool:
        self.news.wait(seconds)
        self.news.clear()
        if self.broken:
            raise Unavailable("the bell is broken")
        rang, self.rang = self.rang, False
        return rang

    def ring(self) -> None:
        self.rang = True
        self.news.set()

    def break_down(self) -> None:
        self.broken = True
        self.news.set()

    def wake(self) -> None:
        assert not self.closed, "a closed bell was woken"
        self.news.set()

    def close(self) -> None:
        assert not self.closed, "a bell was closed twice"
        self.closed += 1


class Bench:
    def __init__(self, *opened: Bell | Unavailable | None) -> None:
        self._opened = list(opened)
        self.feeder = FakeFeeder()
        self.told = Told()
        self.had_bell: list[bool] = []  # whether the feeder had a bell when each event was told
        self.told.emitter.subscribe(lambda _: self.had_bell.append(self.feeder.has_bell))
        self.crashes: list[BaseException] = []
        self.ringer = Ringer(self._open, cast("Feeder", self.feeder), self.told.emitter, self.crashes.append)

    def _open(self) -> Bell | None:
        following = self._opened.pop(0)
        if isinstance(following, Unavailable):
            raise following
        return following

    def wait(self, predicate: Callable[[], object], what: str) -> None:
        wait_for(lambda: predicate() or self.crashes, 10.0, what)
        assert self.crashes == []


def test_a_ring_wakes_the_feeder() -> None:
    bell = FakeBell()
    bench = Bench(bell)
    bench.ringer.start()
    bench.wait(lambda: bench.feeder.rings == 1, "a look at what was announced before")
    assert bench.feeder.has_bell
    bell.ring()
    bench.wait(lambda: bench.feeder.rings == 2, "the ring")
    bench.ringer.stop()
    assert bell.closed == 1


def test_a_store_without_a_bell_is_polled() -> None:
    bench = Bench(None)
    bench.ringer.start()
    bench.ringer.stop()
    assert not bench.feeder.has_bell
    assert bench.told.events == []


def test_b04_a_broken_bell_is_told_and_replaced_once_the_store_is_back() -> None:
    first, second = FakeBell(), FakeBell()
    bench = Bench(first, Unavailable("gone"), second, *[Unavailable("gone")] * 100)
    bench.ringer.start()
    bench.wait(lambda: bench.feeder.has_bell, "the first bell")
    first.break_down()
    bench.wait(lambda: bench.told.events, "the break to be told")
    bench.wait(lambda: bench.feeder.has_bell, "the second bell")
    second.break_down()
    bench.wait(lambda: len(bench.told.events) == 2, "the second break to be told")
    bench.ringer.stop()
    assert bench.crashes == []
    assert (first.closed, second.closed) == (1, 1)
    assert bench.told.kinds == [Kind.BELL_LOST, Kind.BELL_LOST]  # once an outage, not once a try
    assert bench.had_bell == [False, False]


def test_stopping_while_no_bell_can_be_opened_is_no_failure() -> None:
    bell = FakeBell()
    bench = Bench(bell, *[Unavailable("gone")] * 100)
    bench.ringer.start()
    bench.wait(lambda: bench.feeder.has_bell, "the bell")
    bell.break_down()
    bench.wait(lambda: bench.told.events, "the break to be told")
    bench.ringer.stop()
    assert bench.crashes == []
    assert bell.closed == 1
