"""The way from the program under test to its store: a test can cut it, or let every answer be lost on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ParamSpec, Self, TypeVar

from tenure.errors import OutcomeUnknown, Unavailable
from tenure.protocol.op import Op
from tenure.store.contract import AsyncDriver, Driver, Store, Verbs

P = ParamSpec("P")
T = TypeVar("T")


class Line:
    """What every driver of one kit goes through."""

    def __init__(self) -> None:
        self.cut = False
        self.loses_answers = False

    @contextmanager
    def request(self) -> Iterator[None]:
        """Let one request through, or say what became of it."""
        if self.cut:
            raise Unavailable("nothing was done: the test has cut the store off")
        try:
            yield
        finally:
            if self.loses_answers:
                raise OutcomeUnknown("the answer was lost: the test lets no answer of the store through")

    def mend(self) -> None:
        """Let everything through from now on."""
        self.cut = self.loses_answers = False


class Cut:
    """A disturbance that is in force until `mend` is called, or until the end of a ``with`` block."""

    def __init__(self, mend: Callable[[], None]) -> None:
        self.mend = mend

    def __enter__(self) -> Self:
        """Do nothing: it is in force already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Mend."""
        self.mend()


class LineDriver:
    """A driver whose requests go over a line; `enqueued` is called after each enqueue."""

    def __init__(self, driver: Driver, line: Line, enqueued: Callable[[], None] | None = None) -> None:
        self._driver = driver
        self._line = line
        self._enqueued = enqueued

    def do(self, verb: Callable[P, Op[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `verb` as one transaction, if the line lets it through."""
        with self._line.request():
            answer = self._driver.do(verb, *args, **kwargs)
        if self._enqueued is not None and verb.__name__ == Verbs.enqueue.__name__:
            self._enqueued()
        return answer

    def close(self) -> None:
        """Give connections back."""
        self._driver.close()


class AsyncLineDriver:
    """An asynchronous driver whose requests go over a line; the twin of `LineDriver`."""

    def __init__(self, driver: AsyncDriver, line: Line, enqueued: Callable[[], Awaitable[None]] | None = None) -> None:
        self._driver = driver
        self._line = line
        self._enqueued = enqueued

    async def do(self, verb: Callable[P, Op[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `verb` as one transaction, if the line lets it through."""
        with self._line.request():
            answer = await self._driver.do(verb, *args, **kwargs)
        if self._enqueued is not None and verb.__name__ == Verbs.enqueue.__name__:
            await self._enqueued()
        return answer

    async def close(self) -> None:
        """Give connections back."""
        await self._driver.close()


class LineStore:
    """A store that is reached over a line; everything but the drivers is the store's own."""

    def __init__(
        self,
        store: Store,
        line: Line,
        enqueued: Callable[[], None],
        enqueued_async: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._line = line
        self._enqueued = enqueued
        self._enqueued_async = enqueued_async

    def connect(self, *, timeout: float, repeat_unknown: bool = False) -> LineDriver:
        """Open a driver that threads may share."""
        return LineDriver(
            self._store.connect(timeout=timeout, repeat_unknown=repeat_unknown), self._line, self._enqueued
        )

    def dedicated(self, *, timeout: float) -> LineDriver:
        """Open a driver for one thread."""
        return LineDriver(self._store.dedicated(timeout=timeout), self._line, self._enqueued)

    def aconnect(self, *, timeout: float, repeat_unknown: bool = False) -> AsyncLineDriver:
        """Open an asynchronous driver."""
        driver = self._store.aconnect(timeout=timeout, repeat_unknown=repeat_unknown)
        return AsyncLineDriver(driver, self._line, self._enqueued_async)

    def join(self, connection: object) -> LineDriver:
        """Drive verbs inside the caller's own open transaction; nothing is run before that has committed."""
        return LineDriver(self._store.join(connection), self._line)

    def ajoin(self, connection: object) -> AsyncLineDriver:
        """Drive verbs inside the caller's own open transaction; the twin of `join`."""
        return AsyncLineDriver(self._store.ajoin(connection), self._line)

    @contextmanager
    def transaction(self, *args: Any) -> Iterator[Any]:
        """Open a transaction of a memory store; what it enqueued has been committed when this ends."""
        store: Any = self._store
        with store.transaction(*args) as connection:
            yield connection
        self._enqueued()

    @asynccontextmanager
    async def atransaction(self, *args: Any) -> AsyncIterator[Any]:
        """Open a transaction of a memory store; the twin of `transaction`."""
        store: Any = self._store
        async with store.atransaction(*args) as connection:
            yield connection
        await self._enqueued_async()

    def __getattr__(self, name: str) -> Any:
        """Give what is the store's own."""
        return getattr(self._store, name)
