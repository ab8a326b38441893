"""Raises the fences that a task declares, before its handler runs, so that nobody has to remember it.

A write of an earlier owner that arrives after the new owner has read would be lost to it, or worse; once the fence is
raised none gets in (R32).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from tenure.errors import StaleToken
from tenure.protocol.ending import Snooze
from tenure.protocol.events import Kind
from tenure.protocol.lease import Token
from tenure.store.contract import FLOOR_STEP
from tenure.worker.context import Job

R = TypeVar("R")

FURTHEST = 1000 * FLOOR_STEP
"""How far a destination may be ahead for the store to follow it; further, somebody wrote nonsense there (R38)."""


class Fence(Protocol):
    """A destination that a task may declare. It may have an asynchronous twin, `raise_to_async`."""

    def raise_to(self, token: Token, /) -> object:
        """Announce the owner of `token` there; raises StaleToken when a newer one was there."""
        ...


def is_fence(candidate: object) -> bool:
    """Tell whether `candidate` can be raised with a token alone."""
    method = getattr(candidate, "raise_to", None)
    if not callable(method):
        return False
    try:
        inspect.signature(method).bind(Token("job", 1))
    except TypeError:
        return False
    return True


def announced(job: Job, fences: Sequence[Fence], call: Callable[[], R]) -> R:
    """Raise every fence, then call."""
    for fence in fences:
        try:
            job.check()
            fence.raise_to(job.token)
        except StaleToken as stale:
            job.verify()
            if _behind(job, stale):
                job.lift_floor(stale.current or 0)
                raise _come_back(job, stale) from stale
            raise
    return call()


async def announced_async(job: Job, fences: Sequence[Fence], call: Callable[[], Awaitable[R]]) -> R:
    """Raise every fence without blocking the loop, then call; the twin of `announced`."""
    for fence in fences:
        try:
            job.check()
            await _raise(fence, job.token)
        except StaleToken as stale:
            await asyncio.to_thread(job.verify)
            if _behind(job, stale):
                await asyncio.to_thread(job.lift_floor, stale.current or 0)
                raise _come_back(job, stale) from stale
            raise
    return await call()


async def _raise(fence: Any, token: Token) -> None:
    if hasattr(fence, "raise_to_async"):
        await fence.raise_to_async(token)
    else:
        await asyncio.to_thread(fence.raise_to, token)


def _behind(job: Job, stale: StaleToken) -> bool:
    """Whether the store, which says that this run is the owner, has been set back behind its destination (R41)."""
    ahead = (stale.current or 0) - job.generation
    return (stale.job, stale.generation) == (job.id, job.generation) and 0 < ahead <= FURTHEST


def _come_back(job: Job, stale: StaleToken) -> Snooze:
    reason = f"a destination has met generation {stale.current}: claims start above it from now on"
    job.tell(Kind.FLOOR_RAISED, reason)
    return Snooze(0.0, reason)
