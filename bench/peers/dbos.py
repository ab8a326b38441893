"""DBOS: durable workflows through SQLAlchemy; a queue is polled."""

# A peer need not be installed where this is checked.
# mypy: disable-error-code="import-not-found"
from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from bench.board import mark
from bench.entrant import Entrant, Handler

POLL = 0.1
_VERSION = "bench"  # of the application: a worker takes only what was enqueued for its own


class Dbos(Entrant):
    """DBOS."""

    name = "DBOS"
    store = "postgresql"
    distribution = library = "dbos"
    in_bulk = False
    settings = f"psycopg, polls every {POLL:g} s (it comes with 1 s)"
    weaker = "no leases: what a lost worker held is recovered when that worker starts again"
    lease = "when the same executor starts again"
    left = "SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED')"

    def _launch(self, address: str) -> Any:
        from dbos import DBOS

        DBOS(
            config={
                "name": "bench",
                "system_database_url": address,
                "application_version": _VERSION,
                "log_level": "WARNING",
            }
        )
        return DBOS

    def prepare(self, address: str) -> None:
        """Launch it once, which migrates, and register the queue."""
        dbos = self._launch(address)
        dbos.launch()
        dbos.register_queue("bench", polling_interval_sec=POLL)
        dbos.destroy()

    def singles(self, address: str, numbers: Iterable[int]) -> None:
        """Enqueue by its client."""
        from dbos import DBOSClient

        client = DBOSClient(system_database_url=address)
        for number in numbers:
            client.enqueue({"queue_name": "bench", "workflow_name": "noop", "app_version": _VERSION}, number)

    def work(self, address: str, handler: Handler) -> None:
        """Launch it with the workflow."""
        dbos = self._launch(address)

        async def noop(number: int) -> None:
            mark(number)

        def plain_noop(number: int) -> None:
            mark(number)

        dbos.workflow(name="noop")(noop if handler == "async" else plain_noop)
        dbos.launch()
        threading.Event().wait()
