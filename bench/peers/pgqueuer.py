"""PgQueuer: asyncpg, claims and completions in batches."""

# A peer need not be installed where this is checked.
# mypy: disable-error-code="import-not-found"
from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from bench.board import mark
from bench.entrant import Entrant, Handler
from bench.peers import loops

CONSUMERS = 2
BATCH = 100


class PgQueuer(Entrant):
    """PgQueuer, two consumers a process."""

    name = "PgQueuer"
    store = "postgresql"
    distribution = library = "pgqueuer"
    settings = (
        f"asyncpg, uvloop, {CONSUMERS} consumers a process, batches of {BATCH}, its own autovacuum settings; threads by"
        " asyncio.to_thread"
    )
    weaker = "completes by id alone: a late worker deletes the job of its successor"
    lease = "by a sign of life for each job, stale after 30 s"
    left = "SELECT count(*) FROM pgqueuer"

    def prepare(self, address: str) -> None:
        """Install the tables and set their autovacuum as it advises."""

        async def install() -> None:
            import asyncpg
            from pgqueuer import Queries

            queries = Queries.from_asyncpg_connection(await asyncpg.connect(address))
            await queries.install()
            await queries.optimize_autovacuum()

        loops.run(install())

    def singles(self, address: str, numbers: Iterable[int]) -> None:
        """Enqueue by `Queries.enqueue`."""

        async def enqueue() -> None:
            import asyncpg
            from pgqueuer import Queries

            queries = Queries.from_asyncpg_connection(await asyncpg.connect(address))
            for number in numbers:
                await queries.enqueue("noop", b"%d" % number)

        loops.run(enqueue())

    def bulk(self, address: str, batches: Iterable[Sequence[int]]) -> None:
        """Enqueue by `Queries.enqueue` with lists."""

        async def enqueue() -> None:
            import asyncpg
            from pgqueuer import Queries

            queries = Queries.from_asyncpg_connection(await asyncpg.connect(address))
            for numbers in batches:
                size = len(numbers)
                await queries.enqueue(["noop"] * size, [b"%d" % number for number in numbers], [0] * size)

        loops.run(enqueue())

    def work(self, address: str, handler: Handler) -> None:
        """Run the consumers side by side."""

        async def consume() -> None:
            import asyncpg
            from pgqueuer import PgQueuer as Consumer
            from pgqueuer.models import Job

            async def noop(job: Job) -> None:
                mark(int(job.payload))

            async def noop_in_thread(job: Job) -> None:
                await asyncio.to_thread(mark, int(job.payload))

            consumer = Consumer.from_asyncpg_connection(await asyncpg.connect(address))
            consumer.entrypoint("noop")(noop if handler == "async" else noop_in_thread)
            await consumer.run(batch_size=BATCH)

        async def consume_all() -> None:
            await asyncio.gather(*(consume() for _ in range(CONSUMERS)))

        loops.run(consume_all())
