"""Awa: a core in Rust that appends and never updates; Python only for the handlers."""

# A peer need not be installed where this is checked.
# mypy: disable-error-code="import-not-found"
from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.board import mark
from bench.entrant import Entrant, Handler

SLOTS = 1024
CLAIMERS = 2


@dataclass
class Noop:
    """The arguments of a job, by whose name Awa finds the handler."""

    number: int


class Awa(Entrant):
    """Awa."""

    name = "Awa"
    store = "postgresql"
    distribution, library = "awa-pg", "awa"
    handlers = ("async",)
    settings = f"queue storage, {SLOTS:,} slots, {CLAIMERS} claimers, COPY in bulk"
    # Its view of jobs shows none that is claimed.
    weaker = "what it has not yet written at the end of a drain cannot be seen, and is not waited for"
    lease = "by a sign of life for each job, and an elected maintainer"
    left = "SELECT count(*) FROM awa.jobs WHERE state NOT IN ('completed', 'failed', 'cancelled')"

    def prepare(self, address: str) -> None:
        """Migrate."""
        from awa import Client

        with Client(address) as client:
            client.migrate()
            client.install_queue_storage()

    def singles(self, address: str, numbers: Iterable[int]) -> None:
        """Insert jobs."""
        from awa import Client

        with Client(address) as client:
            for number in numbers:
                client.insert(Noop(number))

    def bulk(self, address: str, batches: Iterable[Sequence[int]]) -> None:
        """Copy jobs in."""
        from awa import Client

        with Client(address) as client:
            for numbers in batches:
                client.enqueue_many_copy([Noop(number) for number in numbers])

    def work(self, address: str, handler: Handler) -> None:
        """Run its worker."""
        del handler

        async def serve() -> None:
            from awa import AsyncClient, Job

            client = AsyncClient(address, max_connections=20)

            async def noop(job: Job[Noop]) -> None:
                mark(job.args.number)

            client.task(Noop)(noop)
            await client.start([{"name": "default", "max_workers": SLOTS, "claimers": CLAIMERS}])
            await asyncio.Event().wait()

        asyncio.run(serve())
