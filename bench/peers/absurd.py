"""Absurd: durable tasks as functions of PostgreSQL; its schema comes with its command line, `absurdctl`."""

# A peer need not be installed where this is checked.
# mypy: disable-error-code="import-not-found"
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bench.board import mark
from bench.entrant import Entrant, Handler
from bench.peers import loops

SLOTS = 100
POLL = 0.01


class Absurd(Entrant):
    """Absurd."""

    name = "Absurd"
    store = "postgresql"
    distribution, library = "absurd-sdk", "absurd_sdk"
    in_bulk = False
    settings = f"psycopg, uvloop, {SLOTS} slots, looks every {POLL:g} s (it comes with 0.25 s)"
    weaker = "a task keeps its own lease, by asking"
    lease = "when a claim is 120 s old"
    left = "SELECT count(*) FROM absurd.t_default WHERE state NOT IN ('completed', 'failed', 'cancelled')"

    def prepare(self, address: str) -> None:
        """Apply the schema and make the queue."""
        import psycopg
        from absurd_sdk import Absurd as Client
        from absurdctl import BUNDLED_SCHEMA_SQL

        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(BUNDLED_SCHEMA_SQL)
        Client(address).create_queue()

    def singles(self, address: str, numbers: Iterable[int]) -> None:
        """Spawn tasks."""
        from absurd_sdk import Absurd as Client

        client = Client(address)
        for number in numbers:
            client.spawn("noop", {"number": number}, queue="default")

    def work(self, address: str, handler: Handler) -> None:
        """Run its worker, asynchronous or with threads."""
        from absurd_sdk import Absurd as Client
        from absurd_sdk import AsyncAbsurd as AsyncClient

        async def noop(parameters: Any, _context: Any) -> None:
            mark(parameters["number"])

        def plain_noop(parameters: Any, _context: Any) -> None:
            mark(parameters["number"])

        if handler == "thread":
            client = Client(address)
            client.register_task("noop")(plain_noop)
            client.start_worker(concurrency=SLOTS, poll_interval=POLL)
            return
        async_client = AsyncClient(address)
        async_client.register_task("noop")(noop)
        loops.run(async_client.start_worker(concurrency=SLOTS, poll_interval=POLL))
