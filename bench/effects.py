"""What the guards of an effect cost, each beside the same transaction without it and beside its own SQL by hand.

The bare transaction is begin, one insert, commit, synced to the disk: what a sync costs decides what a ratio to it can
be. *By hand* is the floor: the two statements that guard and complete a job, written out on the caller's connection,
which asks nothing else. Ways take turns every few transactions, so that a busy disk meets all of them alike.
"""

from __future__ import annotations

import random
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from tenure import App, Job
from tenure.clock import boot_clock
from tenure.fences.sql import SQLFence
from tenure.hold import Lease, renewing
from tenure.protocol.job import Claimer, Wanted
from tenure.protocol.lease import Effect, Token

TURN = 10
"""Transactions that one way makes before the next has its turn."""

LEASE = 3600.0

Act = Callable[[Any, Job], None]


def effects(address: str, *, jobs: int) -> dict[str, float]:
    """Measure guard and completion, a fence and a step against a bare transaction of one insert."""
    app = App(address)

    @app.task(lease=LEASE)
    def work() -> None:
        """Be claimed by hand."""

    bench = Bench(app, address)
    bench.prepare()
    ways: dict[str, Callable[[Job], None]] = {
        "bare": lambda job: bench.transact(job, _nothing),
        "by hand": lambda job: bench.transact(job, bench.by_hand),
        "guard + complete": lambda job: bench.transact(job, _guard_and_complete),
        "complete": lambda job: bench.transact(job, _complete),
        "fence": lambda job: bench.transact(job, bench.fenced),
        "step": _step,
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(max(1, jobs // TURN)):
        work.enqueue_many([{}] * (TURN * len(ways)))
        held = bench.claim(TURN * len(ways))
        for way in random.sample(list(ways), len(ways)):
            for job in held[:TURN]:
                began = time.perf_counter()
                ways[way](job)
                taken[way].append(time.perf_counter() - began)
            del held[:TURN]
    bench.close()
    median = {way: statistics.median(times) for way, times in taken.items()}
    bare = median.pop("bare")
    figures = {f"{way}, ratio": round(time_ / bare, 2) for way, time_ in median.items()}
    of_floor = round(median["guard + complete"] / median["by hand"], 2)
    return {"bare transaction, ms": round(bare * 1000, 3), **figures, "guard + complete, of by hand": of_floor}


BY_HAND = {
    "sqlite": (
        "SELECT id FROM tenure_jobs WHERE id = :job AND owner = :owner AND generation = :generation",
        """
        UPDATE tenure_jobs SET state = 'completed', owner = NULL, lease_until = NULL, finished_at = :now_ms,
            ended = 'complete', ended_at = :now_ms, result = 'null', failure = NULL, reason = NULL
        WHERE id = :job AND owner = :owner AND generation = :generation
        RETURNING id
        """,
    ),
    "postgresql": (
        """
        SELECT id FROM tenure_jobs WHERE id = %(job)s AND owner = %(owner)s AND generation = %(generation)s
        FOR NO KEY UPDATE
        """,
        """
        UPDATE tenure_jobs SET state = 'completed', owner = NULL, lease_until = NULL, finished_at = clock_timestamp(),
            ended = 'complete', ended_at = clock_timestamp(), result = 'null', failure = NULL, reason = NULL
        WHERE id = %(job)s AND owner = %(owner)s AND generation = %(generation)s
        RETURNING id
        """,
    ),
}


class Bench:
    """One connection of the caller's, kept open as programs keep theirs."""

    def __init__(self, app: App, address: str) -> None:
        self.app = app
        self.sqlite = address.startswith("sqlite:///")
        self.app.store.migrate()
        self.connection = self._connect(address)
        self.fence = SQLFence("sqlite" if self.sqlite else "postgresql")
        self._insert = f"INSERT INTO effects VALUES ({'?' if self.sqlite else '%s'})"  # noqa: S608 -- only a mark
        self._by_hand = BY_HAND["sqlite" if self.sqlite else "postgresql"]
        self._claimer = Claimer("owner of the bench", "bench")

    def _connect(self, address: str) -> Any:
        if self.sqlite:
            connection = sqlite3.connect(address.removeprefix("sqlite:///"), timeout=10, isolation_level=None)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            return connection
        import psycopg

        return psycopg.connect(address, autocommit=True)

    def prepare(self) -> None:
        """Make the table of effects, and that of the fence."""
        with self.transaction():
            self.connection.execute("CREATE TABLE effects (job TEXT NOT NULL)")
            self.fence.create(self.connection)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what is done inside."""
        if self.sqlite:
            self.connection.execute("BEGIN IMMEDIATE")
            with self.connection:
                yield
        else:
            with self.connection.transaction():
                yield

    def transact(self, job: Job, act: Act) -> None:
        """Write one effect, and whatever guards it, in one transaction."""
        with self.transaction():
            self.connection.execute(self._insert, (job.id,))
            act(self.connection, job)

    def fenced(self, connection: Any, job: Job) -> None:
        """Pass the fence of the job."""
        self.fence.apply(connection, Effect(job.id, job.generation))

    def by_hand(self, connection: Any, job: Job) -> None:
        """Guard and complete the job with nothing but the two statements that it takes."""
        values = {
            "job": job.id,
            "owner": job.lease.owner,
            "generation": job.generation,
            "now_ms": int(time.time() * 1000),
        }
        for statement in self._by_hand:
            if connection.execute(statement, values).fetchone() is None:
                raise RuntimeError(f"the run of {job.id} has lost its job")

    def claim(self, count: int) -> list[Job]:
        """Take jobs as a worker would."""
        verbs = self.app.store.verbs
        wanted = Wanted(("default",), ("work",), count)
        rows = self.app.store.connect(timeout=10).do(verbs.claim, self._claimer, wanted)
        renew = renewing(self.app.client)
        leases = [
            Lease(Token(row.id, row.generation), self._claimer.owner, LEASE, boot_clock(), renew=renew) for row in rows
        ]
        return [Job(row, lease, self.app) for row, lease in zip(rows, leases, strict=True)]

    def close(self) -> None:
        """Close the connections."""
        with closing(self.connection):
            self.app.close()


def _nothing(_connection: Any, _job: Job) -> None:
    """Guard nothing."""


def _guard_and_complete(connection: Any, job: Job) -> None:
    job.guard(connection)
    job.complete(connection)


def _complete(connection: Any, job: Job) -> None:
    job.complete(connection)


def _step(job: Job) -> None:
    job.step("once", int)
