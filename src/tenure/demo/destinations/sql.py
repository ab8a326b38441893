"""A SQL database as the destination: a process that keeps pages there, behind a loopback socket.

It plays on SQLite, or on PostgreSQL where the store of the play is one, in a schema of its own.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import msgspec

from tenure.demo.destinations.place import HOST, TIMEOUT, Place, Sent, Stage, Way
from tenure.demo.destinations.sql_service import Reply, Request
from tenure.demo.destinations.table import own_schema
from tenure.errors import StaleToken
from tenure.protocol.lease import Effect, Token

_SERVICE = "tenure.demo.destinations.sql_service"


@contextmanager
def place(stage: Stage) -> Iterator[Place]:
    """Start the process that keeps the pages."""
    if not stage.store.startswith("postgres"):
        yield _started(stage, "a process over a SQLite file", f"{stage.folder}/pages.db")
        return
    with own_schema(stage.store) as schema:
        yield _started(stage, f"a process over the store's database, schema {schema}", "--schema", schema)


def _started(stage: Stage, described: str, *where: str) -> Place:
    guard = [] if stage.fence else ["--no-fence"]
    port = stage.cast.start("destination", _SERVICE, *where, *guard).expect("ready").port
    return Place({"port": str(port)}, described)


@contextmanager
def page(way: Way, sent: Sent) -> Iterator[SQLPage]:
    """Open a line to it."""
    with SQLPage(way, sent) as opened:
        yield opened


class SQLPage:
    """A page over a line on which request and answer take turns."""

    answer = ""

    def __init__(self, way: Way, sent: Sent) -> None:
        self._page = way.page
        self._sent = sent
        self._socket = socket.create_connection((HOST, way.port), timeout=TIMEOUT)
        self._replies = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._replies.close()
        self._socket.close()

    def raise_to(self, token: Token) -> None:
        """Announce a new owner; raises StaleToken."""
        self._send(Request("raise", self._page, job=token.job, generation=token.generation))
        self._expect(token)

    def read(self) -> str:
        """Read it."""
        self._send(Request("read", self._page))
        return self._receive().text

    def write(self, token: Effect, text: str) -> None:
        """Write it under a token; raises StaleToken."""
        self._send(Request("write", self._page, token.job, token.generation, token.sequence, text))
        self._sent()
        self._expect(token)

    def _send(self, request: Request) -> None:
        self._socket.sendall(msgspec.json.encode(request) + b"\n")

    def _receive(self) -> Reply:
        return msgspec.json.decode(self._replies.readline(), type=Reply)

    def _expect(self, token: Token) -> None:
        reply = self._receive()
        if reply.refused:
            raise StaleToken(token.job, token.generation, current=reply.met)
