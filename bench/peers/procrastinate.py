"""Procrastinate: psycopg, one fetch and one finish a job."""

# A peer need not be installed where this is checked.
# mypy: disable-error-code="import-not-found"
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bench.board import mark
from bench.entrant import Entrant, Handler
from bench.peers import loops

SLOTS = 10


class Procrastinate(Entrant):
    """Procrastinate."""

    name = "Procrastinate"
    store = "postgresql"
    distribution = library = "procrastinate"
    settings = f"psycopg, uvloop, {SLOTS} slots"
    weaker = "completes by id and state: a late worker ends the run of its successor"
    lease = "never, without a periodic task that the user writes"
    left = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"

    def _app(self, address: str, handler: Handler) -> tuple[Any, Any]:
        from procrastinate import App, PsycopgConnector

        app = App(connector=PsycopgConnector(conninfo=address))

        async def noop(number: int) -> None:
            mark(number)

        return app, app.task(name="noop")(noop if handler == "async" else mark)

    def prepare(self, address: str) -> None:
        """Apply the schema."""

        async def apply() -> None:
            app, _ = self._app(address, "async")
            async with app.open_async():
                await app.schema_manager.apply_schema_async()

        loops.run(apply())

    def singles(self, address: str, numbers: Iterable[int]) -> None:
        """Defer jobs."""

        async def defer() -> None:
            app, noop = self._app(address, "async")
            async with app.open_async():
                for number in numbers:
                    await noop.defer_async(number=number)

        loops.run(defer())

    def bulk(self, address: str, batches: Iterable[Sequence[int]]) -> None:
        """Defer batches of jobs."""

        async def defer() -> None:
            app, noop = self._app(address, "async")
            async with app.open_async():
                for numbers in batches:
                    await noop.batch_defer_async(*({"number": number} for number in numbers))

        loops.run(defer())

    def work(self, address: str, handler: Handler) -> None:
        """Run its worker."""

        async def serve() -> None:
            app, _ = self._app(address, handler)
            async with app.open_async():
                await app.run_worker_async(concurrency=SLOTS, install_signal_handlers=False)

        loops.run(serve())
