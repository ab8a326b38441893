"""Settings of servers that can lose a fence, and every kind of client."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

from tenure import App, Misuse, Token, Unavailable
from tenure.errors import StaleToken
from tenure.fences.redis import RedisFence
from tenure.fences.rule import Mark
from tenure.protocol.lease import Effect
from tenure.testing.redis import Redis
from tests.fences.redis_fixtures import *  # noqa: F403 -- pytest finds fixtures by name
from tests.fences.redis_fixtures import EIGHT, SCOPE, SEVEN, A, B
from tests.support.processes import wait_for

# -- durability


def test_r42_the_default_server_is_durable(every: Any) -> None:
    durability = RedisFence(every).check()
    assert (durability.kind, durability.weaknesses) == ("durable", ())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("appendonly", "no"),
        ("appendfsync", "everysec"),
        ("appendfsync", "no"),
        ("no-appendfsync-on-rewrite", "yes"),
        ("maxmemory-policy", "allkeys-lru"),
        ("maxmemory-policy", "allkeys-random"),
    ],
)
def test_r42_a_setting_that_can_lose_a_fence_is_named(name: str, value: str) -> None:
    with Redis.start(settings={name: value}) as weak, redis.Redis.from_url(weak.url) as client:
        durability = RedisFence(client).check()
    assert durability.kind == "advisory"
    assert len(durability.weaknesses) == 1
    assert durability.weaknesses[0].startswith(f"{name} is {value}, not ")


def test_r42_evicting_keys_with_an_expiry_spares_a_fence() -> None:
    with Redis.start(settings={"maxmemory-policy": "volatile-lru"}) as fit, redis.Redis.from_url(fit.url) as client:
        assert RedisFence(client).check().kind == "durable"


def test_r42_replicas_and_hidden_settings_are_weaknesses(server: Redis, client: Any) -> None:
    with Redis.start() as second, redis.Redis.from_url(second.url) as replica:
        replica.config_set("masterauth", server.url.split(":")[2].split("@")[0])
        client.config_set("repl-diskless-sync-delay", 0)
        replica.replicaof("127.0.0.1", server.port)
        wait_for(lambda: client.info("replication")["connected_slaves"] == 1, 10, "the replica")
        assert "failover may lose the last writes" in RedisFence(client).check().weaknesses[0]
        assert RedisFence(replica).check().weaknesses == ("the server is a replica",)
        with pytest.raises(Unavailable, match="read only"):
            RedisFence(replica).apply(SEVEN, [("SET", A, 1)], scope=SCOPE)
    wait_for(lambda: client.info("replication")["connected_slaves"] == 0, 10, "the replica to go")
    client.execute_command("ACL", "SETUSER", "guest", "on", ">pw", "~*", "+@all", "-config")
    with redis.Redis(port=server.port, username="guest", password="pw") as guest:
        durability = RedisFence(guest).check()
    assert durability.kind == "advisory"
    assert "does not show its settings" in durability.weaknesses[0]
    with redis.Redis(port=1, retry=Retry(NoBackoff(), 0)) as nobody, pytest.raises(Unavailable):
        RedisFence(nobody).check()


# -- clients


@pytest.mark.parametrize("options", [{"decode_responses": True}, {"protocol": 2}, {"protocol": 3}], ids=str)
def test_any_setting_of_the_client_will_do(server: Redis, options: dict[str, Any]) -> None:
    with redis.Redis.from_url(server.url, **options) as client:
        client.flushall()
        fence = RedisFence(client)
        fence.apply(EIGHT, [("SET", A, "x"), ("HSET", B, "f", 1)], scope=SCOPE)
        assert fence.current(SCOPE) == Mark("job-1", 8, 1)
        with pytest.raises(StaleToken):
            fence.raise_to(SEVEN, scope=SCOPE)
        fence.reset(SCOPE, reason="a test")
        assert [reset.mark for reset in fence.resets(SCOPE)] == [Mark("job-1", 8, 1)]
        assert fence.check().kind == "durable"


def test_an_asyncio_client_is_not_used_from_blocking_code(server: Redis) -> None:
    async def use() -> None:
        async with redis.asyncio.Redis.from_url(server.url) as mine:
            with pytest.raises(Misuse, match="ends in _async"):
                RedisFence(mine).raise_to(SEVEN)

    asyncio.run(use())


@pytest.mark.parametrize("kind", [redis.asyncio.Redis, redis.Redis])
def test_every_verb_has_a_twin_for_code_in_an_event_loop(client: Any, server: Redis, kind: Any) -> None:
    async def use() -> None:
        mine = kind.from_url(server.url)
        fence = RedisFence(mine)
        await fence.raise_to_async(SEVEN, scope=SCOPE)
        assert await fence.apply_async(Effect("job-1", 7, 4), [("SET", A, 1)], scope=SCOPE) == [b"OK"]
        add = fence.script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
        assert await add.apply_async(SEVEN, [A], [4], scope=SCOPE, sequence=5) == 5
        assert await fence.current_async(SCOPE) == Mark("job-1", 7, 5)
        await fence.reset_async(SCOPE, reason="a test")
        assert len(await fence.resets_async(SCOPE)) == 1
        assert (await fence.check_async()).kind == "durable"
        await (mine.aclose() if kind is redis.asyncio.Redis else asyncio.to_thread(mine.close))

    asyncio.run(use())


def test_a_run_passes_its_own_token(client: Any, fence: RedisFence) -> None:
    app = App("memory://")
    with app.lease(SCOPE) as lease:
        fence.raise_to(lease.token)
        fence.apply(lease.token, [("SET", A, "mine")])
    assert client.get(A) == b"mine"
    assert fence.current(SCOPE) == Mark(SCOPE, 1, 1)


def test_the_examples_of_the_page_run_as_one_program(server: Redis, client: Any, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "fences" / "redis.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    program = "\n".join(blocks).replace("redis://localhost:6379/0", server.url)
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-W", "error", "-c", program]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "generation 1 is stale" in ran.stdout
    assert "durable" in ran.stdout.split()


def test_what_keeps_answers_back_is_no_client(client: Any) -> None:
    """A pipeline takes a script as one more command to be sent later: nothing would have been compared."""
    waiting = redis.asyncio.Redis()
    kept = [client.pipeline(), client.pubsub(), waiting.pipeline(), waiting.pubsub()]
    of_clusters = (redis.cluster.ClusterPipeline, redis.asyncio.cluster.ClusterPipeline)
    kept += [object.__new__(kind) for kind in of_clusters]  # a cluster makes them, and there is none here
    for each in kept:
        with pytest.raises(Misuse, match=f"a {type(each).__name__} keeps it back"):
            RedisFence(each)
    for other in (None, "redis://localhost"):
        with pytest.raises(Misuse, match="needs a client of redis-py"):
            RedisFence(other)


# -- encodings


@pytest.fixture
def latin(server: Redis) -> Iterator[Any]:
    with redis.Redis.from_url(server.url, encoding="latin-1") as latin:
        yield latin


def test_clients_of_two_encodings_meet_at_one_mark(client: Any, latin: Any) -> None:
    utf, other = RedisFence(client, tagged=False), RedisFence(latin, tagged=False)
    job, scope = "préparer", "prix/été"
    utf.raise_to(Token(job, 9), scope=scope)
    with pytest.raises(StaleToken):
        other.apply(Token(job, 4), [("SET", "plain", "old")], scope=scope)
    other.apply(Token(job, 10), [("SET", "plain", "new")], scope=scope)
    assert utf.current(scope) == other.current(scope) == Mark(job, 10, 1)
    other.reset(scope, reason="périmé")
    assert [reset.reason for reset in utf.resets(scope)] == ["périmé"]


def test_a_client_of_ones_own_need_only_execute_commands(client: Any) -> None:
    class Own:
        def execute_command(self, *words: Any, **options: Any) -> Any:
            return client.execute_command(*words, **options)

    fence = RedisFence(Own(), tagged=False)
    fence.apply(Token("job-1", 8), [("SET", "été", "new")], scope="prix/été")
    assert client.get("été") == b"new"
    with pytest.raises(StaleToken):
        RedisFence(client, tagged=False).apply(Token("job-1", 7), [("SET", "été", "old")], scope="prix/été")


def test_what_a_client_wrote_in_its_own_encoding_is_put_back(client: Any, latin: Any) -> None:
    fence = RedisFence(latin, tagged=False)
    latin.set("été", "before")
    with pytest.raises(Misuse, match="nothing was changed"):
        fence.apply(SEVEN, [("SET", "été", "after"), ("LPUSH", "été", "x")], scope=SCOPE)
    assert latin.get("été") == b"before"
