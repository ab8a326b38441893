"""Huey on SQLite: workers are threads or processes, and a task leaves the file before it runs."""

# A peer need not be installed where this is checked.
# mypy: disable-error-code="import-not-found"
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bench.board import mark
from bench.entrant import Entrant, Handler

WORKERS = 4
LOOK = 0.01


class Huey(Entrant):
    """Huey on SQLite."""

    name = "Huey"
    store = "sqlite"
    distribution = library = "huey"
    handlers = ("async", "thread", "process")  # of the first it has none: its threads stand beside ours
    in_bulk = False
    settings = (
        f"WAL, synchronous=FULL, {WORKERS} threads or processes, no results, looks every {LOOK:g} s (it comes with 0.1"
        " to 10 s)"
    )
    weaker = "removes a task before it runs: a worker that dies loses it"
    lease = "never: it is lost"
    left = "SELECT count(*) FROM task"

    def _open(self, address: str) -> tuple[Any, Any]:
        from huey import SqliteHuey

        huey = SqliteHuey(filename=address, fsync=True, results=False, timeout=10)
        return huey, huey.task(name="noop")(mark)

    def prepare(self, address: str) -> None:
        """Make the tables."""
        self._open(address)

    def singles(self, address: str, numbers: Iterable[int]) -> None:
        """Call the task."""
        _, noop = self._open(address)
        for number in numbers:
            noop(number)

    def work(self, address: str, handler: Handler) -> None:
        """Run its consumer."""
        huey, _ = self._open(address)
        kind = "process" if handler == "process" else "thread"
        huey.create_consumer(
            workers=WORKERS, worker_type=kind, periodic=False, initial_delay=LOOK, max_delay=LOOK
        ).run()
