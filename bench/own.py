"""Tenure as an entrant, as a user would run it: its settings are its defaults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from bench.board import mark
from bench.entrant import Entrant, Handler, Role
from tenure import App
from tenure.task import Task


class Own(Entrant):
    """Tenure."""

    name = "Tenure"
    role: ClassVar[Role] = "tenure"
    distribution = library = "tenure"
    handlers: ClassVar[tuple[Handler, ...]] = ("async", "thread", "process")
    lease = "by a lease of 30 s for each job, looked for within 1 s of its end"
    soon: ClassVar[str]
    """A moment that everything due is before, in SQL."""

    def __init_subclass__(cls) -> None:
        """Count the jobs that are due or running, each by the index that is there for it."""
        super().__init_subclass__()
        cls.left = (
            "SELECT (SELECT count(*) FROM tenure_jobs WHERE state = 'running') + (SELECT count(*) FROM tenure_jobs"  # noqa: S608
            f" WHERE state = 'available' AND queue = 'default' AND priority = 0 AND run_at <= {cls.soon})"
        )

    def store_address(self, address: str) -> str:
        """Return the address in the form that Tenure knows."""
        return address

    def _app(self, address: str) -> App:
        return App(self.store_address(address))

    def prepare(self, address: str) -> None:
        """Migrate."""
        self._app(address).store.migrate()

    def singles(self, address: str, numbers: Iterable[int]) -> None:
        """Enqueue by `Task.enqueue`."""
        noop = _noop(self._app(address), "async")
        noop.app.client.queues()  # connects
        for number in numbers:
            noop.enqueue(number=number)

    def bulk(self, address: str, batches: Iterable[Sequence[int]]) -> None:
        """Enqueue by `Task.enqueue_many`."""
        noop = _noop(self._app(address), "async")
        noop.app.client.queues()
        for numbers in batches:
            noop.enqueue_many([{"number": number} for number in numbers])

    def work(self, address: str, handler: Handler) -> None:
        """Run a worker."""
        if handler == "process":
            from bench.own_process import app

            app.use_store(self.store_address(address))
        else:
            app = self._app(address)
            _noop(app, handler)
        app.worker().run()


class OwnOnPostgres(Own):
    """Tenure on PostgreSQL."""

    store = "postgresql"
    soon = "clock_timestamp() + interval '1 hour'"


class OwnOnSqlite(Own):
    """Tenure on SQLite."""

    store = "sqlite"
    soon = "(unixepoch() + 3600) * 1000"

    def store_address(self, address: str) -> str:
        """Make an address of a path."""
        return f"sqlite:///{address}"


def _noop(app: App, handler: Handler) -> Task[Any, Any, Any]:
    if handler == "async":

        @app.task
        async def noop(number: int) -> None:
            mark(number)

        return noop

    @app.task(name="noop")
    def plain_noop(number: int) -> None:
        mark(number)

    return plain_noop
