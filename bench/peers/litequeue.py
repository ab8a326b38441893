"""litequeue: a queue of messages in a SQLite file, without a worker; the loop is written by hand."""

# A peer need not be installed where this is checked.
# mypy: disable-error-code="import-not-found"
from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from bench.board import mark
from bench.entrant import Entrant, Handler

LOOK = 0.01


class LiteQueue(Entrant):
    """litequeue, set to the durability that Tenure has."""

    name = "litequeue"
    store = "sqlite"
    distribution = library = "litequeue"
    settings = f"WAL, synchronous=FULL (it comes with NORMAL); a loop of pop and done, which looks every {LOOK:g} s"
    weaker = "no leases: what a lost worker held stays locked"
    lease = "never"
    left = "SELECT count(*) FROM Queue WHERE status < 2"

    def _open(self, address: str) -> Any:
        from litequeue import LiteQueue as Queue

        queue = Queue(address, timeout=10.0)
        queue.conn.execute("PRAGMA synchronous = FULL")
        return queue

    def prepare(self, address: str) -> None:
        """Make the table."""
        self._open(address)

    def singles(self, address: str, numbers: Iterable[int]) -> None:
        """Put messages."""
        queue = self._open(address)
        for number in numbers:
            queue.put(str(number))

    def bulk(self, address: str, batches: Iterable[Sequence[int]]) -> None:
        """Put the messages of a batch in one transaction."""
        queue = self._open(address)
        for numbers in batches:
            with queue.transaction():
                for number in numbers:
                    queue.put(str(number))

    def work(self, address: str, handler: Handler) -> None:
        """Pop, carry out, say done."""
        del handler  # the loop calls it
        queue = self._open(address)
        while True:
            message = queue.pop()
            if message is None:
                time.sleep(LOOK)
            else:
                mark(int(message.data))
                queue.done(message.message_id)
