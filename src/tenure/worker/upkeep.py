"""Upkeep: report that this worker lives, tell what waits for nobody, prune; correctness needs none of it."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence

from tenure.clock import Clock
from tenure.errors import TenureError
from tenure.protocol.events import Emitter, Kind
from tenure.protocol.job import Foremost, WorkerRecord
from tenure.store.contract import MAX_GENERATION, Driver
from tenure.worker.part import Crashed, Part
from tenure.worker.program import Program

REPORT = 10.0
_FLOOR = 60.0  # seconds between two looks at the floor, and so between two complaints
_WAITED = 30.0  # seconds that workers of another app, which share a queue, have before anything is said
_PRUNE = 60.0
_STEP = 500


class Upkeep:
    """Report from the feeder's own thread, so that a report means that the claim loop turns (B04); prune in another."""

    def __init__(
        self,
        app: Program,
        me: WorkerRecord,
        retention: float | None,
        *,
        emitter: Emitter,
        crashed: Crashed,
        clock: Clock,
    ) -> None:
        self._app = app
        self._me = me
        self._retention = retention
        self._emitter = emitter
        self._clock = clock
        self._next_report = 0.0
        self._next_floor = 0.0
        self._unknown: set[str] = set()  # what was told already
        self._stopped = threading.Event()
        self._part = Part("upkeep", self._run, crashed)

    def start(self) -> None:
        """Start pruning, where a retention is set."""
        if self._retention is not None:
            self._part.start()

    def stop(self) -> None:
        """End the thread and take the worker off the list."""
        self._stopped.set()
        self._part.join()
        store = self._app.store
        try:
            store.connect(timeout=1.0).do(store.verbs.forget, self._me.owner)
        except TenureError:
            return  # it will be forgotten by another worker

    def report(self, driver: Driver) -> None:
        """Report that the worker lives, when it is time; called by the feeder after each of its rounds."""
        now = self._clock()
        if now < self._next_report:
            return
        self._next_report = now + REPORT
        self._look_for_unknown(driver.do(self._app.store.verbs.report, self._me))
        if now >= self._next_floor:
            self._next_floor = now + _FLOOR
            self._look_at_floor(driver)

    def _look_for_unknown(self, foremost: Sequence[Foremost]) -> None:
        """Tell once for each task that its jobs wait in a queue served here, and that this worker has no such task."""
        for first in foremost:
            if first.due_for < _WAITED or first.task in self._app.tasks or first.task in self._unknown:
                continue
            self._unknown.add(first.task)
            detail = (
                f"its jobs wait in queue {first.queue}, one of them due for {first.due_for:.0f} s, and the app of this"
                " worker has no such task: start a worker whose app has it, or see whether --app names the right one"
            )
            self._emitter.emit(Kind.TASK_UNKNOWN, task=first.task, detail=detail)

    def _look_at_floor(self, driver: Driver) -> None:
        """Tell that no claim can have a generation above the floor: a claim that is refused for it just finds nothing.

        Under a floor one below the last generation, each job has one claim left and no retry.
        """
        store = self._app.store
        floor = driver.do(store.verbs.admit).floor
        if floor >= MAX_GENERATION - 1:
            left = "any more" if floor >= MAX_GENERATION else "a second time"
            detail = (
                f"{store.name}: its floor is {floor}, {MAX_GENERATION} is the last generation, and no job can be"
                f" claimed there {left}: open a new store, and enqueue there what waits here"
            )
            self._emitter.emit(Kind.GENERATIONS_SPENT, detail=detail)

    def prune(self) -> None:
        """Walk once over the jobs that ended, in small steps, removing those past the retention."""
        cursor: str | None = None
        while not self._stopped.is_set():
            step = self._app.client.prune(self._retention or 0.0, limit=_STEP, after=cursor)
            cursor = step.cursor
            if cursor is None:
                return
            self._stopped.wait(0.05 if step.removed else 0.005)

    def _run(self) -> None:
        # Workers that started together should not walk together.
        while not self._stopped.wait(_PRUNE * random.uniform(0.5, 1.5)):
            try:
                self.prune()
            except TenureError:
                continue  # the feeder tells of it; the next walk makes up for it
