"""persist-queue: `SQLiteAckQueue`, a queue of objects without a worker; the loop is written by hand."""

# A peer need not be installed where this is checked.
# mypy: disable-error-code="import-not-found"
from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.board import mark
from bench.entrant import Entrant, Handler

LOOK = 0.01


class PersistQueue(Entrant):
    """persist-queue with acknowledgements."""

    name = "persist-queue"
    store = "sqlite"
    distribution, library = "persist-queue", "persistqueue"
    in_bulk = False
    settings = f"WAL, synchronous=FULL as SQLite comes; a loop of get and confirm, which looks every {LOOK:g} s"
    weaker = "no leases: what a lost worker held comes back when a queue is opened anew, whoever still holds it"
    lease = "when the queue is opened anew"
    left = "SELECT count(*) FROM ack_queue_default WHERE status < 5"

    def _open(self, address: str) -> Any:
        from persistqueue import SQLiteAckQueue
        from persistqueue.serializers import json

        path = Path(address)
        return SQLiteAckQueue(str(path.parent), db_file_name=path.name, auto_resume=False, serializer=json)

    def prepare(self, address: str) -> None:
        """Make the table."""
        self._open(address)

    def singles(self, address: str, numbers: Iterable[int]) -> None:
        """Put objects."""
        queue = self._open(address)
        for number in numbers:
            queue.put(number)

    def work(self, address: str, handler: Handler) -> None:
        """Get, carry out, acknowledge."""
        del handler  # the loop calls it
        from persistqueue import Empty

        queue = self._open(address)
        while True:
            try:
                item = queue.get(block=False, raw=True)
            except Empty:
                time.sleep(LOOK)
                continue
            mark(item["data"])
            queue.ack(id=item["pqid"])
