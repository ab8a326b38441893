"""The crowd of the shipped suite finds a destination that compares in one step and writes in another."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tenure import Token
from tenure.fences.rule import Bid, Mark, announcement, judge, writing
from tenure.testing.fences import Destination, crowd
from tests.fences.memory import MemoryDestination

Part = Callable[[Destination], None]

PARTS: list[Part] = [
    crowd.test_the_highest_write_of_a_crowd_is_what_stays,
    crowd.test_a_write_that_arrives_from_everywhere_is_applied_once,
    crowd.test_after_the_announcement_nothing_older_gets_in,
]


class GapInMemory(MemoryDestination):
    """Judges under the lock, and writes under it again."""

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        bid = writing(token, scope, sequence)
        with self.lock:
            mark = judge(self.marks.get(scope), bid)
        with self.lock:
            self.marks[scope] = mark
            self.values[scope] = value


class Shelf(MemoryDestination):
    """A file of SQLite; `gap` says whether a write takes two transactions."""

    def __init__(self, file: Path, *, gap: bool) -> None:
        super().__init__()
        self._file, self._gap = file, gap
        with self._transaction() as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS marks (scope PRIMARY KEY, job, generation, sequence)")
            connection.execute("CREATE TABLE IF NOT EXISTS shelf (scope PRIMARY KEY, value)")

    def raise_to(self, token: Token, scope: str) -> None:
        bid = announcement(token, scope)
        with self._transaction() as connection:
            self._store(connection, bid, self._judge(connection, bid))

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        bid = writing(token, scope, sequence)
        with self._transaction() as connection:
            mark = self._judge(connection, bid)
            if self._gap:
                connection.execute("COMMIT")
                connection.execute("BEGIN IMMEDIATE")
            self._store(connection, bid, mark)
            connection.execute("INSERT OR REPLACE INTO shelf VALUES (?, ?)", (scope, value))

    def read(self, scope: str) -> str | None:
        with self._transaction() as connection:
            found = connection.execute("SELECT value FROM shelf WHERE scope = ?", (scope,)).fetchone()
        return found[0] if found else None

    def _judge(self, connection: sqlite3.Connection, bid: Bid) -> Mark:
        query = "SELECT job, generation, sequence FROM marks WHERE scope = ?"
        found = connection.execute(query, (bid.scope,)).fetchone()
        return judge(Mark(*found) if found else None, bid)

    def _store(self, connection: sqlite3.Connection, bid: Bid, mark: Mark) -> None:
        values = (bid.scope, mark.job, mark.generation, mark.sequence)
        connection.execute("INSERT OR REPLACE INTO marks VALUES (?, ?, ?, ?)", values)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._file, timeout=60, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")


def finds(part: Part, destination: Destination) -> bool:
    try:
        part(destination)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("opened", [lambda file: GapInMemory(), lambda file: Shelf(file, gap=True)], ids=["mem", "sql"])
def test_a_gap_between_compare_and_write_is_found(tmp_path: Path, opened: Callable[[Path], Destination]) -> None:
    runs = enumerate(part for _ in range(3) for part in PARTS)  # one run finds it nearly always
    assert any(finds(part, opened(tmp_path / str(number))) for number, part in runs)


@pytest.mark.parametrize("part", PARTS)
def test_one_transaction_passes(tmp_path: Path, part: Part) -> None:
    part(Shelf(tmp_path / "shelf", gap=False))
    part(MemoryDestination())


def test_the_interpreter_changes_threads_as_before_afterwards() -> None:
    before, during = sys.getswitchinterval(), []

    class Watching(MemoryDestination):
        def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
            during.append(sys.getswitchinterval())
            super().write(token, scope, value, sequence)

    PARTS[0](Watching())
    assert sys.getswitchinterval() == before
    assert max(during) < before / 100


class Down(MemoryDestination):
    """Fails for one writer, while the others wait for it."""

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        if value == "3 by 5":
            raise ConnectionError("the destination is down")
        super().write(token, scope, value, sequence)


def test_the_error_of_a_writer_is_told_and_keeps_nobody_waiting() -> None:
    with pytest.raises(ConnectionError, match="is down"):
        PARTS[1](Down())
