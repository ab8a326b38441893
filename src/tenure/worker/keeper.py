"""The keeper: a thread and a connection whose only work is to renew every held lease, in one statement a beat.

Nothing else runs here: a slow claim, a full pool or a blocked event loop cannot delay a renewal. What the store says
is lost is told to its holder at once. When the store cannot be asked, the keeper tries again, faster, until the beliefs
end by themselves (R20); meanwhile `healthy` is False and the feeder claims nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from tenure.clock import Clock, boot_clock
from tenure.errors import TenureError
from tenure.hold import Lease, lost_reason
from tenure.protocol.events import Emitter, Kind
from tenure.protocol.job import Answer, Verdict
from tenure.protocol.lease import LONGEST, Token, beat_interval
from tenure.store.contract import Driver, Verbs
from tenure.worker.part import Crashed, Part

OnLost = Callable[[Lease, str], None]


def _ignore(_error: BaseException) -> None:
    """Nobody else depends on this keeper."""


_FASTER = 4  # attempts per beat while the store cannot be asked


class Keeper:
    """Renew the leases that were added, until they are dropped; `on_lost` hears of each that is gone."""

    def __init__(
        self,
        driver: Driver,
        verbs: Verbs,
        owner: str,
        *,
        on_lost: OnLost,
        emitter: Emitter,
        crashed: Crashed = _ignore,
        clock: Clock = boot_clock,
        beat: float | None = None,
    ) -> None:
        self._driver = driver
        self._verbs = verbs
        self._owner = owner
        self._on_lost = on_lost
        self._emitter = emitter
        self._clock = clock
        self._held: dict[Token, Lease] = {}
        self._changed = threading.Condition()
        self._stopped = False
        self._beat = beat
        self._interval = self._interval_for([])
        self._last_beat = clock()
        self.healthy = True
        self._part = Part("keeper", self._run, crashed)

    def start(self) -> None:
        """Start the thread."""
        self._part.start()

    def add(self, leases: list[Lease]) -> None:
        """Keep these leases from now on."""
        with self._changed:
            for lease in leases:
                self._held[lease.token] = lease
            interval = self._interval_for([lease.duration for lease in leases])
            if interval < self._interval:
                # The next beat comes one new interval from now, or when it was due anyway; none was missed.
                self._last_beat = min(self._clock(), self._last_beat + self._interval - interval)
                self._interval = interval
                self._changed.notify()

    def drop(self, *leases: Lease) -> None:
        """Stop keeping these leases; unknown ones are left alone."""
        with self._changed:
            for lease in leases:
                self._held.pop(lease.token, None)

    def held(self) -> list[Lease]:
        """List what is being kept."""
        with self._changed:
            return list(self._held.values())

    def beat(self) -> None:
        """Renew everything held, once; raises nothing: what cannot be asked is tried again at the next beat."""
        leases = self.held()
        if self.healthy and not leases:
            return
        sent_at = self._clock()
        try:
            answers = self._renew(leases)
        except TenureError as error:
            self._unhealthy(str(error))
            return
        self._recovered()
        refused = {answer.token: answer for answer in answers}
        for lease in leases:
            answer = refused.get(lease.token)
            if answer is None:
                lease.renewed(sent_at)
            elif answer.verdict is Verdict.STALE:
                self._lose(lease, lost_reason(answer))

    def _renew(self, leases: list[Lease]) -> list[Answer]:
        if leases:
            return self._driver.do(self._verbs.renew, self._owner, [lease.token for lease in leases])
        # Everything was lost while the store was away: ask whether it is back, since who cannot renew claims nothing.
        self._driver.do(self._verbs.held, self._owner)
        return []

    def stop(self) -> None:
        """End the thread after the beat under way."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._part.join()

    def close(self) -> None:
        """Give the connection back."""
        self._driver.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._stopped:
                    self._changed.wait(self._pause())
                if self._stopped:
                    return
                if self._pause() > 0:
                    continue
            self._note_delay()
            self._last_beat = self._clock()
            self.beat()
            self._settle_interval()

    def _pause(self) -> float:
        interval = self._interval if self.healthy else self._interval / _FASTER
        left = self._last_beat + interval - self._clock()
        return left if left > 0.0 else 0.0

    def _settle_interval(self) -> None:
        if not self.healthy:
            return
        with self._changed:
            self._interval = self._interval_for([lease.duration for lease in self._held.values()])

    def _interval_for(self, leases: list[float]) -> float:
        interval = beat_interval(min(leases) if leases else LONGEST)
        return interval if self._beat is None or interval < self._beat else self._beat

    def _note_delay(self) -> None:
        late = self._clock() - self._last_beat - self._interval
        held = len(self._held)
        if late > self._interval and held:
            jobs = "1 job" if held == 1 else f"{held} jobs"
            self._emitter.emit(Kind.KEEPER_LATE, detail=f"the renewals of {jobs} were {late:.1f} s late")

    def _lose(self, lease: Lease, reason: str) -> None:
        with self._changed:
            known = self._held.pop(lease.token, None)
        if known is lease and lease.lose(reason):
            self._on_lost(lease, reason)

    def _unhealthy(self, why: str) -> None:
        if self.healthy:
            self.healthy = False
            self._emitter.emit(Kind.STORE_LOST, detail=f"leases cannot be renewed: {why}")

    def _recovered(self) -> None:
        if not self.healthy:
            self.healthy = True
            self._emitter.emit(Kind.STORE_BACK, detail="leases are renewed again")
