"""Redis as the destination: a Valkey server of the play's own, whose keys are written by fenced scripts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import redis

from tenure.demo.destinations.place import HOST, TIMEOUT, Place, Sent, Stage, Way
from tenure.fences.redis import RedisFence
from tenure.protocol.lease import Effect, Token
from tenure.testing.redis import Redis

_CHANGES = {"EVALSHA", "EVAL", "SET"}


@contextmanager
def place(_stage: Stage) -> Iterator[Place]:
    """Start a server."""
    with Redis.start() as server:
        password = urlsplit(server.url).password or ""
        yield Place({"port": str(server.port), "password": password}, "a Valkey server")


@contextmanager
def page(way: Way, sent: Sent) -> Iterator[RedisPage]:
    """Connect to it."""
    with closing(_Client(way, sent)) as client:
        yield RedisPage(client, way)


class RedisPage:
    """A page in a key of its own."""

    def __init__(self, client: _Client, way: Way) -> None:
        self._client = client
        self._fence = RedisFence(client) if way.fence else None
        self._scope = way.page
        self._key = f"page:{RedisFence.tag(way.page)}"

    @property
    def answer(self) -> str:
        """What the server said to the last write."""
        return self._client.said

    def raise_to(self, token: Token) -> None:
        """Announce a new owner; raises StaleToken."""
        if self._fence is not None:
            self._fence.raise_to(token, scope=self._scope)

    def read(self) -> str:
        """Read it."""
        return bytes(self._client.execute_command("GET", self._key) or b"").decode()

    def write(self, token: Effect, text: str) -> None:
        """Write it under a token; raises StaleToken."""
        if self._fence is None:
            self._client.execute_command("SET", self._key, text)
        else:
            self._fence.apply(token, [("SET", self._key, text)], scope=self._scope)


class _Client:
    """A client whose changes go out on a connection of their own, which may be slow."""

    def __init__(self, way: Way, sent: Sent) -> None:
        library: Any = redis  # parts of it carry no types
        settings = {"host": HOST, "password": way.address["password"], "socket_timeout": TIMEOUT}
        self._straight = library.Redis(port=int(way.address["port"]), **settings)
        self._slow = library.Connection(port=way.port, **settings)
        self._slow.connect()
        self._sent = sent
        self.said = ""

    def execute_command(self, *words: Any) -> Any:
        """Execute a command, as redis-py's own clients do."""
        if words[0] not in _CHANGES:
            return self._straight.execute_command(*words)
        self._slow.send_command(*words)
        self._sent()
        reply = self._slow.read_response()
        if isinstance(reply, list):
            self.said = f"its script says {reply[0].decode()!r}"
        return reply

    def close(self) -> None:
        """Close both connections."""
        self._straight.close()
        self._slow.disconnect()
