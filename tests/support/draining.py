"""A worker without its threads: a test turns it by hand, on a clock that stands still, so that its work can be counted.

Nothing here depends on time: the same jobs cost the same turns, statements and instructions, every time.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tenure import App
from tenure.task import Task
from tenure.worker.lane import Lane
from tenure.worker.run import Finished, Run
from tenure.worker.worker import Worker

JOBS = 1000


class ByHand:
    """An executor whose handlers are called when the test says so."""

    kind = "by hand"

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.begun: deque[Run] = deque()

    def open(self, finished: Finished) -> None:
        self.finished = finished

    def start(self, runs: Sequence[Run]) -> None:
        self.begun.extend(runs)

    def stop(self, run: Run) -> None:
        raise AssertionError(f"{run.lease.token} was to be stopped")

    def abandon(self, run: Run) -> bool:
        raise AssertionError(f"{run.lease.token} was to be abandoned")

    def close(self) -> None:
        """Nothing to end."""


class TurnedWorker:
    """A worker of one task that does nothing, with `slots`, which has drained jobs before: its pace has been found."""

    def __init__(self, app: App, slots: int, times: int) -> None:
        self.ran = 0

        @app.task
        def noop(number: int) -> None:
            self.ran += 1

        self.noop: Task[Any, Any, Any] = noop
        self._executor = ByHand(slots)
        self._worker = Worker(app, clock=lambda: 1000.0)
        self._worker._make_lanes = lambda: [  # type: ignore[method-assign]
            Lane(self._worker._prefetch(self._executor, times), ["noop"], ("default",))
        ]
        self._worker._make_keeping()
        self._worker._make_feeding()
        self._feeder = self._worker._feeder
        for lane in self._worker._lanes:
            lane.prefetch.open(self._feeder.finished)
        self.enqueue()
        self.drain()

    def enqueue(self, jobs: int = JOBS) -> None:
        """Enqueue jobs by one call."""
        self.noop.enqueue_many([{"number": number} for number in range(jobs)])

    def drain(self) -> int:
        """Turn the worker until every job has run and is settled; return how many turns that took."""
        self._feeder.ring()
        turns = 0
        while True:
            self._feeder.round()
            turns += 1
            if not self._executor.begun:
                return turns
            while self._executor.begun:
                run = self._executor.begun.popleft()
                self._executor.finished(run, run.returned(run.call()))

    def close(self) -> None:
        """Give the connections back."""
        self._worker._hang_up()


class Instructions:
    """How many instructions of Python's were carried out."""

    def __init__(self) -> None:
        self.count = 0

    def trace(self, frame: FrameType, event: str, _argument: Any) -> Callable[..., Any]:
        """Count one; called by the interpreter."""
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            self.count += 1
        return self.trace


@contextmanager
def counted_instructions() -> Iterator[Instructions]:
    """Count the instructions of this thread inside the block."""
    counted, before = Instructions(), sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # 3.12 asks whether any frame wants them when tracing begins
    sys.settrace(counted.trace)
    try:
        yield counted
    finally:
        sys.settrace(before)
