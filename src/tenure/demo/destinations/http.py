"""An HTTP service as the destination: a process that the play starts, called through httpx."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tenure.demo.destinations.place import HOST, TIMEOUT, Place, Sent, Stage, Way
from tenure.fences.http import HTTPFence, fencing_headers
from tenure.fences.http.client_httpx import FencedTransport
from tenure.protocol.lease import Effect, Token

_SERVICE = "tenure.demo.destinations.http_service"


@contextmanager
def place(stage: Stage) -> Iterator[Place]:
    """Start the service."""
    guard = [] if stage.fence else ["--no-fence"]
    service = stage.cast.start("destination", _SERVICE, f"{stage.folder}/pages.db", *guard)
    yield Place({"port": str(service.expect("ready").port)}, "an HTTP service with a database of its own")


@contextmanager
def page(way: Way, sent: Sent) -> Iterator[HTTPPage]:
    """Open a client; a plain one where there is no fence."""
    transport: httpx.BaseTransport = httpx.HTTPTransport(verify=False)  # there is no TLS on the loopback
    if way.fence:
        transport = FencedTransport(transport)
    with httpx.Client(transport=transport, base_url=f"http://{HOST}:{way.port}", timeout=TIMEOUT) as client:
        yield HTTPPage(client, way, sent)


class HTTPPage:
    """A page at an address of the service."""

    def __init__(self, client: httpx.Client, way: Way, sent: Sent) -> None:
        self._client = client
        self._fence = HTTPFence(client, "/fences", timeout=TIMEOUT) if way.fence else None
        self._scope = way.page
        self._address = f"/pages/{way.page}"
        self._sent = sent
        self.answer = ""

    def raise_to(self, token: Token) -> None:
        """Announce a new owner; raises StaleToken."""
        if self._fence is not None:
            self._fence.raise_to(token, scope=self._scope)

    def read(self) -> str:
        """Read it."""
        return self._client.get(self._address).raise_for_status().text

    def write(self, token: Effect, text: str) -> None:
        """Write it under a token; raises StaleToken."""
        # Each write is a thing of its own here, so its key may say whose it is: "the latest wins", not "once" (R40).
        key = f"{token.job}:{token.generation}.{token.sequence}"
        headers = fencing_headers(token, self._scope, key) if self._fence is not None else {}
        self._client.put(
            self._address, content=text, headers=headers, extensions={"trace": self._trace}
        ).raise_for_status()

    def _trace(self, name: str, told: dict[str, Any]) -> None:
        """Hear from httpx how far a request is."""
        if name == "http11.receive_response_headers.started":
            self._sent()
        elif name == "http11.receive_response_headers.complete":
            _, status, phrase, *_ = told["return_value"]
            self.answer = f"{status} {phrase.decode()}"
