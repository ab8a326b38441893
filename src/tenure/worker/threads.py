"""The executor for plain handlers: threads of its own, one a run.

A thread cannot be stopped from outside. A handler that must stop is told (`job.cancelled`, `job.check()`, the gate);
one that does not listen is left behind: its lease lapses, its writes are refused, and another thread takes its slot.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence

from tenure.protocol.job import Ending
from tenure.worker.part import Crashed, Part
from tenure.worker.run import Finished, Run

_GONE = object()  # the handle of a run that no longer occupies a slot
_SPARE = 4  # how many threads per slot may be left behind before the executor stops replacing them


class ThreadExecutor:
    """Run plain handlers, up to `slots` at a time; stopping one tells it.

    `crashed` hears of what fails in their threads besides the handlers, as two runs may have lost their ends by it.
    """

    kind = "thread"

    def __init__(self, slots: int, crashed: Crashed) -> None:
        self.slots = slots
        self._crashed = crashed
        self._queue: queue.SimpleQueue[Run | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._abandoned = 0
        self._occupied = 0

    def open(self, finished: Finished) -> None:
        """Get ready; threads start when they are needed."""
        self._finished = finished

    def start(self, runs: Sequence[Run]) -> None:
        """Queue these runs for the threads, starting more threads up to the slots."""
        with self._lock:
            self._occupied += len(runs)
            missing = (self._occupied if self._occupied < self.slots else self.slots) - self._threads
            if missing > 0:
                self._threads += missing
        for _ in range(missing):
            Part("handler", self._main, self._crashed).start()
        for run in runs:
            self._queue.put(run)

    def stop(self, run: Run) -> None:
        """Nothing more than telling it, which `run.job` has done already."""

    def abandon(self, run: Run) -> bool:
        """Leave a thread behind and free its slot, unless too many are left behind already."""
        with self._lock:
            if self._abandoned >= self.slots * _SPARE or run.handle is _GONE:
                return False
            run.handle = _GONE
            self._abandoned += 1
            self._threads -= 1
            self._occupied -= 1
            return True

    def close(self) -> None:
        """End the idle threads; busy ones end with the process."""
        for _ in range(self._threads):
            self._queue.put(None)

    def _main(self) -> None:
        while (run := self._queue.get()) is not None:
            ending = self._outcome(run) if run.stop is None else run.obeyed()
            if not self._vacate(run):
                return  # this thread was given up on; its slot belongs to another
            self._finished(run, ending)

    def _outcome(self, run: Run) -> Ending | None:
        try:
            value = run.call()
        except BaseException as error:
            return run.raised(error)
        return run.returned(value)

    def _vacate(self, run: Run) -> bool:
        with self._lock:
            if run.handle is _GONE:
                self._abandoned -= 1
                return False
            run.handle = _GONE
            self._occupied -= 1
            return True
