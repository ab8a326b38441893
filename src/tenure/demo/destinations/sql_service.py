"""The process behind `sql`: it keeps pages in a SQL database, with a fence or without.

It trusts nobody's word about leases; it compares generations. Fence and page change in one transaction of its database,
so between "may this write pass" and "it is written" there is no moment in which anything can come between (R31).
"""

from __future__ import annotations

import argparse
import os
import socketserver
import sys
import threading
from typing import Any, Literal

import msgspec

from tenure.demo.children import Told, follow_parent, tell
from tenure.demo.destinations.place import HOST
from tenure.demo.destinations.table import Table
from tenure.errors import StaleToken
from tenure.fences import SQLFence
from tenure.protocol.lease import Effect, Token


class Request(msgspec.Struct, frozen=True):
    """What a worker asks: to announce a token, to write a page under it, or to read a page."""

    verb: Literal["raise", "write", "read"]
    page: str
    job: str = ""
    generation: int = 0
    sequence: int = 0
    text: str = ""


class Reply(msgspec.Struct, frozen=True):
    """What the destination answers: refused, and the generation that it has met; or the page as it is now."""

    refused: bool = False
    met: int | None = None
    text: str = ""


class Service:
    """The pages and, if there is one, their fence."""

    def __init__(self, table: Table, *, fence: bool) -> None:
        self._table = table
        self._fence = SQLFence(table.dialect) if fence else None
        with table.transaction() as connection:
            table.create(connection)
            if self._fence is not None:
                self._fence.create(connection)

    def answer(self, request: Request) -> Reply:
        """Do what is asked in one transaction, or refuse it and change nothing."""
        try:
            with self._table.transaction() as connection:
                self._pass_fence(connection, request)
                if request.verb == "write":
                    self._table.write(connection, request.page, request.text)
                return Reply(text=self._table.read(connection, request.page))
        except StaleToken as error:
            return Reply(refused=True, met=error.current)

    def _pass_fence(self, connection: Any, request: Request) -> None:
        if self._fence is None or request.verb == "read":
            return
        if request.verb == "raise":
            self._fence.raise_to(connection, Token(request.job, request.generation), scope=request.page)
        else:
            self._fence.apply(connection, Effect(request.job, request.generation, request.sequence), scope=request.page)


def serve(service: Service) -> socketserver.ThreadingTCPServer:
    """Make a server on a free loopback port."""

    class Conversation(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                reply = service.answer(msgspec.json.decode(line, type=Request))
                self.wfile.write(msgspec.json.encode(reply) + b"\n")

    server = socketserver.ThreadingTCPServer((HOST, 0), Conversation)
    server.daemon_threads = True
    return server


def main() -> None:
    """Serve until the standard input ends; the PostgreSQL database of a schema is that of the store."""
    follow_parent()
    parser = argparse.ArgumentParser(prog="python -m tenure.demo.destinations.sql_service")
    parser.add_argument("name")
    parser.add_argument("file", nargs="?", default="")
    parser.add_argument("--schema")
    parser.add_argument("--no-fence", action="store_true")
    say = parser.parse_args()
    where = say.file if say.schema is None else os.environ["TENURE_STORE"]
    with serve(Service(Table(where, say.schema), fence=not say.no_fence)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        tell(Told("ready", say.name, port=server.server_address[1]))
        sys.stdin.read()


if __name__ == "__main__":
    main()
