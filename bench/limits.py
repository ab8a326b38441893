"""The limits: what the machine, the database and our own SQL let through when nothing of a library is around them.

The loops carry out the library's own statements, with the settings of its own connections, over bare psycopg and bare
`sqlite3`: settle the last batch and claim the next in one transaction, as the worker's turn does.
"""

from __future__ import annotations

import os
import select
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, cast

from msgspec.structs import replace

from bench.board import mark
from bench.entrant import Entrant, Handler, Role
from bench.own import OwnOnPostgres, OwnOnSqlite
from tenure.ids import new_job_id, new_job_ids
from tenure.protocol.ending import completed
from tenure.protocol.job import Claimer, Wanted
from tenure.protocol.lease import Token
from tenure.protocol.op import Op
from tenure.store.sql import SqlVerbs
from tenure.store.sqlite.bell import inotify, watch
from tenure.store.sqlite.clocks import Clocks
from tenure.store.sqlite.layout import STATEMENTS
from tenure.store.statements import Batch, Call, Row

BATCH = 1000
_COMMON = {"shift_ms": 0, "identity": "", "timeout_ms": 60_000}
_CLAIMER = Claimer("the bare loop", "bare")
_LOOK = 0.001
_BREATH = 0.00005  # seconds; who never sleeps is made to wait by the scheduler when it matters
_SYNCED = 0.05  # seconds after a write to the log in which its commit becomes visible
_ARGUMENTS = 6  # the place of the arguments in a claimed row
_HEAD, _TAIL = len('{"number":'), -len("}")


class _Turn:
    """The two calls of a turn as the library makes them: the claim once, the settle to be filled with what ended."""

    def __init__(self) -> None:
        verbs, sample = SqlVerbs(), [completed(Token("", 1), None)] * 2
        (self.claim,) = _calls(verbs.claim(_CLAIMER, Wanted(("default",), ("noop",), BATCH, takeovers=False)))
        (self._settle,) = _calls(verbs.settle(_CLAIMER.owner, sample))
        ((_, _, *self._how), _) = self._settle.rows or ()

    def run(self, rows: Sequence[Row]) -> Call | None:
        """Carry out jobs whose arguments are JSON with one number, and return how to settle them."""
        for row in rows:
            mark(int(row[_ARGUMENTS][_HEAD:_TAIL]))
        ended = [(row[0], row[1], *self._how) for row in rows]
        return replace(self._settle, rows=ended) if ended else None


def _calls(op: Op[Any]) -> tuple[Call, ...]:
    """Return the calls of the first request that a verb makes."""
    return cast("Batch", next(op)).calls


def _arguments(number: int) -> str:
    return f'{{"number":{number}}}'


class Bare(Entrant):
    """What limits have in common."""

    role: ClassVar[Role] = "limit"
    lease = ""
    handlers: ClassVar[tuple[Handler, ...]] = ("async",)


class BarePostgres(Bare, OwnOnPostgres):
    """Tenure's SQL in the tightest loop of psycopg; a bare INSERT, and COPY."""

    name = "bare psycopg"
    distribution = library = "psycopg"
    settings = f"our own claim and settle, {BATCH} jobs a transaction; INSERT and commit without NOTIFY; COPY of 1,000"
    rings = False

    def singles(self, address: str, numbers: Iterable[int]) -> None:
        """Insert a row, and notify where the bell is wanted."""
        insert = (
            "INSERT INTO tenure_jobs (id, task, queue, run_at, lease_ms, arguments, enqueued_at)"
            " VALUES ($1, 'noop', 'default', now(), 30000, $2, now())"
        )
        if self.rings:
            insert = f"WITH new AS ({insert} RETURNING queue) SELECT pg_notify('tenure', queue) FROM new"  # noqa: S608 -- no values
        import psycopg

        with psycopg.connect(address, autocommit=True, prepare_threshold=0) as connection:
            cursor = psycopg.RawCursor(connection)
            for number in numbers:
                cursor.execute(insert, (new_job_id(), _arguments(number)))

    def bulk(self, address: str, batches: Iterable[Sequence[int]]) -> None:
        """Copy rows in."""
        import psycopg

        copying = "COPY tenure_jobs (id, task, queue, run_at, lease_ms, arguments, enqueued_at) FROM STDIN"
        with psycopg.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
            for numbers in batches:
                with cursor.copy(copying) as copy:
                    for id_, number in zip(new_job_ids(len(numbers)), numbers, strict=True):
                        copy.write_row((id_, "noop", "default", "now", 30000, _arguments(number), "now"))

    def work(self, address: str, handler: Handler) -> None:
        """Settle and claim in one pipelined transaction, again and again; listen when there is nothing."""
        import psycopg

        from tenure.store.postgres.requests import lay_out

        del handler
        turn, settle = _Turn(), None
        with psycopg.connect(address, autocommit=True, prepare_threshold=0) as connection:
            connection.execute("LISTEN tenure")
            psycopg.RawCursor(connection).execute(
                *lay_out(Call("greet", {"pid": connection.info.backend_pid}), _COMMON)
            )
            claim = lay_out(turn.claim, _COMMON)
            settling, claiming = psycopg.RawCursor(connection), psycopg.RawCursor(connection)
            while True:
                with connection.pipeline():
                    if settle is not None:
                        settling.execute(*lay_out(settle, _COMMON), binary=True)
                    claiming.execute(*claim, binary=True)
                settle = turn.run(claiming.fetchall())
                if settle is None:
                    list(connection.notifies(stop_after=1))


class BareBell(BarePostgres):
    """The same, with a NOTIFY beside each INSERT: what a pick-up costs at least."""

    name = "bare insert, notify, claim"
    settings = "psycopg: INSERT and NOTIFY in one statement; another process listens and claims"
    rings = True
    in_bulk = False


class BareSqlite(Bare, OwnOnSqlite):
    """Tenure's SQL in the tightest loop of sqlite3; a bare INSERT, and executemany."""

    name = "bare sqlite3"
    distribution, library = "tenure", "sqlite3"
    settings = f"our own claim and settle, {BATCH} jobs a transaction; INSERT and commit; executemany of 1,000"

    _insert = (
        "INSERT INTO tenure_jobs (id, task, queue, run_at, lease_ms, arguments, enqueued_at)"
        " VALUES (?, 'noop', 'default', 0, 30000, ?, 0)"
    )

    def singles(self, address: str, numbers: Iterable[int]) -> None:
        """Insert a row."""
        with closing(_open(address)) as connection:
            for number in numbers:
                connection.execute(self._insert, (new_job_id(), _arguments(number)))

    def bulk(self, address: str, batches: Iterable[Sequence[int]]) -> None:
        """Insert a thousand rows a transaction."""
        with closing(_open(address)) as connection:
            for numbers in batches:
                rows = [(id_, _arguments(n)) for id_, n in zip(new_job_ids(len(numbers)), numbers, strict=True)]
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(self._insert, rows)
                connection.execute("COMMIT")

    def work(self, address: str, handler: Handler) -> None:
        """Settle and claim in one transaction, again and again."""
        del handler
        turn, settle, clocks = _Turn(), None, Clocks()
        claiming = STATEMENTS["claim"].layout()
        with closing(_open(address)) as connection:
            wait = self._waiting(connection, Path(address))
            while True:
                connection.execute("BEGIN IMMEDIATE")
                now = dict(zip(("now_ms", "boot_ms"), clocks.read(), strict=True))
                if settle is not None:
                    settling = STATEMENTS[settle.name].layout(settle.columns)
                    form, shared = settling.bind(settle.parameters, now)
                    for sql, part in form.parts(settle.rows or ()):
                        connection.execute(sql, (*shared, *chain.from_iterable(part)))
                form, shared = claiming.bind(turn.claim.parameters, now)
                rows = connection.execute(form.one, shared).fetchall()
                connection.execute("COMMIT")
                settle = turn.run(rows)
                if settle is None:
                    wait()

    def _waiting(self, _connection: sqlite3.Connection, _path: Path) -> Callable[[], object]:
        """Return what waits for jobs."""
        return partial(time.sleep, _LOOK)


class BareWatch(BareSqlite):
    """The same, woken by a write to the log, and asking again and again for its commit: what a pick-up costs."""

    name = "bare insert, watch, claim"
    settings = "sqlite3: INSERT and commit; another process watches the log, asks PRAGMA data_version, and claims"
    in_bulk = False

    def _waiting(self, connection: sqlite3.Connection, path: Path) -> Callable[[], object]:
        log, seen = inotify(), connection.execute("PRAGMA data_version").fetchone()
        if log is None or not watch(log, path.with_name(f"{path.name}-wal")):
            raise RuntimeError("this system has no inotify")

        def wait() -> None:
            nonlocal seen
            while (version := connection.execute("PRAGMA data_version").fetchone()) == seen:
                if time.monotonic() > until[0]:
                    select.select([log], [], [])
                    os.read(log, 65536)
                    until[0] = time.monotonic() + _SYNCED
                time.sleep(_BREATH)
            seen = version

        until = [0.0]
        return wait


def _open(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=10.0, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection
