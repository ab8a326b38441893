"""The warden: a thread that stops runs whose time is over, by the clock and by nothing else.

Three times can be over: the lease's, when renewals did not get through (R20); the run's own limit (R22); and the
patience with a handler that was told to stop and does not. It asks no store and waits for no handler.
"""

from __future__ import annotations

import math
import threading

from tenure.clock import Clock, boot_clock
from tenure.hold import Lease
from tenure.protocol.events import Emitter, Kind
from tenure.protocol.lease import beat_interval
from tenure.protocol.lifecycle import Verb
from tenure.worker.keeper import Keeper
from tenure.worker.part import Crashed, Part
from tenure.worker.run import Run, Runs, Stop

_LOOK = 1.0
_SHORTEST_LOOK = 0.01


class Warden:
    """Watch the clock for all runs; `patience` is the seconds between telling a run to stop and giving up on it."""

    def __init__(
        self,
        runs: Runs,
        keeper: Keeper,
        emitter: Emitter,
        *,
        patience: float,
        crashed: Crashed,
        clock: Clock = boot_clock,
    ) -> None:
        self._runs = runs
        self._keeper = keeper
        self._emitter = emitter
        self._patience = patience
        self._clock = clock
        self._changed = threading.Condition()
        self._stopped = False
        self._wake_at = 0.0
        self._told: dict[Run, float] = {}  # runs that were told to stop, and when patience ends
        self._part = Part("warden", self._run, crashed)

    def start(self) -> None:
        """Start the thread."""
        self._part.start()

    def watch(self, runs: list[Run]) -> None:
        """Look at new runs in time: the thread sleeps until the first end it knows of."""
        for run in runs:
            if self._next_end(run) < self._wake_at:
                self.wake()
                return

    def wake(self) -> None:
        """Look now."""
        with self._changed:
            self._wake_at = 0.0
            self._changed.notify()

    def lost(self, lease: Lease, reason: str) -> None:
        """Stop the run whose lease the store says is lost."""
        run = self._runs.get(lease.token)
        if run is not None:
            self.tell(run, Stop(reason, None))

    def tell(self, run: Run, stop: Stop) -> None:
        """Tell a run to stop; a loss overrules any other reason, and settles nothing."""
        if run.ended or (run.stop is not None and stop.verb is not None):
            return
        run.stop = stop
        run.job.ask_to_stop(stop.reason)
        if stop.verb is None:
            if not run.end():
                return
            self._keeper.drop(run.lease)
            self._emit(Kind.LEASE_LOST, run, stop.reason)
        if stop.verb is not Verb.RELEASE:
            # What is given back at a shutdown is given back by the shutdown, also where the handler would not stop.
            with self._changed:
                self._told.setdefault(run, self._clock() + self._patience)
        run.executor.stop(run)
        if stop.verb is None:
            self._runs.leave(run)

    def look(self) -> float:
        """Stop what is over, and return when to look again."""
        now, runs = self._clock(), self._runs.all()
        for run in runs:
            if run.ended:
                continue
            reason = run.lease.lost_reason
            if reason is not None:
                self.tell(run, Stop(reason, None))
                continue
            if run.stop is None and not run.warned and now >= self._soon(run):
                self._warn(run)
            if run.deadline is not None and now >= run.deadline and run.stop is None:
                self._limit_reached(run)
        self._give_up(now)
        # A run that has ended may wait long to be settled, and nothing that is still to come ends it. Who has come
        # meanwhile has asked for another look.
        ends = [self._next_end(run) for run in runs if not run.ended]
        return min(ends) if ends else now + _LOOK

    def stop(self) -> None:
        """End the thread."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._part.join()

    def _run(self) -> None:
        while True:
            self._wake_at = math.inf  # so that whoever comes during the look wakes for another one
            soonest = self.look()
            with self._changed:
                if self._wake_at < math.inf and not self._stopped:
                    continue
                now = self._clock()
                soonest = min([soonest, now + _LOOK, *self._told.values()])
                self._wake_at = soonest if soonest > now + _SHORTEST_LOOK else now + _SHORTEST_LOOK
                if not self._stopped:
                    self._changed.wait(self._wake_at - now)
                if self._stopped:
                    return

    def _next_end(self, run: Run) -> float:
        end = run.lease.ends_at if run.warned or run.stop is not None else self._soon(run)
        return end if run.deadline is None or run.stop is not None else min(end, run.deadline)

    def _soon(self, run: Run) -> float:
        """Tell from when on so little of the lease is left that a renewal must have failed."""
        return run.lease.ends_at - beat_interval(run.lease.duration)

    def _warn(self, run: Run) -> None:
        run.warned = True
        left = f"{run.lease.remaining():.1f} s are left, and no renewal has got through"
        self._emit(Kind.DEADLINE_SOON, run, left)

    def _emit(self, kind: Kind, run: Run, detail: str) -> None:
        row = run.claimed
        self._emitter.emit(kind, job=row.id, generation=row.generation, task=row.task, detail=detail)

    def _limit_reached(self, run: Run) -> None:
        reason = f"it ran longer than its limit of {run.claimed.timeout:g} s"
        self._emit(Kind.TIMED_OUT, run, reason)
        self.tell(run, Stop(reason, Verb.FAIL))

    def _give_up(self, now: float) -> None:
        if not self._told:
            return
        with self._changed:
            overdue = [run for run, until in self._told.items() if now >= until]
            for run in overdue:
                del self._told[run]
        for run in overdue:
            self._abandon(run)

    def _abandon(self, run: Run) -> None:
        if run.stop is None:
            return
        if run.end():
            # Renewals end here: the lease lapses, another worker takes the job over, and this run's writes are refused.
            self._keeper.drop(run.lease)
            run.lease.lose(f"{run.stop.reason}, and it did not stop")
            self._runs.leave(run)
        run.executor.abandon(run)
