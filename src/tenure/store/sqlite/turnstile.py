"""A turnstile before the write lock of a SQLite file: the threads of a process go through in the order they came.

SQLite gives its lock to whoever asks at the right moment, and a thread that commits without pause is always first. So
threads stand in line, and only the one inside asks SQLite. Processes have no line in common. Instead each owes the
others a share of the time that it had the lock, and leaves it alone for a moment when too much is owed: who waits in
another process asks more often than that.

The turnstile only orders; what excludes is SQLite's lock. So when nobody has moved for a while, the next goes inside
too: a place that was lost, with a thread that was interrupted, delays the others and does not stop them.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from weakref import WeakValueDictionary

from tenure.clock import Clock
from tenure.store.sqlite import forks

_SHARE = 0.1  # of the time that the lock was held is owed to other processes
_GAP = 0.002  # seconds owed at which they get a gap, and how long it is at least
_MOST_OWED = 0.005
_STALLED = 1.0  # seconds without a move after which the next goes inside too
_LOOK = 0.1  # seconds between two looks whether anybody moved


class Place:
    """One thread's place in the line; `called` opens when it may go inside."""

    __slots__ = ("called",)

    def __init__(self) -> None:
        self.called = threading.Lock()
        self.called.acquire()


class Turnstile:
    """The line of one process before one file."""

    def __init__(self, clock: Clock = time.monotonic, sleep: Callable[[float], None] = time.sleep) -> None:
        self._clock = clock
        self._sleep = sleep
        self._line: deque[Place] = deque()
        self._inside: Place | None = None
        self._moved = clock()
        self._left = clock()
        self._owed = 0.0

    def enter(self, timeout: float) -> Place | None:
        """Wait for this thread's turn; None when it did not come within `timeout` seconds."""
        place, until = Place(), self._clock() + timeout
        try:
            with forks.brief:
                if self._inside is None:
                    self._inside, self._moved = place, self._clock()
                else:
                    self._line.append(place)
            while self._inside is not place and not self._called(place, until):
                if self._clock() >= until:
                    self.leave(place)
                    return None
                self._unless_stalled()
            self._leave_gap()
        except BaseException:
            self.leave(place)
            raise
        return place

    def empty_for(self) -> float:
        """Tell for how many seconds nobody of this process has been inside."""
        return 0.0 if self._inside is not None else self._clock() - self._left

    def leave(self, place: Place, *, held: float = 0.0) -> None:
        """Let the next go inside; `held` says for how many seconds this one had the write lock."""
        with forks.brief:
            if place in self._line:
                self._line.remove(place)
            if place is self._inside:
                self._owe(held)
                self._move()

    def _called(self, place: Place, until: float) -> bool:
        return place.called.acquire(timeout=max(0.0, min(until - self._clock(), _LOOK)))

    def _owe(self, held: float) -> None:
        now = self._clock()
        paid = max(0.0, now - held - self._left)
        self._owed = min(max(0.0, self._owed - paid) + held * _SHARE, _MOST_OWED)
        self._left = now

    def _leave_gap(self) -> None:
        if self._owed >= _GAP:
            self._sleep(max(0.0, self._left + self._owed - self._clock()))

    def _unless_stalled(self) -> None:
        with forks.brief:
            if self._line and self._clock() >= self._moved + _STALLED:
                self._move()

    def _move(self) -> None:
        self._moved = self._clock()
        self._inside = self._line.popleft() if self._line else None
        if self._inside is not None:
            self._inside.called.release()


_by_file: WeakValueDictionary[tuple[int, int, int], Turnstile] = WeakValueDictionary()


def turnstile_of(path: Path) -> Turnstile:
    """Return the one turnstile of this process before the file behind `path`; a forked child has lines of its own."""
    file = path.stat()
    key = (os.getpid(), file.st_dev, file.st_ino)
    with forks.brief:
        turnstile = _by_file.get(key)
        if turnstile is None:
            turnstile = _by_file[key] = Turnstile()
    return turnstile
