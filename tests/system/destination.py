"""Where jobs write numbers: a file of its own that compares tokens and keys, and keeps what it accepted and refused.

It accepts a write only with a generation not lower than the highest that it has seen for the job, and once for each
job; both are compared in the transaction of the write.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

from tenure.protocol.lease import Token

Answer = Literal["accepted", "repeated", "refused"]

_SCHEMA = "CREATE TABLE IF NOT EXISTS writes (key TEXT, number INTEGER, generation INTEGER, answer TEXT)"
_SEEN = "SELECT coalesce(max(generation), 0), count(*) FILTER (WHERE answer = 'accepted') FROM writes WHERE key = ?"


class Destination:
    """The numbers in one file; every call is a transaction, so that processes may share it and die."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "destination.db"

    def write(self, token: Token, number: int) -> Answer:
        """Write a number under the token; the job is the key, whatever the generation (R40)."""
        with self._transaction() as connection:
            highest, accepted = connection.execute(_SEEN, (token.job,)).fetchone()
            answer: Answer = "accepted"
            if token.generation < highest:
                answer = "refused"
            elif accepted:
                answer = "repeated"
            row = (token.job, number, token.generation, answer)
            connection.execute("INSERT INTO writes VALUES (?, ?, ?, ?)", row)
        return answer

    def numbers(self, answer: Answer) -> list[int]:
        """List the numbers that got this answer, one for each write."""
        with self._transaction() as connection:
            return [n for (n,) in connection.execute("SELECT number FROM writes WHERE answer = ?", (answer,))]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=60.0, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")  # it outlives processes, and need not outlive the host
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_SCHEMA)
            with connection:
                yield connection
