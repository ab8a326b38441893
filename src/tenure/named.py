"""`NamedLease`: one named thing owned while a block runs, renewed by itself."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from tenure.clock import boot_clock
from tenure.errors import Misuse, TenureError
from tenure.hold import Lease, renewing
from tenure.protocol.job import Ending
from tenure.protocol.lease import Effect, Token
from tenure.protocol.lifecycle import Verb
from tenure.worker.keeper import Keeper
from tenure.worker.program import Program


class NamedLease:
    """A lease on a name, for ``with`` and ``async with``; made by `App.lease`.

    Inside the block `generation` and `token` go along with every effect, and `check` says whether to go on. The lease
    is renewed in the background for as long as the block runs, and released at its end.
    """

    def __init__(self, app: Program, name: str, duration: float) -> None:
        self._app = app
        self.name = name
        self.duration = duration
        self._lease: Lease | None = None
        self._keeper: Keeper | None = None

    def __enter__(self) -> Self:
        """Claim the name; raises LeaseHeld when somebody else owns it."""
        app, claimer = self._app, self._app.claimer
        sent_at = boot_clock()
        claimed = app.client.claim_named(claimer, self.name, self.duration, create=True)
        token = Token(claimed.id, claimed.generation)
        self._lease = Lease(token, claimer.owner, self.duration, sent_at, renew=renewing(app.client))
        driver = app.store.dedicated(timeout=min(app.timeout, self.duration / 3))
        self._keeper = Keeper(driver, app.store.verbs, claimer.owner, on_lost=lambda *_: None, emitter=app.events)
        self._keeper.add([self._lease])
        self._keeper.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the name; what went wrong inside the block goes on, and a lease that was lost needs no release."""
        lease, keeper = self._held(), self._keeper
        if keeper is not None:
            keeper.stop()
            keeper.close()
        self._lease = self._keeper = None
        if lease.lost:
            return
        try:
            self._app.client.settle(lease.owner, [Ending(lease.token, Verb.RELEASE)])
        except TenureError:
            # The lease ends by itself; an error of the block itself must not be hidden behind this one.
            if error is None:
                raise
        finally:
            lease.lose("it was released")

    async def __aenter__(self) -> Self:
        """Claim the name without blocking the loop."""
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the name without blocking the loop."""
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    @property
    def token(self) -> Token:
        """The fencing token to be passed on with every effect."""
        return self._held().token

    @property
    def generation(self) -> int:
        """The generation of this claim."""
        return self._held().generation

    def remaining(self) -> float:
        """Tell for how many seconds the lease can still be trusted."""
        return self._held().remaining()

    @property
    def lost(self) -> bool:
        """Whether the lease can no longer be trusted."""
        return self._held().lost

    def check(self) -> None:
        """Raise LeaseLost unless the lease can be trusted now."""
        self._held().check()

    def effect(self, seconds: float = 0.0) -> AbstractContextManager[Effect]:
        """Pass the gate before an effect that may take `seconds`; see `Lease.effect`."""
        return self._held().effect(seconds)

    def extend(self, duration: float) -> None:
        """Make the lease last at least `duration` seconds from now."""
        self._held().extend(duration)

    def _held(self) -> Lease:
        if self._lease is None:
            raise Misuse(f"the lease {self.name!r} is not held: use it inside its with block")
        return self._lease
