"""What a fault is on the page `docs/fault-matrix.md`: a row, its columns, and the letters in its cells."""

from __future__ import annotations

from dataclasses import dataclass

ANYWHERE = "worker"  # the column of tests of the worker alone, which hold whatever its store is
STORES = {"memory": "memory", "sqlite": "SQLite", "postgres": "PostgreSQL", ANYWHERE: "the worker, on any store"}
PLACES = {"sql": "SQL", "redis": "Redis", "http": "HTTP", "s3": "objects", "files": "files"}

CELLS = {
    "S": "safe: nobody notices",
    "L": "late: work waits, and nothing is lost",
    "U": "unknown: the answer is lost, and what became of the request is settled afterwards",
    "F": "fence: two owners may believe in a job; the store refuses the older one, and at a destination a fence must",
    "X": "refused, before anything can happen",
}


@dataclass(frozen=True)
class Fault:
    """One row: what goes wrong, how the tests bring it about, what must come of it, and the tests.

    `cells` has a letter for each column where the fault can happen; one letter alone means every column. `tests` are
    named as ``file::test``; one that does not say in its parameters which column it is for is written as
    ``column: file::test``.
    """

    name: str
    how: str
    cells: str | dict[str, str]
    tests: tuple[str, ...]
