"""The destination: a table in a database of its own, SQLite or PostgreSQL, guarded by a fence in the same database.

Nothing here knows of leases. The table takes a row only in a transaction that has passed the fence, and only once.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, astuple
from typing import Any, Literal

from examples.stdlib_index.index import Entry
from tenure import Token
from tenure.fences import SQLFence

PATIENCE = 60.0
"""Seconds to wait for another writer, who may have been stopped in the middle of its transaction."""

_PROBE = 0.25

_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS entries (
        module TEXT PRIMARY KEY, lines INTEGER NOT NULL, functions INTEGER NOT NULL, classes INTEGER NOT NULL,
        docstrings INTEGER NOT NULL, imports TEXT NOT NULL, summary TEXT NOT NULL
    )""",
    # Written in the transaction of the entry, without a key that would hide a second time.
    "CREATE TABLE IF NOT EXISTS applied (module TEXT NOT NULL, generation BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS refused (job TEXT NOT NULL, generation BIGINT NOT NULL, met BIGINT NOT NULL)",
)


class Fence:
    """The fence of the results, for those who know them and not the connection inside."""

    def __init__(self, dialect: Literal["sqlite", "postgresql"]) -> None:
        self._fence = SQLFence(dialect)

    def create(self, results: Results) -> None:
        """Make the fence's tables."""
        self._fence.create(results.connection)

    def raise_to(self, results: Results, token: Token) -> None:
        """Announce a new owner, before it reads."""
        self._fence.raise_to(results.connection, token)

    def apply(self, results: Results, token: Token) -> None:
        """Let one write through, in the transaction of that write."""
        self._fence.apply(results.connection, token)


class Results:
    """One connection to the results; every statement runs in a `transaction` block."""

    def __init__(self, connection: Any, dialect: Literal["sqlite", "postgresql"]) -> None:
        self.connection = connection
        self._dialect = dialect
        self._mark = "?" if dialect == "sqlite" else "%s"
        self.fence = Fence(dialect)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what is done inside, or undo all of it."""
        if self._dialect == "postgresql":
            with self.connection.transaction():
                yield
            return
        self.connection.execute("BEGIN IMMEDIATE")
        with self.connection:
            yield

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def create(self) -> None:
        """Make the tables."""
        with self.transaction():
            for statement in _SCHEMA:
                self.connection.execute(statement)
            self.fence.create(self)

    def has(self, module: str) -> bool:
        """Tell whether a module has its entry."""
        return bool(self._ask("SELECT 1 FROM entries WHERE module = ?", module))

    def add(self, entry: Entry, token: Token) -> None:
        """Write an entry and the note that it was written; a second entry for a module is an error."""
        marks = ", ".join([self._mark] * len(astuple(entry)))
        self.connection.execute(f"INSERT INTO entries VALUES ({marks})", astuple(entry))  # noqa: S608 -- only marks are pasted
        self._do("INSERT INTO applied VALUES (?, ?)", entry.module, token.generation)

    def note_refusal(self, token: Token, current: int | None) -> None:
        """Keep a record of a write that the fence refused."""
        with self.transaction():
            self._do("INSERT INTO refused VALUES (?, ?, ?)", token.job, token.generation, current or 0)

    def refusals(self) -> int:
        """Count the writes that the fence has refused."""
        return int(self._ask("SELECT count(*) FROM refused")[0][0])

    def applied_once(self) -> bool:
        """Tell whether every entry was written exactly once."""
        counts = "SELECT module, count(*) AS times FROM applied GROUP BY module HAVING count(*) <> 1"
        missing = "SELECT module FROM entries EXCEPT SELECT module FROM applied"
        return not self._ask(counts) and not self._ask(missing)

    def entries(self) -> list[Entry]:
        """Read the table."""
        return [Entry(*row) for row in self._ask("SELECT * FROM entries")]

    def _ask(self, query: str, *values: object) -> Sequence[Sequence[Any]]:
        found: Sequence[Sequence[Any]] = self._do(query, *values).fetchall()
        return found

    def _do(self, query: str, *values: object) -> Any:
        return self.connection.execute(query.replace("?", self._mark), values)


def results_answer(address: str) -> bool:
    """Tell whether the results can be written to just now; only SQLite knows a lock on all of them."""
    try:
        with open_results(address, patience=_PROBE) as results, results.transaction():
            return True
    except sqlite3.OperationalError:
        return False


@contextmanager
def open_results(address: str, patience: float = PATIENCE) -> Iterator[Results]:
    """Connect to the results at ``sqlite:///path`` or ``postgresql://…``."""
    with closing(_connected(address, patience)) as results:
        yield results


def results_of_thread(address: str) -> Results:
    """Return the connection of the calling thread to the results, made at its first call and kept.

    Not one for each job: whoever closes a connection to an SQLite file holds, for an instant, a lock that keeps others
    from opening theirs, and a process that is stopped in that instant would keep it.
    """
    results: Results | None = getattr(_of_thread, "results", None)
    if results is None:
        results = _of_thread.results = _connected(address, PATIENCE)
    return results


_of_thread = threading.local()


def _connected(address: str, patience: float) -> Results:
    if address.startswith("sqlite:///"):
        path = address.removeprefix("sqlite:///")
        connection = sqlite3.connect(path, timeout=patience, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        return Results(connection, "sqlite")
    import psycopg  # noqa: PLC0415 -- only those who keep their results in PostgreSQL need it

    return Results(psycopg.connect(address, autocommit=True), "postgresql")


def dump(entries: Iterable[Entry]) -> bytes:
    """Write entries out in one order, so that equal tables are equal bytes."""
    ordered = sorted(entries, key=lambda entry: entry.module)
    return "".join(json.dumps(asdict(entry), ensure_ascii=False) + "\n" for entry in ordered).encode()


def digest(entries: Iterable[Entry]) -> str:
    """Hash the dump of entries."""
    return hashlib.sha256(dump(entries)).hexdigest()
