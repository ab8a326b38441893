"""`App`: a program's tasks and its store, and how it owns things by lease."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar, overload

from tenure.client import AsyncClient, Client
from tenure.clock import boot_clock
from tenure.errors import BadSettings, Misuse
from tenure.hold import Hold
from tenure.ids import new_owner
from tenure.named import NamedLease
from tenure.options import Options
from tenure.protocol.events import Emitter
from tenure.protocol.job import Claimer
from tenure.protocol.lease import check_duration
from tenure.protocol.names import check_name
from tenure.protocol.retry import Backoff
from tenure.store.address import default_address, open_store
from tenure.store.contract import Store
from tenure.task import Task
from tenure.worker.context import Job
from tenure.worker.fencing import Fence

if TYPE_CHECKING:
    from tenure.worker.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")

REQUEST_TIMEOUT = 5.0
"""Seconds after which an enqueue gives up and says so (B07)."""


class App:
    """A program's tasks and its store; nothing is connected before it is needed.

    `store` is an address such as ``sqlite:///shop.db`` or ``postgresql://…`` (default: $TENURE_STORE), or an open
    store. `timeout` bounds every request in seconds.
    """

    def __init__(self, store: str | Store | None = None, *, timeout: float = REQUEST_TIMEOUT) -> None:
        self.timeout = timeout
        self.tasks: dict[str, Task[Any, Any, Any]] = {}
        self.events = Emitter()
        self.address = store if isinstance(store, str) else None
        self._store = open_store(store) if isinstance(store, str) else store
        self._client: Client | None = None
        self._aclient: AsyncClient | None = None
        self._owner: tuple[int, str] = (0, "")

    @property
    def store(self) -> Store:
        """The open store; raises BadSettings when none was named."""
        if self._store is None:
            self.address = default_address()
            self._store = open_store(self.address)
        return self._store

    def use_store(self, store: str | Store) -> None:
        """Use another store from now on, such as the one named on a command line."""
        self.address = store if isinstance(store, str) else None
        self._store = open_store(store) if isinstance(store, str) else store
        self._client = self._aclient = None

    @property
    def client(self) -> Client:
        """The blocking client; threads may share it."""
        if self._client is None:
            self._client = Client(self.store.connect(timeout=self.timeout, repeat_unknown=True), self.store.verbs)
        return self._client

    @property
    def aclient(self) -> AsyncClient:
        """The asynchronous client."""
        if self._aclient is None:
            self._aclient = AsyncClient(
                self.store.aconnect(timeout=self.timeout, repeat_unknown=True), self.store.verbs
            )
        return self._aclient

    def joined(self, connection: object) -> Client:
        """Return a client that works inside the caller's own open transaction."""
        return Client(self.store.join(connection), self.store.verbs)

    def ajoined(self, connection: object) -> AsyncClient:
        """Return an asynchronous client that works inside the caller's own open transaction."""
        return AsyncClient(self.store.ajoin(connection), self.store.verbs)

    @overload
    def task(self, function: Callable[Concatenate[Job, P], R], /) -> Task[Concatenate[Job, P], P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, P, R]: ...
    @overload
    def task(
        self,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: int = 0,
        lease: float = 30.0,
        max_attempts: int | None = 5,
        max_takeovers: int | None = 5,
        timeout: float | None = None,
        backoff: Backoff | None = None,
        isolation: Literal["process"] | None = None,
        secret: tuple[str, ...] = (),
        fences: Sequence[Fence] = (),
    ) -> _Decorator: ...
    def task(self, function: Callable[..., Any] | None = None, **options: Any) -> Any:
        """Register a function as a task, known by `name` (default: the function's own name).

        `lease` and `timeout` are seconds. `timeout` bounds one run; `max_attempts` bounds failed runs and
        `max_takeovers` lost workers, None for no bound. `isolation="process"` runs it in a child process that is killed
        at its time limit or when its lease is lost. Arguments named in `secret` are shown by no view. `fences` are the
        destinations of its effects: the worker raises each before the handler runs (R32).
        Raises BadSettings, Misuse for a signature that cannot be carried, and for a name that is taken.
        """
        if function is not None and not callable(function):
            raise BadSettings(f"@app.task({function!r}): a task's options have names, such as name={function!r}")
        if function is not None:
            return self._register(function)
        return lambda function: self._register(function, **options)

    def _register(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        backoff: Backoff | None = None,
        isolation: Literal["process"] | None = None,
        fences: Sequence[Fence] = (),
        **options: Any,
    ) -> Task[..., ..., Any]:
        own_name = name or function.__name__
        if own_name in self.tasks:
            raise Misuse(f"a task {own_name!r} is registered already: give one of them another name=")
        unknown = sorted(set(options) - set(Options.__slots__))
        if unknown:
            known = ", ".join(sorted({*Options.__slots__, "name", "backoff", "isolation", "fences"}))
            raise BadSettings(f"task {own_name} has no option {', '.join(unknown)}; there are {known}")
        task: Task[..., ..., Any] = Task(
            self,
            own_name,
            function,
            Options(**options),
            backoff=Backoff() if backoff is None else backoff,
            isolation=isolation,
            fences=fences,
        )
        self.tasks[own_name] = task
        return task

    def lease(self, name: str, *, duration: float = 30.0) -> NamedLease:
        """Own one named thing while a ``with`` (or ``async with``) block runs; renewed by itself, released at the end.

        Entering raises LeaseHeld when somebody else owns it.
        """
        return NamedLease(self, check_name("a lease's name", name), check_duration("the lease", duration))

    def claim(self, job: str, *, owner: str, duration: float = 30.0, create: bool = True) -> Hold:
        """Claim one job by its id, without a worker: the bare protocol; raises LeaseHeld, NotAllowed or NotFound.

        `owner` is a readable name. With `create`, an id that the store does not know becomes a bare lease.
        """
        claimer = Claimer(f"{owner}-{new_owner()}", check_name("an owner's name", owner))
        sent_at = boot_clock()
        claimed = self.client.claim_named(
            claimer, check_name("a job's id", job), check_duration("the lease", duration), create=create
        )
        return Hold(self.client, claimer, claimed, sent_at)

    async def claim_async(self, job: str, *, owner: str, duration: float = 30.0, create: bool = True) -> Hold:
        """Claim one job by its id without blocking the loop; the twin of `claim`."""
        return await asyncio.to_thread(self.claim, job, owner=owner, duration=duration, create=create)

    def worker(self, **settings: Any) -> Worker:
        """Make a worker for this app's tasks; its settings are those of `tenure.worker.settings.Settings`."""
        from tenure.worker.worker import Worker

        return Worker(self, **settings)

    @property
    def claimer(self) -> Claimer:
        """Who this process is when it owns named things: an identity of its own, also after a fork (R24)."""
        if self._owner[0] != os.getpid():
            self._owner = (os.getpid(), new_owner())
        return Claimer(self._owner[1], f"{os.uname().nodename}:{os.getpid()}")

    def close(self) -> None:
        """Close the connections that this app opened."""
        if self._store is not None:
            self._store.close()
        self._client = self._aclient = None


class _Decorator(Protocol):
    """The type of ``@app.task(...)``."""

    @overload
    def __call__(self, function: Callable[Concatenate[Job, P], R], /) -> Task[Concatenate[Job, P], P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, P, R]: ...
    def __call__(self, function: Callable[..., Any], /) -> Any:
        """Register `function`."""
        ...
