"""A store that speaks as much S3 as a fence needs, and is careless about conditions in a way that can be chosen."""

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ALONE = 4
"""Writes of one object that a fence tries one after the other, before it tries several at once."""

PATIENCE = 20.0


@dataclass
class Careless:
    """What it heeds, whether it looks first and writes later, and which of the conditions it says that it cannot do."""

    heeds: frozenset[str] = frozenset({"If-None-Match", "If-Match"})
    later: bool = False
    cannot: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    looks: Counter[str] = field(default_factory=Counter)
    lock: threading.Condition = field(default_factory=threading.Condition)

    def etag(self, key: str) -> str | None:
        body = self.objects.get(key)
        return None if body is None else f'"{hashlib.md5(body).hexdigest()}"'

    def passes(self, key: str, none_match: str | None, match: str | None) -> bool:
        if none_match and "If-None-Match" in self.heeds and key in self.objects:
            return False
        return not (match and "If-Match" in self.heeds and match != self.etag(key))

    def write(self, key: str, body: bytes, none_match: str | None, match: str | None) -> bool:
        """Look and write in one step; or write later, the first of several at once when the second has looked, too."""
        with self.lock:
            passes = self.passes(key, none_match, match)
            self.looks[key] += 1
            self.lock.notify_all()
            if self.later and self.looks[key] == ALONE + 1:
                self.lock.wait_for(lambda: self.looks[key] > ALONE + 1, PATIENCE)
            if passes:
                self.objects[key] = body
            return passes


class Handler(BaseHTTPRequestHandler):
    """Speaks for the store that a subclass names."""

    protocol_version = "HTTP/1.1"
    store: Careless

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        none_match, match = self.headers["If-None-Match"], self.headers["If-Match"]
        if self.store.cannot and self.headers[self.store.cannot]:
            self.answer(501, "NotImplemented")
        elif self.store.write(self.path, body, none_match, match):
            self.answer(200)
        else:
            self.answer(412, "PreconditionFailed")

    def do_GET(self) -> None:
        body = self.store.objects.get(self.path)
        self.answer(*((404, "NoSuchKey") if body is None else (200, "", body)))

    def do_DELETE(self) -> None:
        self.store.objects.pop(self.path, None)
        self.answer(204)

    def answer(self, status: int, code: str = "", body: bytes = b"") -> None:
        body = f"<Error><Code>{code}</Code></Error>".encode() if code else body
        self.send_response(status)
        self.send_header("ETag", self.store.etag(self.path) or '""')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(store: Careless) -> Iterator[str]:
    """Serve a store and lend its endpoint's url."""
    handler = type("Handler", (Handler,), {"store": store})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
