"""The bell of PostgreSQL: a connection of its own that listens for what enqueues notify."""

from __future__ import annotations

import os
import select
import time

import psycopg

from tenure.errors import Unavailable
from tenure.store.postgres.connect import Connection
from tenure.store.postgres.translate import translate


class NotifyBell:
    """Rings when a queue of this database has got due jobs; owns `connection`, which must not come through a pooler."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._woken, self._wake = os.pipe()
        self._poll = select.poll()
        self._poll.register(self._woken, select.POLLIN)
        self._poll.register(connection.pgconn.socket, select.POLLIN)
        connection.begin()
        try:
            connection.execute("LISTEN tenure")
        except psycopg.Error as error:
            self.close()
            raise translate(error, connection.target, changing=False) from error

    def wait(self, seconds: float) -> bool:
        """Wait until it rings, `wake` is called or `seconds` have passed; True when it rang. Raises Unavailable."""
        deadline = time.monotonic() + seconds
        while not self._rang():
            left = deadline - time.monotonic()
            ready = self._poll.poll(max(0.0, left) * 1000)
            if any(descriptor == self._woken for descriptor, _ in ready):
                os.read(self._woken, 4096)
                return False
            if not ready:
                return False
        return True

    def _rang(self) -> bool:
        connection = self._connection.pgconn
        try:
            connection.consume_input()
            heard = 0
            while connection.notifies() is not None:
                heard += 1
        except psycopg.Error as error:
            raise Unavailable(f"{self._connection.target.label}: the bell is broken ({error}); poll instead") from error
        return heard > 0

    def wake(self) -> None:
        """Make a waiting thread return at once."""
        os.write(self._wake, b"w")

    def close(self) -> None:
        """Stop listening."""
        self._connection.close()
        os.close(self._woken)
        os.close(self._wake)
