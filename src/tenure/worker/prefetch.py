"""`Prefetch`: the slots of one executor, and the few claimed jobs that wait for one.

A claim costs a round trip, however few jobs it takes, and few slots with very short jobs would spend their time on
round trips. So a lane may claim a little ahead: as many jobs as it finished within the last `WITHIN` seconds, at most
`TIMES` for each slot, counted anew for each claim. Only runs that were shorter than that count, and a longer one sets
the number to zero at once, so that a lane of long jobs claims for its free slots and no more.

A job that waits has a run and a lease that the keeper renews, but it has not begun: no time limit counts and no attempt
is spent. It is given back when nothing may begin here any more, or when it has waited for `PATIENCE` because the jobs
before it turned out long, so that it does not wait behind them while another worker is idle (B20). Where its lease is
lost, it never begins.

Jobs begin in the order of their claims, so one of higher priority that comes later is overtaken by what waits here, and
by no more than that.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence

from tenure.clock import Clock, boot_clock
from tenure.protocol.job import Ending
from tenure.protocol.lifecycle import Verb
from tenure.worker.run import Executor, Finished, Run

WITHIN = 0.1
"""Seconds: what a lane finishes in this time may wait before its slots, so that a job waits about as long."""

TIMES = 16
"""The most jobs that may wait, for each slot."""

ENOUGH = 1024
"""Jobs, running and waiting, of one lane: half of them are claimed in one round trip while the others run. With more
nothing is gained, so lanes of more slots have no need."""

PATIENCE = 0.5
"""Seconds after which a job that waits for a slot is given back."""

Refusal = Callable[[], str | None]
"""Says why nothing may begin now, None while it may."""


class Prefetch:
    """Share out an executor's slots; at most `times` jobs for each slot wait for one, none with 0.

    `began` hears of runs right before their executor gets them.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        refusal: Refusal,
        began: Callable[[list[Run]], None],
        times: int = TIMES,
        clock: Clock = boot_clock,
    ) -> None:
        self.kind = executor.kind
        self.slots = executor.slots
        self._executor = executor
        self._refusal = refusal
        self._began = began
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: deque[tuple[float, Run]] = deque()  # each with the moment at which it came
        self._running: set[Run] = set()
        most = max(0, min(times * self.slots, ENOUGH - self.slots))
        self._short: deque[float] = deque(maxlen=most)  # when the last short runs ended

    def open(self, finished: Finished) -> None:
        """Get ready; `finished` is called once for every run given to `start`, as it ends or is given back."""
        self._finished = finished
        self._executor.open(self._ended)

    def free(self) -> int:
        """Tell how many more jobs may be claimed: for the free slots, and ahead; nothing while most of these are left.

        So a claim takes many jobs at a time, also where their runs end one by one.
        """
        with self._lock:
            ahead, waiting = self._ahead() if self._short else 0, len(self._waiting)
            return 0 if waiting > ahead // 2 else self.slots - len(self._running) + ahead - waiting

    def start(self, runs: Sequence[Run]) -> None:
        """Let these runs begin, as far as there are slots; the others wait for one."""
        now = self._clock()
        with self._lock:
            self._waiting += [(now, run) for run in runs]
        self._fill()

    def review(self) -> None:
        """Give back what must wait no longer: everything once nothing may begin, else what has waited too long."""
        if not self._waiting:
            return
        reason = self._refusal()
        before = self._clock() - PATIENCE if reason is None else math.inf
        late = []
        with self._lock:
            while self._waiting and self._waiting[0][0] <= before:
                late.append(self._waiting.popleft()[1])
        for run in late:
            self._give_back(run, reason or "the jobs before it took too long")

    def patience(self) -> float:
        """Tell how many seconds are left until a waiting job has waited too long; infinitely many when none waits."""
        if not self._waiting:
            return math.inf
        with self._lock:
            return self._waiting[0][0] + PATIENCE - self._clock() if self._waiting else math.inf

    def stop(self, run: Run) -> None:
        """Stop a run, which ends at once if it has not begun."""
        with self._lock:
            waiting = [(since, one) for since, one in self._waiting if one is not run]
            waited = len(waiting) < len(self._waiting)
            self._waiting = deque(waiting)
        if waited:
            self._finished(run, run.obeyed())
        else:
            self._executor.stop(run)

    def abandon(self, run: Run) -> bool:
        """Give up on a run that would not stop, and let another one have its slot; False when none can be spared."""
        if run not in self._running or not self._executor.abandon(run):
            return False
        with self._lock:
            self._running.discard(run)
        self._fill()
        return True

    def close(self) -> None:
        """End the executor."""
        self._executor.close()

    def _ahead(self) -> int:
        since = self._clock() - WITHIN
        while self._short and self._short[0] < since:
            self._short.popleft()
        return len(self._short)

    def _ended(self, run: Run, ending: Ending | None) -> None:
        now = self._clock()
        with self._lock:
            if run in self._running:  # else it was given up on, and its slot is another's
                self._running.discard(run)
                self._note(now - run.begun_at, now)
            waits = bool(self._waiting)
        if waits:
            self._fill()
        self._finished(run, ending)

    def _note(self, took: float, now: float) -> None:
        if took < WITHIN:
            self._short.append(now)
        else:
            self._short.clear()

    def _fill(self) -> None:
        """Let waiting runs begin while there are slots."""
        begin, refused = [], []
        with self._lock:
            refusal, now = self._refusal(), self._clock()
            while self._waiting and len(self._running) < self.slots:
                _, run = self._waiting.popleft()
                reason = refusal or ("its lease ended before it began" if run.lease.ends_at <= now else None)
                if reason is None:
                    run.begins()
                    self._running.add(run)
                    begin.append(run)
                else:
                    refused.append((run, reason))
        if begin:
            self._began(begin)
            self._executor.start(begin)
        for run, reason in refused:
            self._give_back(run, reason)

    def _give_back(self, run: Run, reason: str) -> None:
        self._finished(run, Ending(run.lease.token, Verb.RELEASE, reason=reason))
