"""Chancy: psycopg, claims as many jobs as it has free slots, writes ends in batches guarded by a claim's id."""

# A peer need not be installed where this is checked.
# mypy: disable-error-code="import-not-found"
from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from typing import Any

from bench.board import mark
from bench.entrant import Entrant, Handler
from bench.peers import loops

SLOTS = 100
PROCESSES = os.cpu_count() or 1
FLUSH = 0.1


async def noop(number: int) -> None:
    """Run one job; Chancy finds it by its name."""
    mark(number)


class Chancy(Entrant):
    """Chancy."""

    name = "Chancy"
    store = "postgresql"
    distribution = library = "chancy"
    handlers = ("async", "thread", "process")
    settings = (
        f"psycopg, uvloop, {SLOTS} slots or a process a core, eager polling, writes ends every {FLUSH:g} s (it comes"
        " with 1 s), logs warnings only"
    )
    lease = "every 60 s, jobs of workers not seen for 90 s"
    left = "SELECT count(*) FROM chancy_jobs WHERE state NOT IN ('succeeded', 'failed')"

    def _open(self, address: str) -> Any:
        from chancy import Chancy as Client
        from chancy.app import setup_default_logger

        return Client(address, log=setup_default_logger(logging.WARNING))

    def _job(self, number: int) -> Any:
        from chancy import Job

        return Job.from_func(noop, queue="default", kwargs={"number": number})

    def prepare(self, address: str) -> None:
        """Migrate."""

        async def migrate() -> None:
            async with self._open(address) as chancy:
                await chancy.migrate()

        loops.run(migrate())

    def singles(self, address: str, numbers: Iterable[int]) -> None:
        """Push jobs."""

        async def push() -> None:
            async with self._open(address) as chancy:
                for number in numbers:
                    await chancy.push(self._job(number))

        loops.run(push())

    def bulk(self, address: str, batches: Iterable[Sequence[int]]) -> None:
        """Push batches of jobs."""

        async def push() -> None:
            async with self._open(address) as chancy:
                for numbers in batches:
                    async for _ in chancy.push_many([self._job(number) for number in numbers]):
                        pass

        loops.run(push())

    def work(self, address: str, handler: Handler) -> None:
        """Declare the queue for the handlers wanted, and run its worker."""

        async def serve() -> None:
            from chancy import Chancy as Client
            from chancy import Queue, Worker

            executor, slots = {
                "async": (Client.Executor.Async, SLOTS),
                "thread": (Client.Executor.Threaded, SLOTS),
                "process": (Client.Executor.Process, PROCESSES),
            }[handler]
            async with self._open(address) as chancy:
                queue = Queue("default", concurrency=slots, executor=executor, eager_polling=True)
                await chancy.declare(queue, upsert=True)
                worker = Worker(chancy)
                worker.send_outgoing_interval = FLUSH
                async with worker:
                    await worker.wait_for_shutdown()

        loops.run(serve())
