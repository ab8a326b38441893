"""The provider's books: accounts and payments in a SQLite database of its own. Nothing here knows of jobs or leases."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 5.0
"""Seconds that one transaction waits for another."""

CUSTOMERS = 7

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS accounts (customer TEXT PRIMARY KEY, charged INTEGER NOT NULL)",
    # No key that would hide a second payment.
    """CREATE TABLE IF NOT EXISTS payments (
        id INTEGER PRIMARY KEY, invoice INTEGER NOT NULL, means TEXT NOT NULL, cents INTEGER NOT NULL
    )""",
    "CREATE TABLE IF NOT EXISTS keys (key TEXT PRIMARY KEY, payment INTEGER NOT NULL)",
)


class Books:
    """The database at `path`, with one connection for each thread that asks."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._of_thread = threading.local()

    @contextmanager
    def begin(self) -> Iterator[sqlite3.Connection]:
        """Commit what is done inside, or undo all of it."""
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            yield connection

    def create(self) -> None:
        """Make the tables."""
        self._connection().execute("PRAGMA journal_mode = WAL")
        with self.begin() as connection:
            for statement in _SCHEMA:
                connection.execute(statement)

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._of_thread, "connection", None)
        if connection is None:
            connection = self._of_thread.connection = sqlite3.connect(
                self._path, timeout=PATIENCE, isolation_level=None
            )
        return connection


def book(connection: sqlite3.Connection, invoice: int, means: str, cents: int) -> int:
    """Take `cents` from the invoice's customer and write the payment down; returns its number."""
    connection.execute(
        "INSERT INTO accounts VALUES (?, ?) ON CONFLICT (customer) DO UPDATE SET charged = charged + excluded.charged",
        (f"customer-{invoice % CUSTOMERS}", cents),
    )
    written = connection.execute(
        "INSERT INTO payments (invoice, means, cents) VALUES (?, ?, ?)", (invoice, means, cents)
    )
    return int(written.lastrowid or 0)


def find(connection: sqlite3.Connection, key: str) -> int | None:
    """Return the number of the payment that was asked for with this idempotency key."""
    row = connection.execute("SELECT payment FROM keys WHERE key = ?", (key,)).fetchone()
    return None if row is None else int(row[0])


def remember(connection: sqlite3.Connection, key: str, payment: int) -> None:
    """Remember an idempotency key, in the transaction of its payment."""
    connection.execute("INSERT INTO keys VALUES (?, ?)", (key, payment))


def is_transferred(connection: sqlite3.Connection, invoice: int) -> bool:
    """Tell whether the customer has paid at the bank."""
    found = connection.execute("SELECT 1 FROM payments WHERE invoice = ? AND means = 'transfer'", (invoice,))
    return found.fetchone() is not None


def payments(connection: sqlite3.Connection) -> list[tuple[int, str, int]]:
    """Read every payment, in order: invoice, means, cents."""
    return connection.execute("SELECT invoice, means, cents FROM payments ORDER BY id").fetchall()


def charged(connection: sqlite3.Connection) -> int:
    """Sum up what all accounts were charged."""
    return int(connection.execute("SELECT coalesce(sum(charged), 0) FROM accounts").fetchone()[0])
