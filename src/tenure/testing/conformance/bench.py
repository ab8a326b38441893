"""What a case is given: a store under test, driven in one of four modes that the case does not see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, ParamSpec, Protocol, TypeVar

import pytest

from tenure.ids import new_job_id, new_owner
from tenure.protocol.job import Answer, Claimed, Claimer, Ending, HistoryEntry, JobRecord, Moved, NewJob, Wanted
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.protocol.op import Op, Request, arun, run
from tenure.store import driver
from tenure.store.contract import AsyncDriver, AsyncSession, Driver, Harness, Session, Store, Verbs
from tenure.testing.conformance.tamper import Tampering, atampered, tampered

P = ParamSpec("P")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)

TIMEOUT: Final = 20.0
TASK: Final = "work"
QUEUE: Final = "default"
LEASE: Final = 30.0
LATE: Final = 4.0
"""Seconds for which a machine may stand still between two lines of a case."""
EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)


class Mode(StrEnum):
    """How verbs are driven: blocking or in an event loop, on own connections or in the caller's transaction."""

    SYNC = "sync"
    ASYNC = "async"
    SYNC_JOINED = "sync-joined"
    ASYNC_JOINED = "async-joined"


OWN: Final = (Mode.SYNC, Mode.ASYNC)
JOINED: Final = (Mode.SYNC_JOINED, Mode.ASYNC_JOINED)


class StoreUnderTest(Store, Harness, Protocol):
    """What the suite needs of a store: the contract, and a clock that can be moved."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A fresh store, and what its author adds for the suite.

    `session` makes the sessions of its blocking driver, to tamper with them, and `asession` those of its asynchronous
    one; None where that runs whole verbs in a thread. `transaction` and `atransaction` open a caller's transaction, to
    be committed when its block ends well. `set_floor` puts the floor to a number, to come near the largest generation
    (R4). `one_transaction` says whether a session is one transaction, or each of its requests is one.
    """

    store: StoreUnderTest
    session: Session
    asession: AsyncSession | None
    transaction: Callable[[], AbstractContextManager[object]]
    atransaction: Callable[[], AbstractAsyncContextManager[object]]
    set_floor: Callable[[int], None]
    one_transaction: bool = True


@dataclass(frozen=True, slots=True)
class Act(Request[R_co]):
    """One verb with its arguments: what a member of a crowd asks to have done."""

    verb: Callable[..., Op[R_co]]
    args: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that can be seen of a job, apart from the time that passes."""

    record: JobRecord
    lease_end: float | None
    history: tuple[HistoryEntry, ...]

    def assert_same_job(self, other: Snapshot) -> None:
        """Assert that the job itself was not changed in between; its history may have grown."""
        assert other.record == self.record
        assert other.lease_end == pytest.approx(self.lease_end, abs=0.25)

    def assert_same(self, other: Snapshot) -> None:
        """Assert that nothing was changed in between."""
        self.assert_same_job(other)
        assert other.history == self.history


class Bench:
    """A store under test in one mode; `do` runs a verb to its end, whatever the mode."""

    def __init__(self, subject: Subject, mode: Mode, runner: asyncio.Runner) -> None:
        self.subject = subject
        self.mode = mode
        self.store = subject.store
        self._runner = runner
        self._driver = self.store.connect(timeout=TIMEOUT)
        self._adriver = self.store.aconnect(timeout=TIMEOUT)

    @property
    def verbs(self) -> Verbs:
        """The verbs of the store under test."""
        return self.store.verbs

    def do(self, verb: Callable[P, Op[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one verb as one transaction."""
        if self.mode in (Mode.ASYNC, Mode.ASYNC_JOINED):
            return self._wait(self._ado(self._adriver, verb, *args, **kwargs))
        return self._do(self._driver, verb, *args, **kwargs)

    @contextmanager
    def transaction(self) -> Iterator[Driver]:
        """Open one caller's transaction and drive several verbs in it."""
        if self.mode is Mode.SYNC_JOINED:
            with self.subject.transaction() as connection:
                yield self.store.join(connection)
        else:
            with self._entered(self.subject.atransaction()) as connection:
                yield _Blocking(self.store.ajoin(connection), self._wait)

    def crowd(self, members: Sequence[Op[T]]) -> list[T]:
        """Run operations that ask for `Act`s side by side, each with a driver of its own: in threads, or as tasks."""
        if self.mode in (Mode.ASYNC, Mode.ASYNC_JOINED):
            return self._wait(self._acrowd(members))
        with ThreadPoolExecutor(len(members)) as pool:
            return [future.result(TIMEOUT * 3) for future in [pool.submit(self._member, one) for one in members]]

    def tampered(self, tampering: Tampering) -> Driver:
        """Make a driver on own connections whose session fails as `tampering` says."""
        if self.mode is Mode.ASYNC and self.subject.asession is not None:
            asession = atampered(self.subject.asession, tampering)
            return _Blocking(driver.AsyncDriver(asession, timeout=TIMEOUT), self._wait)
        return driver.SyncDriver(tampered(self.subject.session, tampering), timeout=TIMEOUT)

    def close(self) -> None:
        """Give the drivers' connections back."""
        self._driver.close()
        self._wait(self._adriver.close())

    def shift(self, seconds: float) -> None:
        """Move the store's clock."""
        self.store.shift_clock(seconds)

    # -- what nearly every case needs

    def worker(self, name: str = "ada") -> Worker:
        """Start a worker: an owner of its own with a readable name."""
        return Worker(self, name)

    def enqueue(self, **fields: Any) -> str:
        """Enqueue one job of the task `work` and return its id."""
        [stored] = self.do(self.verbs.enqueue, [new_job(**fields)])
        assert stored.created
        return stored.id

    def get(self, job: str) -> JobRecord:
        """Show one job."""
        return self.do(self.verbs.get, job)

    def history(self, job: str) -> list[HistoryEntry]:
        """Tell a job's history."""
        return self.do(self.verbs.history, job)

    def operate(self, verb: Verb, *jobs: str, reason: str | None = None) -> list[Moved]:
        """Act as an operator."""
        return self.do(self.verbs.operate, verb, jobs, reason)

    def move(self, verb: Verb, job: str) -> None:
        """Act as an operator on one job, and see that it moved."""
        [moved] = self.operate(verb, job)
        assert moved.moved, moved

    def snapshot(self, job: str) -> Snapshot:
        """Note all that can be seen of a job."""
        seen = self.get(job)
        remaining = seen.lease_remaining
        end = None if remaining is None else seen.now.timestamp() + remaining
        return Snapshot(replace(seen, now=EPOCH, lease_remaining=None), end, tuple(self.history(job)))

    def _wait(self, awaitable: Awaitable[T]) -> T:
        async def awaited() -> T:
            return await awaitable

        return self._runner.run(awaited())

    def _do(self, driver: Driver, verb: Callable[P, Op[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        if self.mode is not Mode.SYNC_JOINED:
            return driver.do(verb, *args, **kwargs)
        with self.subject.transaction() as connection:
            return self.store.join(connection).do(verb, *args, **kwargs)

    async def _ado(self, driver: AsyncDriver, verb: Callable[P, Op[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        if self.mode is not Mode.ASYNC_JOINED:
            return await driver.do(verb, *args, **kwargs)
        async with self.subject.atransaction() as connection:
            return await self.store.ajoin(connection).do(verb, *args, **kwargs)

    def _member(self, member: Op[T]) -> T:
        with closing(self.store.connect(timeout=TIMEOUT)) as driver:
            return run(member, lambda act: self._act(driver, act))

    def _act(self, driver: Driver, act: Any) -> Any:
        return self._do(driver, act.verb, *act.args)

    async def _amember(self, member: Op[T]) -> T:
        driver = self.store.aconnect(timeout=TIMEOUT)
        try:
            return await arun(member, lambda act: self._aact(driver, act))
        finally:
            await driver.close()

    async def _aact(self, driver: AsyncDriver, act: Any) -> Any:
        await asyncio.sleep(0)  # lets the others in between, also where a verb never has to wait
        return await self._ado(driver, act.verb, *act.args)

    async def _acrowd(self, members: Sequence[Op[T]]) -> list[T]:
        return await asyncio.gather(*(self._amember(member) for member in members))

    @contextmanager
    def _entered(self, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
        with ExitStack() as stack:
            value = self._wait(manager.__aenter__())
            stack.push(lambda *raised: bool(self._wait(manager.__aexit__(*raised))))
            yield value


class Worker:
    """One start of a worker at a bench."""

    def __init__(self, bench: Bench, name: str) -> None:
        self.bench = bench
        self.name = name
        self.claimer = Claimer(new_owner(), name)
        self.owner = self.claimer.owner

    def claim(self, limit: int = 1, **fields: Any) -> list[Claimed]:
        """Claim jobs of the task `work` from the queue `default`, unless `fields` say otherwise."""
        return self.bench.do(self.bench.verbs.claim, self.claimer, wanted(limit, **fields))

    def claim_one(self) -> Claimed:
        """Claim the one job that there is to claim."""
        [claimed] = self.claim()
        return claimed

    def take(self, job: str, duration: float = LEASE, *, create: bool = False) -> Claimed:
        """Claim one job by its id."""
        return self.bench.do(self.bench.verbs.claim_named, self.claimer, job, duration, create=create)

    def renew(self, *held: Claimed | Token, duration: float | None = None) -> list[Answer]:
        """Renew leases."""
        return self.bench.do(self.bench.verbs.renew, self.owner, [token(one) for one in held], duration)

    def end(self, held: Claimed | Token, verb: Verb, **fields: Any) -> Answer:
        """End one run."""
        [answer] = self.bench.do(self.bench.verbs.settle, self.owner, [Ending(token(held), verb, **fields)])
        return answer

    def complete(self, held: Claimed | Token, result: str = "null") -> Answer:
        """Complete one run."""
        return self.end(held, Verb.COMPLETE, result=result)

    def progress(self, held: Claimed | Token, value: str) -> Answer:
        """Store a progress value."""
        return self.bench.do(self.bench.verbs.progress, self.owner, token(held), value)

    def record(self, held: Claimed | Token, step: str, result: str) -> Answer:
        """Remember a step."""
        return self.bench.do(self.bench.verbs.record_step, self.owner, token(held), step, result)

    def held(self) -> list[Token]:
        """Ask what the store says that this worker holds."""
        return self.bench.do(self.bench.verbs.held, self.owner)


def new_job(**fields: Any) -> NewJob:
    """Describe a job of the task `work`."""
    return NewJob(**{"id": new_job_id(), "task": TASK, **fields})


def wanted(limit: int = 1, **fields: Any) -> Wanted:
    """Describe a claim for the task `work` from the queue `default`."""
    return Wanted(**{"queues": (QUEUE,), "tasks": (TASK,), "limit": limit, **fields})


def token(held: Claimed | Token) -> Token:
    """Return the fencing token of what was claimed."""
    return held if isinstance(held, Token) else Token(held.id, held.generation)


@contextmanager
def open_bench(subject: Subject, mode: Mode) -> Iterator[Bench]:
    """Make a bench and close it at the end."""
    with asyncio.Runner() as runner, closing(Bench(subject, mode, runner)) as bench:
        yield bench


def bench_fixture(*modes: Mode) -> Any:
    """Make a pytest fixture of benches over `modes`, for the store that the fixture named `subject` returns."""

    @pytest.fixture(params=modes, ids=str)
    def bench(subject: Subject, request: pytest.FixtureRequest) -> Iterator[Bench]:
        with open_bench(subject, request.param) as opened:
            yield opened

    return bench


class _Blocking:
    """An asynchronous driver whose every verb is waited for."""

    def __init__(self, driver: AsyncDriver, wait: Callable[[Awaitable[Any]], Any]) -> None:
        self._driver = driver
        self._wait = wait

    def do(self, verb: Callable[P, Op[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        answer: T = self._wait(self._driver.do(verb, *args, **kwargs))
        return answer

    def close(self) -> None:
        self._wait(self._driver.close())
