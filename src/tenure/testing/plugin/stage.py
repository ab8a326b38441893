"""`Stage`: an app on a store whose clock the test moves, and a worker that the test turns: what a `Kit` stands on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self, cast

from tenure.app import App
from tenure.client import Client
from tenure.clock import Clock, boot_clock
from tenure.errors import Misuse, TenureError, Unavailable
from tenure.hold import Hold
from tenure.ids import new_owner
from tenure.protocol.job import Claimer, Enqueued
from tenure.protocol.lease import DRIFT, MARGIN, Token
from tenure.store.address import open_store
from tenure.store.contract import Store
from tenure.store.memory import MemoryStore
from tenure.testing.plugin.hands import KitWorker, Ran
from tenure.testing.plugin.line import Cut, Line, LineStore
from tenure.worker.context import Job
from tenure.worker.run import Run

_MOST = 1000  # runs in one drain: a handler that snoozes for no time would never let it end
_PATIENCE = 0.05  # seconds that taking a job away waits for a transaction that guards it
_TRUST = 1.0 - DRIFT - MARGIN  # the part of a lease that its holder believes in
_OWN = ("address", "_store", "_client", "_aclient")  # what an app knows of its store


class Stage:
    """One app on one store, for one test.

    `store` is None for memory, an address, or an open store whose clock can be moved. Over memory the clock of the
    leases stands still; elsewhere it goes on, and is moved ahead.
    """

    def __init__(self, app: App, store: Store | str | None = None) -> None:
        self.app = app
        self._shift = 0.0
        self._base: Clock = _standing_still if store is None else boot_clock
        self._is_own = store is None or isinstance(store, str)
        self._store = _opened(store)
        self._line = Line()
        self._client = Client(self._store.connect(timeout=app.timeout), self._store.verbs)
        self._hasty = Client(self._store.connect(timeout=_PATIENCE), self._store.verbs)
        self._inline = False
        self._performing: list[tuple[KitWorker, Run]] = []
        self._here: ContextVar[Run | None] = ContextVar("run", default=None)  # whose handler, or part of one, asks
        self._left: list[KitWorker] = []  # workers with ends that the store has not taken yet
        self._started = 0
        self._passed: dict[Token, int] = {}

    def __enter__(self) -> Self:
        """Put the app on this store."""
        known = vars(self.app)
        self._before = {name: known[name] for name in _OWN}
        over = LineStore(self._store, self._line, self._enqueued, self._enqueued_async)
        self.app.use_store(cast("Store", over))
        return self

    def __exit__(self, *_: object) -> None:
        """Give the app back the store that it had."""
        for worker in self._left:
            worker.close()
        vars(self.app).update(self._before)
        if self._is_own:
            self._store.close()

    # -- running jobs

    def run_inline(self) -> None:
        """From now on run what is due after each enqueue, before it returns; see `drain` for what it raises.

        What a handler enqueues runs once that handler has ended, and what a transaction of the caller's own enqueues
        with the next enqueue or drain after its commit.
        """
        self._inline = True

    def drain(self, *queues: str, raises: bool = True) -> list[Ran]:
        """Let a worker run what is due in these queues, by default in all, one by one, until nothing is; tell the runs.

        A job whose lease has ended is taken over. Once all have run, the first error that ended a run as failed is
        raised, unless `raises` is False. Called from a handler, it is another worker that runs them.
        """
        with self._working() as worker:
            for run in self._due(worker, queues):
                with self._performed(worker, run):
                    if self._begins(run.lease.token):
                        self.lose()
                    worker.perform(run)
        return _told(worker, raises=raises)

    async def drain_async(self, *queues: str, raises: bool = True) -> list[Ran]:
        """Let a worker run what is due, async handlers on the loop of the test; the twin of `drain`."""
        with self._working() as worker:
            for run in self._due(worker, queues):
                with self._performed(worker, run):
                    if self._begins(run.lease.token):
                        await self.lose_async()
                    await worker.perform_async(run)
        return _told(worker, raises=raises)

    @property
    def job(self) -> Job:
        """The run in whose handler the test stands; raises Misuse outside of any."""
        return self._run().job

    # -- time

    def advance(self, seconds: float) -> None:
        """Let time pass, for the store and for whoever works: leases are renewed, and time limits are watched."""
        if seconds < 0:
            raise Misuse(f"seconds is {seconds:g}: the clock of a lease goes forward only")
        awake = [self._performing[-1][0]] if self._performing else self._left
        while awake and seconds > 0:
            step = min(seconds, *(worker.beat_interval() for worker in awake))
            self._move(step)
            seconds -= step
            for worker in awake:
                worker.keep()
        self._move(seconds)

    def pause(self, seconds: float | None = None) -> None:
        """Let the worker of the run under way stand still, by default for longer than its lease.

        Nothing is renewed meanwhile, and nobody tells the handler: it goes on where it was, as after a SIGCONT.
        """
        lease = self._run().lease
        longest = max(lease.duration, lease.remaining() / _TRUST)  # it may have been extended
        self._move(longest + 1.0 if seconds is None else seconds)

    # -- losses

    def take_over(self, job: Job | Enqueued | str | None = None, *, worker: str = "another worker") -> Hold:
        """Let another worker own a job from now on, by default that of the run under way: its generation rises.

        Whoever ran it is not told. The new owner does nothing but what the test does with the hold that is returned.
        """
        named = job if isinstance(job, str) else (job or self.job).id
        self._client.release([named], "taken over in a test")
        length = self._client.get(named).lease
        claimer, sent_at = Claimer(new_owner(), worker), boot_clock()
        return Hold(self._client, claimer, self._client.claim_named(claimer, named, length, create=False), sent_at)

    def cut_store(self) -> Cut:
        """Cut the app and its workers off from the store: every request raises Unavailable until the cut is mended."""
        self._line.cut = True
        return Cut(self._line.mend)

    def lose_answers(self) -> Cut:
        """Let the store carry requests out but lose its answers: each raises OutcomeUnknown until this is mended."""
        self._line.loses_answers = True
        return Cut(self._line.mend)

    def lose(self) -> None:
        """Let the worker of the run under way stand still for longer than its lease, and another run the job."""
        lost = self._taken_away()
        self._lost(lost=lost)
        if lost:
            self.pause()
            self.drain(raises=False)

    async def lose_async(self) -> None:
        """Let the run under way lose its lease to another worker; the twin of `lose`."""
        lost = self._taken_away()
        self._lost(lost=lost)
        if lost:
            self.pause()
            await self.drain_async(raises=False)

    def running(self) -> Token | None:
        """Return the token of the run under way."""
        return self._run().lease.token if self._performing else None

    def passes(self, token: Token) -> int:
        """Count the gates and guards that the handler of the run under way has passed."""
        before = len(self._run().task.fences)  # the worker passes one for each fence that it raises before the handler
        return max(0, self._passed.get(token, 0) - before)

    # -- what a kit on trial overrides

    def _begins(self, token: Token) -> bool:  # noqa: ARG002 -- nobody is on trial here
        return False

    def _lost(self, *, lost: bool) -> None:
        """Nobody is on trial here."""

    # -- within

    def _taken_away(self) -> bool:
        """Take the job of the run under way from its owner; False while a transaction guards it, or when it is over."""
        try:
            return self._hasty.release([self.job.id], "taken over in a test")[0].moved
        except Unavailable:
            return False

    def _now(self) -> float:
        return self._base() + self._shift

    def _move(self, seconds: float) -> None:
        store: Any = self._store
        store.shift_clock(seconds)
        self._shift += seconds

    def _run(self) -> Run:
        if not self._performing:
            raise Misuse("no run is under way: call this from inside a handler, or from what it calls")
        return self._here.get() or self._performing[-1][1]  # a thread of the handler's own may not know

    def _pass(self, token: Token) -> None:
        self._passed[token] = self._passed.get(token, 0) + 1

    def _enqueued(self) -> None:
        if self._inline and not self._performing:
            self.drain()

    async def _enqueued_async(self) -> None:
        if self._inline and not self._performing:
            await self.drain_async()

    @contextmanager
    def _working(self) -> Iterator[KitWorker]:
        worker = self._left.pop() if self._left else self._new_worker()
        dead = True  # as long as it can be left in the middle of a run
        try:
            yield worker
            dead = False
        except TenureError:
            dead = False
            raise
        finally:
            if dead or worker.idle():
                worker.close()
            else:
                self._left.append(worker)

    def _new_worker(self) -> KitWorker:
        self._started += 1
        worker = KitWorker(self.app, clock=self._now, name=f"kit-{self._started}", passed=self._pass)
        worker.start()
        return worker

    def _due(self, worker: KitWorker, queues: tuple[str, ...]) -> Iterator[Run]:
        """Yield the runs that are due, and give up on jobs that come back over and over."""

        def served() -> tuple[str, ...]:
            return queues or tuple(one.queue for one in self._client.queues()) or worker.queues

        for number, run in enumerate(worker.runs(served), 1):
            if number > _MOST:
                raise AssertionError(
                    f"{_MOST} jobs were run and more are due: does {run.task.name} snooze for no time?"
                )
            yield run

    @contextmanager
    def _performed(self, worker: KitWorker, run: Run) -> Iterator[None]:
        self._performing.append((worker, run))
        here = self._here.set(run)
        try:
            yield
        finally:
            self._here.reset(here)
            self._performing.remove((worker, run))  # what a handler left behind may still be under way


def _opened(store: Store | str | None) -> Store:
    if store is None:
        return MemoryStore(clock=_standing_still)
    opened = open_store(store) if isinstance(store, str) else store
    if not hasattr(opened, "shift_clock"):
        raise Misuse(f"the clock of {opened.name} cannot be moved: test on memory, or on a SQLite file")
    return opened


def _told(worker: KitWorker, *, raises: bool) -> list[Ran]:
    ran, worker.ran = worker.ran, []
    for one in ran:
        if raises and one.stored and one.failure is not None:
            error = one.error or AssertionError(f"{one.failure.type}: {one.failure.message}")
            error.add_note(f"in generation {one.generation} of job {one.job}, task {one.task}")
            raise error
    return ran


def _standing_still() -> float:
    return 0.0
