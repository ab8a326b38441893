"""The mark of a fence: no expiry, damage, exact numbers; answers that are lost and writes that are late."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

from tenure import Misuse, Token, Unavailable
from tenure.errors import BadToken, OutcomeUnknown, OutOfSequence, StaleToken, TenureError
from tenure.fences.redis import RedisFence
from tenure.fences.rule import LEAP, Mark, announcement, judge, writing
from tenure.store.contract import MAX_GENERATION
from tenure.testing.proxy import Proxy
from tenure.testing.redis import Redis
from tests.fences.redis_fixtures import *  # noqa: F403 -- pytest finds fixtures by name
from tests.fences.redis_fixtures import EIGHT, FENCE, SCOPE, SEVEN, A, B

# -- the fence itself


def test_r35_a_fence_with_an_expiry_lets_nothing_in(every: Any) -> None:
    fence = RedisFence(every)
    fence.apply(SEVEN, [("SET", A, "new")], scope=SCOPE)
    assert every.ttl(FENCE) == -1
    every.expire(FENCE, 1000)
    with pytest.raises(BadToken, match="has an expiry"):
        fence.raise_to(EIGHT, scope=SCOPE)
    with pytest.raises(BadToken, match="has an expiry"):
        fence.apply(EIGHT, [("SET", A, "newer")], scope=SCOPE)
    assert every.get(A) == b"new"
    every.persist(FENCE)
    fence.apply(EIGHT, [("SET", A, "newer")], scope=SCOPE)
    assert every.get(A) == b"newer"


@pytest.mark.parametrize(
    "damage",
    [
        ("HDEL", FENCE, "job"),
        ("HDEL", FENCE, "generation"),
        ("HDEL", FENCE, "sequence"),
        ("HSET", FENCE, "generation", "x"),
        ("HSET", FENCE, "generation", "-1"),
        ("HSET", FENCE, "generation", "0x1"),
        ("HSET", FENCE, "generation", "1e3"),
        ("HSET", FENCE, "sequence", ""),
        ("HSET", FENCE, "sequence", "1234567890123456"),
        ("SET", FENCE, "8"),
    ],
    ids=" ".join,
)
def test_a_damaged_fence_lets_nothing_in_until_it_is_reset(
    client: Any, fence: RedisFence, damage: tuple[str, ...]
) -> None:
    fence.apply(SEVEN, [("SET", A, "new")], scope=SCOPE)
    client.execute_command(*damage)
    with pytest.raises(BadToken, match="holds no mark"):
        fence.apply(EIGHT, [("SET", A, "newer")], scope=SCOPE)
    assert client.get(A) == b"new"
    fence.reset(SCOPE, reason="somebody wrote into it")
    assert [reset.reason for reset in fence.resets(SCOPE)] == ["somebody wrote into it"]
    fence.apply(EIGHT, [("SET", A, "newer")], scope=SCOPE)


def test_a_reset_keeps_the_old_mark_and_its_moment(client: Any, fence: RedisFence) -> None:
    seconds, _ = client.time()
    fence.reset(SCOPE, reason="nothing is there")
    fence.apply(Token("jöb", LEAP), [("SET", A, 1)], scope=SCOPE, sequence=3)
    fence.reset(SCOPE, reason="a bogus tökén")
    (reset,) = fence.resets(SCOPE)
    assert (reset.scope, reset.mark) == (SCOPE, Mark("jöb", LEAP, 3))
    assert reset.reason == "a bogus tökén"
    assert seconds <= reset.at < seconds + 60
    assert fence.current(SCOPE) is None


@pytest.mark.parametrize("reason", ["", " \n", None, 5])
def test_a_reset_needs_a_reason_in_words(fence: RedisFence, reason: str) -> None:
    fence.raise_to(SEVEN, scope=SCOPE)
    with pytest.raises(Misuse, match="reason"):
        fence.reset(SCOPE, reason=reason)
    assert fence.current(SCOPE) == Mark("job-1", 7, 0)


def test_r38_numbers_of_15_digits_are_compared_exactly(every: Any) -> None:
    fence = RedisFence(every, leap=MAX_GENERATION)
    for generation in (MAX_GENERATION - 1, MAX_GENERATION):
        fence.apply(Token("job-1", generation), [("SET", A, generation)], scope=SCOPE, sequence=MAX_GENERATION - 1)
        fence.apply(Token("job-1", generation), [("SET", A, generation)], scope=SCOPE, sequence=MAX_GENERATION)
        with pytest.raises(OutOfSequence):
            fence.apply(Token("job-1", generation), [("SET", A, "x")], scope=SCOPE, sequence=MAX_GENERATION - 1)
    with pytest.raises(StaleToken) as refused:
        fence.apply(Token("job-1", MAX_GENERATION - 1), [("SET", A, "x")], scope=SCOPE)
    assert refused.value.current == MAX_GENERATION
    assert every.hget(FENCE, "generation") == b"999999999999999"
    with pytest.raises(BadToken, match="lies more than"):
        RedisFence(every).raise_to(Token("job-1", LEAP + 1), scope="new")


def test_r37_the_script_itself_refuses_what_is_malformed(client: Any, fence: RedisFence) -> None:
    fence.raise_to(SEVEN, scope=SCOPE)
    digest = fence.script("return redis.call('SET', KEYS[1], 'x')")._script.digest
    with pytest.raises(Misuse):
        fence.script("return redis.call('SET')").apply(SEVEN, [A], scope=SCOPE)
    fence.script("return redis.call('SET', KEYS[1], 'x')").apply(SEVEN, [A], scope=SCOPE)
    for generation, sequence in (("8.0", 1), ("0x8", 1), ("-8", 1), ("", 1), ("1" * 16, 1), (8, "1e1"), (8, " 1")):
        asked = ("EVALSHA", digest, 2, FENCE, A, "job-1", generation, sequence, LEAP, "call")
        assert client.execute_command(*asked) == [b"malformed"]
    assert fence.current(SCOPE) == Mark("job-1", 7, 1)


def test_the_script_decides_as_the_rule_does(every: Any) -> None:
    fence, mark, chance = RedisFence(every, leap=6), None, random.Random(7)
    verdicts: Counter[str] = Counter()
    for _ in range(300):
        near = mark.generation if mark else 1
        token = Token(chance.choice(["job-1"] * 9 + ["job-2"]), max(1, near + chance.randint(-2, 2) ** 3))
        sequence = chance.randint(0, 4)
        bid = writing(token, SCOPE, sequence) if sequence else announcement(token, SCOPE)
        expected: str | Mark | None
        try:
            expected = judge(mark, bid, leap=6)
        except TenureError as error:
            expected = str(error)
        try:
            if sequence:
                fence.apply(token, [("SET", A, 1)], scope=SCOPE, sequence=sequence)
            else:
                fence.raise_to(token, scope=SCOPE)
            found: str | Mark | None = fence.current(SCOPE)
            mark = fence.current(SCOPE)
        except TenureError as error:
            found = str(error)
            verdicts[type(error).__name__] += 1
        assert found == expected
        if chance.random() < 0.02 and mark:
            fence.reset(SCOPE, reason="a test")
            mark = None
    assert {*verdicts} == {"StaleToken", "OutOfSequence", "BadToken"}
    assert min(verdicts.values()) > 10


# -- answers that are lost, and writes that are late


@pytest.fixture
def proxy(server: Redis) -> Iterator[Proxy]:
    with Proxy("127.0.0.1", server.port) as proxy:
        yield proxy


def test_what_the_client_sends_again_is_applied_once(client: Any, server: Redis, proxy: Proxy) -> None:
    retry = Retry(NoBackoff(), 3)
    with redis.Redis.from_url(
        proxy.url_for(server.url), retry=retry, retry_on_error=[redis.ConnectionError], socket_timeout=5
    ) as patient:
        fence = RedisFence(patient)
        assert fence.apply(SEVEN, [("INCR", A)], scope=SCOPE) == [1]
        proxy.drop_reply()
        assert fence.apply(SEVEN, [("INCR", A)], scope=SCOPE, sequence=2) is None
        assert fence.apply(SEVEN, [("INCR", A)], scope=SCOPE, sequence=3) == [3]
        proxy.drop_reply()
        fence.raise_to(EIGHT, scope=SCOPE)
        proxy.drop_reply()
        script = fence.script("return redis.call('INCR', KEYS[1])")
        assert script.apply(EIGHT, [A], scope=SCOPE) in {4, None}
    assert proxy.counts.replies_dropped == 3
    assert client.get(A) == b"4"


def test_without_retries_a_lost_answer_is_unknown_and_repeating_tells(client: Any, server: Redis, proxy: Proxy) -> None:
    with redis.Redis.from_url(proxy.url_for(server.url), retry=Retry(NoBackoff(), 0), socket_timeout=5) as hasty:
        fence = RedisFence(hasty)
        fence.apply(SEVEN, [("INCR", A)], scope=SCOPE)
        proxy.drop_reply()
        with pytest.raises(OutcomeUnknown, match="repeating it is harmless"):
            fence.apply(SEVEN, [("INCR", A)], scope=SCOPE, sequence=2)
        with pytest.raises(OutOfSequence) as told:
            fence.apply(SEVEN, [("INCR", A)], scope=SCOPE, sequence=2)
        assert told.value.sequence == told.value.highest
        proxy.refuse()
        proxy.cut()
        with pytest.raises(Unavailable, match="nothing was changed"):
            fence.current(SCOPE)
    assert client.get(A) == b"2"


@pytest.mark.parametrize("fenced", [True, False])
def test_a_write_that_was_held_up_until_the_new_owner_had_read(
    client: Any, server: Redis, proxy: Proxy, fenced: bool
) -> None:
    fence = RedisFence(client)
    fence.apply(SEVEN, [("SET", A, "old")], scope=SCOPE)
    with redis.Redis.from_url(proxy.url_for(server.url)) as late, ThreadPoolExecutor(1) as pool:
        late.ping()
        proxy.hold("server")
        sent = pool.submit(
            lambda: (
                RedisFence(late).apply(SEVEN, [("SET", A, "late")], scope=SCOPE, sequence=2)
                if fenced
                else late.set(A, "late")
            )
        )
        fence.raise_to(EIGHT, scope=SCOPE)
        assert client.get(A) == b"old"
        assert not sent.done()
        proxy.release()
        assert isinstance(sent.exception(), StaleToken if fenced else type(None))
    assert client.get(A) == (b"old" if fenced else b"late")


def test_what_was_answered_survives_a_kill(server: Redis) -> None:
    with Redis.start() as doomed:
        with redis.Redis.from_url(doomed.url) as client:
            RedisFence(client).apply(EIGHT, [("SET", A, "new")], scope=SCOPE)
        doomed.kill()
        doomed.restart()
        with redis.Redis.from_url(doomed.url) as client:
            with pytest.raises(StaleToken):
                RedisFence(client).apply(SEVEN, [("SET", A, "late")], scope=SCOPE)
            assert client.get(A) == b"new"


def test_a_full_server_changes_nothing(every: Any) -> None:
    fence = RedisFence(every)
    fence.apply(SEVEN, [("SET", A, "old")], scope=SCOPE)
    every.config_set("maxmemory", 1)
    try:
        for commands in ([("SET", A, "new")], [("SET", A, "new"), ("SET", B, "new")], [("GET", A)]):
            with pytest.raises(Unavailable, match="OOM command not allowed"):
                fence.apply(SEVEN, commands, scope=SCOPE, sequence=2)
    finally:
        every.config_set("maxmemory", 0)
    assert (every.get(A), every.get(B)) == (b"old", None)
    assert fence.current(SCOPE) == Mark("job-1", 7, 1)
