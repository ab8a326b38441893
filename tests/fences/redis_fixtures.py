"""Servers and clients for the tests of what is Redis's own; star-imported, since pytest finds fixtures by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any

import pytest
import redis

from tenure import Token
from tenure.fences.redis import RedisFence
from tenure.testing.redis import RELEASES, Redis

# Not every wheel exists for every release of Python; Valkey's does.
RELEASES_HERE = [release for release, (package, _) in RELEASES.items() if find_spec(package)]

SEVEN, EIGHT = Token("job-1", 7), Token("job-1", 8)
SCOPE = "account/7"
TAG = RedisFence.tag(SCOPE)
FENCE = f"tenure:fence:{TAG}"
A, B, C = f"a:{TAG}", f"b:{TAG}", f"c:{TAG}"


@pytest.fixture(scope="module")
def releases() -> Iterator[dict[str, Redis]]:
    with ExitStack() as stack:
        yield {release: stack.enter_context(Redis.start(release)) for release in RELEASES_HERE}


@pytest.fixture
def server(releases: dict[str, Redis]) -> Redis:
    return releases["valkey"]


@pytest.fixture
def client(server: Redis) -> Iterator[Any]:
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
        yield client


@pytest.fixture
def fence(client: Any) -> RedisFence:
    return RedisFence(client)


@pytest.fixture(params=RELEASES_HERE)
def every(request: pytest.FixtureRequest, releases: dict[str, Redis]) -> Iterator[Any]:
    """Give a client of every installed release in turn."""
    with redis.Redis.from_url(releases[request.param].url) as client:
        client.flushall()
        yield client
