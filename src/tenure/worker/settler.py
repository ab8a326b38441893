"""The settler: a thread and a connection that settle completed jobs while the feeder claims the next ones.

In a turn the one follows the other. Where a store does both at once they need not, and a lane of very short jobs gains
by it: the feeder hands over what was completed, many at a time, and claims meanwhile. All else stays with the feeder.
It takes back what could not be settled here, and finds out by its own turn what ails the store, or which job is locked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from tenure.errors import TenureError
from tenure.protocol.job import Answer, Ending
from tenure.store.contract import Driver, Verbs
from tenure.worker.part import Crashed, Part
from tenure.worker.run import Run

MANY = 32
"""Jobs from which on a request of their own, and a commit, costs less than the claim that waits for them."""

Completed = list[tuple[Run, Ending]]


class Settler:
    """Settle one batch at a time; on this thread `settled` hears the answers, and `over` that a batch has ended."""

    def __init__(
        self,
        driver: Driver,
        verbs: Verbs,
        owner: str,
        *,
        settled: Callable[[Completed, Sequence[Answer]], None],
        over: Callable[[], None],
        crashed: Crashed,
    ) -> None:
        self._driver = driver
        self._verbs = verbs
        self._owner = owner
        self._settled = settled
        self._over = over
        self._batch: Completed = []
        self._failed = False
        self._started = False
        self._handed = threading.Semaphore(0)
        self._stopped = False
        self._part = Part("settler", self._run, crashed)

    def start(self) -> None:
        """Start the thread."""
        self._started = True
        self._part.start()

    @property
    def idle(self) -> bool:
        """Whether nothing is being settled, and nothing is to be taken back."""
        return not self._batch

    @property
    def ready(self) -> bool:
        """Whether there is somebody to settle a batch now."""
        return self._started and not self._stopped and self.idle

    def settle(self, batch: Completed) -> None:
        """Settle this batch, while ready."""
        self._batch = batch
        self._handed.release()

    def take_back(self) -> Completed:
        """Return the batch that could not be settled, if there is one."""
        if not self._failed:
            return []
        batch, self._batch, self._failed = self._batch, [], False
        return batch

    def stop(self, timeout: float) -> None:
        """End the thread after the batch that it is at."""
        self._stopped = True
        self._handed.release()
        self._part.join(timeout)

    def _run(self) -> None:
        while True:
            self._handed.acquire()
            if self._batch and not self._failed:
                self._settle()
            if self._stopped:
                return

    def _settle(self) -> None:
        try:
            answers = self._driver.do(self._verbs.settle, self._owner, [ending for _, ending in self._batch])
        except TenureError:
            self._driver.close()
            self._failed = True
        else:
            self._settled(self._batch, answers)
            self._batch = []
        self._over()
