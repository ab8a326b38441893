"""How SQLite finds the jobs of a turn: by their ids, also when it was told of the table while that was small."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tenure.protocol.ending import completed
from tenure.protocol.lease import Token
from tenure.store import calls
from tenure.store.sqlite import SqliteStore
from tenure.store.sqlite.layout import STATEMENTS

INDEXES = ("sqlite_autoindex_tenure_jobs_1", "tenure_jobs_due", "tenure_jobs_running", "tenure_jobs_unique")
TOLD = (None, 5, 50, 99, 1_000_000)
"""How many rows the table had when somebody asked for statistics; None where nobody did."""

WHOLE = re.compile(r"SCAN (tenure_jobs|j\b)|BLOOM FILTER ON (tenure_jobs|j\b)")


@pytest.fixture(params=TOLD)
def connection(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[sqlite3.Connection]:
    path = tmp_path / "jobs.db"
    SqliteStore(str(path)).migrate()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        if request.param is not None:
            connection.execute("ANALYZE")
            told = [("tenure_jobs", index, f"{request.param} 1") for index in INDEXES]
            connection.executemany("INSERT INTO sqlite_stat1 VALUES (?, ?, ?)", told)
    with closing(sqlite3.connect(path)) as opened:
        yield opened


def plan(connection: sqlite3.Connection, sql: str) -> list[str]:
    numbers = [int(number) for number in re.findall(r"\?(\d+)", sql)]
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", [1] * max(numbers))]


@pytest.mark.parametrize("count", [100, 10, 1])
def test_jobs_that_are_completed_together_are_found_by_their_ids(connection: sqlite3.Connection, count: int) -> None:
    call = calls.settle("me", [completed(Token(job, 1), "null") for job in "ab"])
    form, _ = STATEMENTS[call.name].layout(call.columns).bind(call.parameters, {"now_ms": 1})
    assert [step for step in plan(connection, form.many[count]) if WHOLE.search(step)] == []


def test_a_scan_would_be_noticed(connection: sqlite3.Connection) -> None:
    assert any(WHOLE.search(step) for step in plan(connection, "SELECT * FROM tenure_jobs WHERE trace = ?1"))
