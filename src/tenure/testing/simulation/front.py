"""The store as one process sees it: drivers, bell and checks, over links of the process's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from tenure.errors import Misuse
from tenure.protocol.op import Op, Request, ask
from tenure.store.contract import Bell, Execute, Verbs
from tenure.store.driver import SyncDriver
from tenure.testing.simulation.threads import Event

if TYPE_CHECKING:
    from tenure.testing.simulation.process import Process


class Whole(Request[Any]):
    """A whole operation, sent as one message: a store executes it as one transaction."""

    __slots__ = ("args", "kwargs", "verb")

    def __init__(self, verb: Callable[..., Op[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.verb = verb
        self.args = args
        self.kwargs = kwargs


class Wire:
    """A connection of one thread's own: each operation is one message, which `do` has executed."""

    def __init__(self, process: Process, timeout: float) -> None:
        self.do = partial(process.ask_store, timeout)

    def close(self) -> None:
        """Nothing is kept open."""


class Repeating:
    """A driver for a program's own requests: the real one, which repeats what got no answer; its sessions too."""

    def __init__(self, process: Process, timeout: float) -> None:
        self._process = process
        self._timeout = timeout * 0.4
        self._driver = SyncDriver(
            lambda: self,
            timeout=timeout,
            repeat_unknown=True,
            clock=process.boot,
            sleep=process.world.scheduler.sleep,
        )

    def __enter__(self) -> Execute:
        return self._execute

    def __exit__(self, *_: object) -> None:
        pass

    def _execute(self, whole: Request[Any]) -> Any:
        assert isinstance(whole, Whole)
        return self._process.ask_store(self._timeout, whole.verb, *whole.args, **whole.kwargs)

    def do(self, verb: Callable[..., Op[Any]], *args: Any, **kwargs: Any) -> Any:
        """Have an operation executed, again while its answer is lost."""
        return self._driver.do(lambda: ask(Whole(verb, args, kwargs)))

    def close(self) -> None:
        """Nothing is kept open."""


class QuietBell:
    """A bell that rings when the store says so."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._rang = Event(process.world.scheduler)
        process.bells.append(self)

    def ring(self) -> None:
        """Ring."""
        self._rang.set()

    wake = ring

    def wait(self, seconds: float) -> bool:
        """Wait for a ring."""
        rang = self._rang.wait(seconds)
        self._rang.clear()
        return rang

    def close(self) -> None:
        """Stop listening."""


class Front:
    """The store as one process sees it, over its own links."""

    name = "simulated"
    durability = "simulated"
    capabilities = frozenset({"bell"})

    def __init__(self, process: Process) -> None:
        self._process = process

    @property
    def verbs(self) -> Verbs:
        """The store's verbs."""
        return self._process.world.server.verbs

    def connect(self, *, timeout: float, repeat_unknown: bool = False) -> Wire | Repeating:
        """Open a driver."""
        limit = self._limit(timeout)
        return Repeating(self._process, limit) if repeat_unknown else Wire(self._process, timeout)

    def dedicated(self, *, timeout: float) -> Wire:
        """Open a driver for one thread."""
        return Wire(self._process, self._limit(timeout))

    def _limit(self, timeout: float) -> float:
        patience = self._process.world.plan.patience
        return timeout if timeout < patience else patience

    def bell(self) -> Bell:
        """Open a bell."""
        return QuietBell(self._process)

    def check(self) -> None:
        """Accept."""

    def close(self) -> None:
        """Nothing is kept open."""

    def aconnect(self, *, timeout: float, repeat_unknown: bool = False) -> NoReturn:
        """Refuse: handlers are plain functions here."""
        raise Misuse(f"no asyncio in virtual time ({timeout:g}, {repeat_unknown})")

    def join(self, connection: object) -> NoReturn:
        """Refuse: handlers have no transactions of their own here."""
        raise Misuse(f"{type(connection).__name__} is no connection of the simulation")

    ajoin = join

    def migrate(self) -> list[str]:
        """Return no migrations."""
        return []

    def pending_migrations(self) -> list[tuple[str, str]]:
        """Return no migrations."""
        return []
