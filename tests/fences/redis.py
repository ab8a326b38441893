"""A Redis server as a destination: each scope's value is one key, written under a `RedisFence`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
import redis.asyncio

from tenure import Token
from tenure.fences.redis import RedisFence
from tenure.testing.fences import Destination
from tenure.testing.proxy import free_port
from tenure.testing.redis import Redis, Settings
from tests.support.processes import wait_for


class RedisDestination:
    """Through a blocking client."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = self.connect()
        self.fence = RedisFence(self.client)

    def connect(self) -> Any:
        return redis.Redis.from_url(self.url)

    def raise_to(self, token: Token, scope: str) -> None:
        self.fence.raise_to(token, scope=scope)

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        self.fence.apply(token, [("SET", key(scope), value)], scope=scope, sequence=sequence)

    def write_unfenced(self, scope: str, value: str) -> None:
        self.ask("SET", key(scope), value)

    def read(self, scope: str) -> str | None:
        found = self.ask("GET", key(scope))
        return None if found is None else found.decode()

    def delete(self, scope: str) -> None:
        self.ask("DEL", key(scope))

    def reset(self, scope: str, reason: str) -> None:
        self.fence.reset(scope, reason=reason)

    def resets(self, scope: str) -> list[str]:
        return [reset.reason for reset in self.fence.resets(scope)]

    @contextmanager
    def again(self) -> Iterator[Destination]:
        other = type(self)(self.url)
        try:
            yield other
        finally:
            other.close()

    def ask(self, *words: Any) -> Any:
        return self.client.execute_command(*words)

    def close(self) -> None:
        self.client.close()


class ClusterDestination(RedisDestination):
    """Through a blocking client of a cluster."""

    def connect(self) -> Any:
        return redis.RedisCluster.from_url(self.url)

    def close(self) -> None:
        close_cluster(self.client)


class AsyncDestination(RedisDestination):
    """Through an asyncio client, in an event loop of its own."""

    def __init__(self, url: str) -> None:
        self.runner = asyncio.Runner()
        super().__init__(url)

    def connect(self) -> Any:
        return redis.asyncio.Redis.from_url(self.url)

    def raise_to(self, token: Token, scope: str) -> None:
        self.runner.run(self.fence.raise_to_async(token, scope=scope))

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        command = ("SET", key(scope), value)
        self.runner.run(self.fence.apply_async(token, [command], scope=scope, sequence=sequence))

    def reset(self, scope: str, reason: str) -> None:
        self.runner.run(self.fence.reset_async(scope, reason=reason))

    def resets(self, scope: str) -> list[str]:
        return [reset.reason for reset in self.runner.run(self.fence.resets_async(scope))]

    def ask(self, *words: Any) -> Any:
        async def asked() -> Any:
            return await self.client.execute_command(*words)

        return self.runner.run(asked())

    def close(self) -> None:
        self.runner.run(self.client.aclose())
        self.runner.close()


class AsyncClusterDestination(AsyncDestination):
    """Through an asyncio client of a cluster."""

    def connect(self) -> Any:
        return redis.asyncio.RedisCluster.from_url(self.url)


def close_cluster(client: Any) -> None:
    """Close a blocking client of a cluster, and its connections: its own `close` leaves them to be found as garbage."""
    client.disconnect_connection_pools()
    client.close()


@contextmanager
def cluster_client(url: str) -> Iterator[Any]:
    """Open a blocking client of a cluster."""
    client: Any = redis.RedisCluster.from_url(url)
    try:
        yield client
    finally:
        close_cluster(client)


def key(scope: str) -> str:
    return f"value:{RedisFence.tag(scope)}"


@contextmanager
def a_cluster(release: str = "valkey") -> Iterator[Redis]:
    """Start a cluster of one node, which holds every slot."""
    settings: Settings = {"cluster-enabled": True, "cluster-port": free_port()}
    with Redis.start(release, settings=settings) as server:
        with redis.Redis.from_url(server.url) as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            wait_for(lambda: b"state:ok" in client.execute_command("CLUSTER", "INFO"), 10, "the cluster")
        yield server
