"""How late this machine runs whoever is ready, measured beside a test, so that a bound in seconds can be kept tight.

A promise in seconds holds where the processor, the disk and the server serve who asks them. On a machine with more to
do than it can, everybody is late, and no program can keep the promise. `Machine` is one who only asks: to be woken
after a moment, and one short request. By how much its rounds took longer than they should is the lateness of that
while, and the bound is widened by exactly that: by next to nothing where nothing else goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Self

from tenure.clock import boot_clock

_PAUSE: Final = 0.01
_ORDINARY: Final = 0.005  # what a round may take beyond its pause on a machine that has time


class Machine:
    """Asks over and over while its `with` block runs; `lateness` tells how late it was served, by the boot clock."""

    def __init__(self, request: Callable[[], object] = lambda: None) -> None:
        self._request = request
        self._rounds: list[tuple[float, float]] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="machine", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._stopped.is_set():
            began = boot_clock()
            time.sleep(_PAUSE)
            self._request()
            self._rounds.append((began, boot_clock()))

    def lateness(self, since: float, until: float) -> float:
        """Sum up by how much the rounds that touched this while took longer than they should; 0 for no while at all."""
        if until <= since:
            return 0.0
        while self._thread.is_alive() and not (self._rounds and self._rounds[-1][1] >= until):
            time.sleep(_PAUSE)  # a late round tells of its lateness when it ends
        touched = [(began, ended) for began, ended in self._rounds if ended >= since and began <= until]
        assert touched, f"nothing was measured between {since:.2f} and {until:.2f}"
        return sum(max(0.0, ended - began - _PAUSE - _ORDINARY) for began, ended in touched)
