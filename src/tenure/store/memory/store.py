"""The verbs as operations, and the sessions that drive them: one lock, commit at the end, rollback on any exception."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from tenure.clock import Clock, boot_clock
from tenure.errors import Misuse, Unavailable
from tenure.protocol.op import Op, Request, ask
from tenure.store.contract import AsyncSession, Execute, Session, Verbs
from tenure.store.driver import AsyncDriver, SyncDriver
from tenure.store.memory import jobs, leases, upkeep
from tenure.store.memory.world import Wall, World

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

AT_ONCE: Final = "at_once"
"""The attribute under which a verb has what it does to a world, for who needs no request."""

_POLL: Final = 0.0005


class Do(Request[R_co]):
    """The one request of every verb: something done to the world in one step."""

    __slots__ = ("act", "verb")

    def __init__(self, verb: str, act: Callable[[World], R_co]) -> None:
        self.verb = verb
        self.act = act


def _verb(function: Callable[Concatenate[World, P], R]) -> Callable[Concatenate[MemoryVerbs, P], Op[R]]:
    name = function.__name__

    def operation(_self: MemoryVerbs, /, *args: P.args, **kwargs: P.kwargs) -> Op[R]:
        return ask(Do(name, lambda world: function(world, *args, **kwargs)))

    operation.__name__ = name
    operation.__doc__ = function.__doc__
    setattr(operation, AT_ONCE, function)
    return operation


class MemoryVerbs:
    """Every verb as an operation of one request."""

    enqueue = _verb(jobs.enqueue)

    claim = _verb(leases.claim)
    claim_named = _verb(leases.claim_named)
    renew = _verb(leases.renew)
    settle = _verb(leases.settle)
    turn = _verb(leases.turn)
    outlook = _verb(leases.outlook)
    progress = _verb(leases.progress)
    guard = _verb(leases.guard)
    recall_step = _verb(leases.recall_step)
    record_step = _verb(leases.record_step)
    held = _verb(leases.held)

    get = _verb(jobs.get)
    history = _verb(jobs.history)
    find = _verb(jobs.find)
    operate = _verb(jobs.operate)
    prune = _verb(upkeep.prune)
    queues = _verb(jobs.queues)

    report = _verb(upkeep.report)
    forget = _verb(upkeep.forget)
    workers = _verb(upkeep.workers)
    admit = _verb(upkeep.admit)
    lift_floor = _verb(upkeep.lift_floor)
    recover = _verb(upkeep.recover)


class MemoryConnection:
    """A caller's open transaction: it holds the store's lock until its `with` block ends."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.open = True


class MemoryBell:
    """Rings after a commit that left a job waiting."""

    def __init__(self, tower: _Tower) -> None:
        self._tower = tower
        self._heard = tower.rings
        self._woken = False
        self._closed = False

    def wait(self, seconds: float) -> bool:
        """Wait until it rings or `seconds` have passed; True when it rang since the last wait."""
        with self._tower.changed:
            if self._closed:
                raise Unavailable("this bell is closed: open another one")
            self._tower.changed.wait_for(self._has_news, seconds)
            rang = self._tower.rings != self._heard
            self._heard, self._woken = self._tower.rings, False
            return rang

    def wake(self) -> None:
        """Make a waiting thread return at once."""
        with self._tower.changed:
            self._woken = True
            self._tower.changed.notify_all()

    def close(self) -> None:
        """Stop listening."""
        with self._tower.changed:
            self._closed = True
            self._tower.changed.notify_all()

    def _has_news(self) -> bool:
        return self._closed or self._woken or self._tower.rings != self._heard


class MemoryStore:
    """A store that lives in this process and ends with it; its clocks may be injected."""

    name = upkeep.NAME
    durability = "memory: nothing outlives the process"
    capabilities: Collection[str] = frozenset({"caller_transaction", "bell"})

    def __init__(self, *, clock: Clock = boot_clock, wall: Wall = lambda: datetime.now(UTC)) -> None:
        self.verbs: Verbs = MemoryVerbs()
        self._world = World(clock, wall)
        self._lock = threading.Lock()
        self._tower = _Tower()

    def connect(self, *, timeout: float, repeat_unknown: bool = False) -> SyncDriver:
        """Open a driver; no verb waits longer than `timeout` seconds for the store's lock."""
        return SyncDriver(self.session(timeout), timeout=timeout, repeat_unknown=repeat_unknown)

    def dedicated(self, *, timeout: float) -> SyncDriver:
        """Open a driver for one thread; there are no connections that others could occupy."""
        return self.connect(timeout=timeout)

    def aconnect(self, *, timeout: float, repeat_unknown: bool = False) -> AsyncDriver:
        """Open an asynchronous driver; the twin of `connect`."""
        return AsyncDriver(self.asession(timeout), timeout=timeout, repeat_unknown=repeat_unknown)

    def join(self, connection: object) -> SyncDriver:
        """Drive verbs inside the caller's own open transaction; raises Misuse for a connection of another kind."""
        joined = self._own(connection)
        return SyncDriver(lambda: self._savepoint(joined), timeout=0.0)

    def ajoin(self, connection: object) -> AsyncDriver:
        """Drive verbs inside the caller's own open transaction; the twin of `join`."""
        joined = self._own(connection)
        return AsyncDriver(lambda: _awaitable(self._savepoint(joined)), timeout=0.0)

    @contextmanager
    def transaction(self, wait: float = 5.0) -> Iterator[MemoryConnection]:
        """Open a caller's transaction: committed at the end of the block, rolled back when it raises.

        Raises Unavailable when another transaction holds the store for longer than `wait` seconds.
        """
        with self._locked(wait), self._kept():
            connection = MemoryConnection(self)
            try:
                yield connection
            finally:
                connection.open = False

    @asynccontextmanager
    async def atransaction(self, wait: float = 5.0) -> AsyncIterator[MemoryConnection]:
        """Open a caller's transaction; the twin of `transaction`."""
        async with self._alocked(wait):
            with self._kept():
                connection = MemoryConnection(self)
                try:
                    yield connection
                finally:
                    connection.open = False

    def session(self, timeout: float) -> Session:
        """Make the sessions of a driver: each is one transaction, waiting at most `timeout` seconds for the lock."""

        @contextmanager
        def opened() -> Iterator[Execute]:
            with self._locked(timeout), self._kept():
                yield self._execute

        return opened

    def asession(self, timeout: float) -> AsyncSession:
        """Make the sessions of an asynchronous driver; the twin of `session`."""

        @asynccontextmanager
        async def opened() -> AsyncIterator[Callable[[Request[Any]], Awaitable[Any]]]:
            async with self._alocked(timeout):
                with self._kept():
                    yield self._aexecute

        return opened

    def bell(self) -> MemoryBell:
        """Open a bell."""
        return MemoryBell(self._tower)

    def check(self) -> None:
        """Accept: a memory store promises nothing that it could lose."""

    def migrate(self) -> list[str]:
        """Return no migrations: there is no schema."""
        return []

    def pending_migrations(self) -> list[tuple[str, str]]:
        """Return no migrations: there is no schema."""
        return []

    def close(self) -> None:
        """Do nothing: there is no connection to close."""

    def shift_clock(self, seconds: float) -> None:
        """Move the store's clock forward."""
        self._world.shift += seconds

    def set_floor(self, floor: int) -> None:
        """Put the floor to a number, for tests that come near the largest generation."""
        with self._lock:
            self._world.numbers["floor"] = floor

    def now(self) -> datetime:
        """Read the store's clock."""
        return self._world.now().at

    def _own(self, connection: object) -> MemoryConnection:
        if not isinstance(connection, MemoryConnection) or connection.store is not self:
            raise Misuse(f"{type(connection).__name__} is no transaction of this memory store: use store.transaction()")
        return connection

    def _execute(self, request: Request[Any]) -> Any:
        if not isinstance(request, Do):
            raise Misuse(f"a memory store cannot answer {type(request).__name__}")
        return request.act(self._world)

    async def _aexecute(self, request: Request[Any]) -> Any:
        return self._execute(request)

    @contextmanager
    def _savepoint(self, connection: MemoryConnection) -> Iterator[Execute]:
        if not connection.open:
            raise Misuse("this transaction is over: open another one")
        mark = self._world.mark()
        try:
            yield self._execute
        except BaseException:
            self._world.roll_back(mark)
            raise

    @contextmanager
    def _kept(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._world.roll_back(0)
            raise
        finally:
            if self._world.commit():
                self._tower.ring()

    @contextmanager
    def _locked(self, timeout: float) -> Iterator[None]:
        if not self._lock.acquire(timeout=timeout):
            raise _busy(timeout)
        try:
            yield
        finally:
            self._lock.release()

    @asynccontextmanager
    async def _alocked(self, wait: float) -> AsyncIterator[None]:
        deadline = boot_clock() + wait
        while not self._lock.acquire(blocking=False):
            if boot_clock() >= deadline:
                raise _busy(wait)
            await asyncio.sleep(_POLL)
        try:
            yield
        finally:
            self._lock.release()


class _Tower:
    """Counts the rings that all bells of a store hear."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.rings = 0

    def ring(self) -> None:
        with self.changed:
            self.rings += 1
            self.changed.notify_all()


@asynccontextmanager
async def _awaitable(
    session: AbstractContextManager[Execute],
) -> AsyncIterator[Callable[[Request[Any]], Awaitable[Any]]]:
    with session as execute:

        async def aexecute(request: Request[Any]) -> Any:
            return execute(request)

        yield aexecute


def _busy(timeout: float) -> Unavailable:
    return Unavailable(f"the memory store was locked for {timeout:g} s by another transaction; try again")
