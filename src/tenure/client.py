"""`Client` and `AsyncClient`: the store's verbs for programs, one line a verb, thin twins."""

from __future__ import annotations

from collections.abc import Sequence

from tenure.protocol.ending import kept_reason
from tenure.protocol.job import (
    Answer,
    Claimed,
    Claimer,
    Ending,
    Enqueued,
    Filter,
    HistoryEntry,
    JobRecord,
    Moved,
    NewJob,
    Pruned,
    QueueCounts,
    WorkerRecord,
)
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.protocol.names import check_ids
from tenure.store.contract import Admission, AsyncDriver, Driver, Verbs


class Client:
    """Everything that can be asked of a store, blocking."""

    def __init__(self, driver: Driver, verbs: Verbs) -> None:
        self._driver = driver
        self._verbs = verbs

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Store new jobs, all or none; raises Unavailable or OutcomeUnknown, after which repeating is harmless."""
        return self._driver.do(self._verbs.enqueue, jobs)

    def claim_named(self, claimer: Claimer, job: str, duration: float, *, create: bool) -> Claimed:
        """Take one job by its id; raises LeaseHeld, NotAllowed or NotFound."""
        return self._driver.do(self._verbs.claim_named, claimer, job, duration, create=create)

    def renew(self, owner: str, tokens: Sequence[Token], duration: float | None = None) -> list[Answer]:
        """Prolong leases; answers only for those that were not renewed."""
        return self._driver.do(self._verbs.renew, owner, tokens, duration)

    def settle(self, owner: str, endings: Sequence[Ending]) -> list[Answer]:
        """End runs under their tokens."""
        return self._driver.do(self._verbs.settle, owner, endings)

    def progress(self, owner: str, token: Token, value: str) -> Answer:
        """Store a progress value, as JSON text."""
        return self._driver.do(self._verbs.progress, owner, token, value)

    def recall_step(self, job: str, step: str) -> str | None:
        """Look up the remembered result of a named effect, as JSON text."""
        return self._driver.do(self._verbs.recall_step, job, step)

    def record_step(self, owner: str, token: Token, step: str, result: str) -> Answer:
        """Remember the result of a named effect, as JSON text."""
        return self._driver.do(self._verbs.record_step, owner, token, step, result)

    def get(self, job: str) -> JobRecord:
        """Show one job; raises NotFound."""
        return self._driver.do(self._verbs.get, job)

    def history(self, job: str) -> list[HistoryEntry]:
        """Tell the abnormal turns of a job's life, oldest first."""
        return self._driver.do(self._verbs.history, job)

    def find(
        self, which: Filter, *, limit: int = 100, after: str | None = None, newest_first: bool = True
    ) -> list[JobRecord]:
        """List jobs by id, page by page, without arguments, results, progress, and messages of failures."""
        return self._driver.do(self._verbs.find, which, limit=limit, after=after, newest_first=newest_first)

    def cancel(self, jobs: Sequence[str], reason: str | None = None) -> list[Moved]:
        """Cancel jobs that wait or run; a running one's owner is stale from now on (R2)."""
        return self._operate(Verb.CANCEL, jobs, reason)

    def discard(self, jobs: Sequence[str], reason: str | None = None) -> list[Moved]:
        """Put jobs among the dead letters; a running one's owner is stale from now on (R2)."""
        return self._operate(Verb.DISCARD, jobs, reason)

    def release(self, jobs: Sequence[str], reason: str | None = None) -> list[Moved]:
        """Take running jobs away from their owners and make them available again (R2)."""
        return self._operate(Verb.RELEASE, jobs, reason)

    def retry(self, jobs: Sequence[str], reason: str | None = None) -> list[Moved]:
        """Make cancelled and discarded jobs available again, with fresh counts."""
        return self._operate(Verb.RETRY, jobs, reason)

    def _operate(self, verb: Verb, jobs: Sequence[str], reason: str | None) -> list[Moved]:
        return self._driver.do(self._verbs.operate, verb, check_ids(jobs), kept_reason(reason))

    def prune(self, before: float, *, limit: int = 1000, after: str | None = None) -> Pruned:
        """Remove jobs that ended more than `before` seconds ago, one step of `limit` rows."""
        return self._driver.do(self._verbs.prune, before, limit=limit, after=after)

    def queues(self) -> list[QueueCounts]:
        """Count the live jobs of each queue."""
        return self._driver.do(self._verbs.queues)

    def workers(self) -> list[WorkerRecord]:
        """List the workers that reported themselves."""
        return self._driver.do(self._verbs.workers)

    def guard(self, owner: str, token: Token) -> Answer:
        """Lock the token's job until the transaction ends (D1)."""
        return self._driver.do(self._verbs.guard, owner, token)

    def lift_floor(self, generation: int) -> Admission:
        """Raise the floor to a generation that a destination has met (R41)."""
        return self._driver.do(self._verbs.lift_floor, generation)

    def recover(self) -> Admission:
        """Raise the generation floor by hand, after a restore that nothing can notice (R41)."""
        return self._driver.do(self._verbs.recover)

    def close(self) -> None:
        """Give connections back."""
        self._driver.close()


class AsyncClient:
    """Everything that can be asked of a store, asynchronously."""

    def __init__(self, driver: AsyncDriver, verbs: Verbs) -> None:
        self._driver = driver
        self._verbs = verbs

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Store new jobs, all or none; raises Unavailable or OutcomeUnknown, after which repeating is harmless."""
        return await self._driver.do(self._verbs.enqueue, jobs)

    async def claim_named(self, claimer: Claimer, job: str, duration: float, *, create: bool) -> Claimed:
        """Take one job by its id; raises LeaseHeld, NotAllowed or NotFound."""
        return await self._driver.do(self._verbs.claim_named, claimer, job, duration, create=create)

    async def renew(self, owner: str, tokens: Sequence[Token], duration: float | None = None) -> list[Answer]:
        """Prolong leases; answers only for those that were not renewed."""
        return await self._driver.do(self._verbs.renew, owner, tokens, duration)

    async def settle(self, owner: str, endings: Sequence[Ending]) -> list[Answer]:
        """End runs under their tokens."""
        return await self._driver.do(self._verbs.settle, owner, endings)

    async def progress(self, owner: str, token: Token, value: str) -> Answer:
        """Store a progress value, as JSON text."""
        return await self._driver.do(self._verbs.progress, owner, token, value)

    async def recall_step(self, job: str, step: str) -> str | None:
        """Look up the remembered result of a named effect, as JSON text."""
        return await self._driver.do(self._verbs.recall_step, job, step)

    async def record_step(self, owner: str, token: Token, step: str, result: str) -> Answer:
        """Remember the result of a named effect, as JSON text."""
        return await self._driver.do(self._verbs.record_step, owner, token, step, result)

    async def get(self, job: str) -> JobRecord:
        """Show one job; raises NotFound."""
        return await self._driver.do(self._verbs.get, job)

    async def history(self, job: str) -> list[HistoryEntry]:
        """Tell the abnormal turns of a job's life, oldest first."""
        return await self._driver.do(self._verbs.history, job)

    async def find(
        self, which: Filter, *, limit: int = 100, after: str | None = None, newest_first: bool = True
    ) -> list[JobRecord]:
        """List jobs by id, page by page, without arguments, results, progress, and messages of failures."""
        return await self._driver.do(self._verbs.find, which, limit=limit, after=after, newest_first=newest_first)

    async def cancel(self, jobs: Sequence[str], reason: str | None = None) -> list[Moved]:
        """Cancel jobs that wait or run; a running one's owner is stale from now on (R2)."""
        return await self._operate(Verb.CANCEL, jobs, reason)

    async def discard(self, jobs: Sequence[str], reason: str | None = None) -> list[Moved]:
        """Put jobs among the dead letters; a running one's owner is stale from now on (R2)."""
        return await self._operate(Verb.DISCARD, jobs, reason)

    async def release(self, jobs: Sequence[str], reason: str | None = None) -> list[Moved]:
        """Take running jobs away from their owners and make them available again (R2)."""
        return await self._operate(Verb.RELEASE, jobs, reason)

    async def retry(self, jobs: Sequence[str], reason: str | None = None) -> list[Moved]:
        """Make cancelled and discarded jobs available again, with fresh counts."""
        return await self._operate(Verb.RETRY, jobs, reason)

    async def _operate(self, verb: Verb, jobs: Sequence[str], reason: str | None) -> list[Moved]:
        return await self._driver.do(self._verbs.operate, verb, check_ids(jobs), kept_reason(reason))

    async def prune(self, before: float, *, limit: int = 1000, after: str | None = None) -> Pruned:
        """Remove jobs that ended more than `before` seconds ago, one step of `limit` rows."""
        return await self._driver.do(self._verbs.prune, before, limit=limit, after=after)

    async def queues(self) -> list[QueueCounts]:
        """Count the live jobs of each queue."""
        return await self._driver.do(self._verbs.queues)

    async def workers(self) -> list[WorkerRecord]:
        """List the workers that reported themselves."""
        return await self._driver.do(self._verbs.workers)

    async def guard(self, owner: str, token: Token) -> Answer:
        """Lock the token's job until the transaction ends (D1)."""
        return await self._driver.do(self._verbs.guard, owner, token)

    async def lift_floor(self, generation: int) -> Admission:
        """Raise the floor to a generation that a destination has met (R41)."""
        return await self._driver.do(self._verbs.lift_floor, generation)

    async def recover(self) -> Admission:
        """Raise the generation floor by hand, after a restore that nothing can notice (R41)."""
        return await self._driver.do(self._verbs.recover)

    async def close(self) -> None:
        """Give connections back."""
        await self._driver.close()
