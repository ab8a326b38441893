"""The service behind `http`: it keeps pages in a database of its own, with a fence or without.

Fence, stored answer and page change in one transaction (D5). WSGI from the standard library is all that it takes.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.util import shift_path_info

from tenure.demo.children import Told, follow_parent, tell
from tenure.demo.destinations.place import HOST
from tenure.demo.destinations.table import Table
from tenure.fences.http import Answer, FencedService, RequestFacts
from tenure.fences.http.messages import make_answer
from tenure.fences.http.problems import REFUSALS, problem
from tenure.fences.http.wsgi import FenceResource, StartResponse, read_facts, send_answer

_OK, _WRITTEN = 200, 204


class Service:
    """The WSGI application: ``/pages/<page>`` to be read and written, ``/fences/<page>`` to be raised."""

    def __init__(self, table: Table, *, fence: bool) -> None:
        self._table = table
        self._fenced = FencedService(table.dialect)
        self._fences = FenceResource(self._fenced, table.transaction)
        self._write: Callable[[RequestFacts, str], Answer] = self._write_fenced if fence else self._write_unfenced
        with table.transaction() as connection:
            table.create(connection)
            self._fenced.create(connection)

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        if shift_path_info(environ) == "fences":
            return self._fences(environ, start_response)
        facts, page = read_facts(environ, self._fenced.largest), environ["PATH_INFO"].removeprefix("/")
        if facts.method != "PUT":
            with self._table.transaction() as connection:
                return send_answer(start_response, make_answer(_OK, self._table.read(connection, page)))
        try:
            answer = self._write(facts, page)
        except REFUSALS as refused:
            answer = problem(refused)
        return send_answer(start_response, answer)

    def _write_fenced(self, facts: RequestFacts, page: str) -> Answer:
        with self._table.transaction() as connection:
            with self._fenced.request(connection, facts, scope=page) as call:
                if not call.repeat:
                    self._table.write(connection, page, facts.body.decode())
                    call.answer(_WRITTEN)
            return call.response

    def _write_unfenced(self, facts: RequestFacts, page: str) -> Answer:
        with self._table.transaction() as connection:
            self._table.write(connection, page, facts.body.decode())
        return make_answer(_WRITTEN)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Keep the standard error for errors."""


def main() -> None:
    """Serve until the standard input ends."""
    follow_parent()
    parser = argparse.ArgumentParser(prog="python -m tenure.demo.destinations.http_service")
    parser.add_argument("name")
    parser.add_argument("file")
    parser.add_argument("--no-fence", action="store_true")
    say = parser.parse_args()
    service = Service(Table(say.file), fence=not say.no_fence)
    with make_server(HOST, 0, service, server_class=_Server, handler_class=_Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        tell(Told("ready", say.name, port=server.server_port))
        sys.stdin.read()


if __name__ == "__main__":
    main()
