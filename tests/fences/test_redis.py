"""The rule on every installed release, through every kind of client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import redis
import redis.asyncio

from tenure import BadSettings, Misuse
from tenure.fences.redis import RedisFence
from tenure.testing.fences.crowd import *  # noqa: F403 -- the part's tests
from tenure.testing.fences.rule import *  # noqa: F403 -- the part's tests
from tenure.testing.redis import Redis
from tests.fences.redis import (
    AsyncClusterDestination,
    AsyncDestination,
    ClusterDestination,
    RedisDestination,
    a_cluster,
    cluster_client,
)
from tests.fences.redis_fixtures import RELEASES_HERE, SCOPE, SEVEN, A

WAYS: dict[str, tuple[type[RedisDestination], str]] = {
    **{release: (RedisDestination, release) for release in RELEASES_HERE},
    "asyncio": (AsyncDestination, "valkey"),
    "cluster": (ClusterDestination, "cluster"),
    "asyncio-cluster": (AsyncClusterDestination, "cluster"),
}


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Redis]]:
    with ExitStack() as stack:
        running = {release: stack.enter_context(Redis.start(release)) for release in RELEASES_HERE}
        yield {**running, "cluster": stack.enter_context(a_cluster())}


@pytest.fixture(params=WAYS)
def destination(request: pytest.FixtureRequest, servers: dict[str, Redis]) -> Iterator[RedisDestination]:
    kind, server = WAYS[request.param]
    with redis.Redis.from_url(servers[server].url) as client:
        client.flushall()
    destination = kind(servers[server].url)
    yield destination
    destination.close()


def test_a_cluster_needs_the_tag(servers: dict[str, Redis]) -> None:
    url = servers["cluster"].url
    with cluster_client(url) as client:
        client.flushall()
        with pytest.raises(BadSettings, match="tagged=False is for a single server"):
            RedisFence(client, tagged=False)
        with pytest.raises(Misuse, match="do not share a slot"):
            RedisFence(client).apply(SEVEN, [("SET", A, 1), ("SET", "b", 1)], scope=SCOPE)
        assert client.get(A) is None


def test_r42_every_primary_of_a_cluster_is_looked_at(servers: dict[str, Redis]) -> None:
    async def check() -> tuple[str, ...]:
        async with redis.asyncio.RedisCluster.from_url(servers["cluster"].url) as client:
            return (await RedisFence(client).check_async()).weaknesses

    with cluster_client(servers["cluster"].url) as client:
        fence = RedisFence(client)
        assert fence.check().kind == "durable"
        client.config_set("appendfsync", "no", target_nodes="all")
        try:
            assert fence.check().weaknesses == (f"127.0.0.1:{servers['cluster'].port}: appendfsync is no, not always",)
            assert asyncio.run(check()) == fence.check().weaknesses
        finally:
            client.config_set("appendfsync", "always", target_nodes="all")
