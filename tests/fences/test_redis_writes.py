"""Commands and scripts under a fence: whole or not at all, in the fence's slot, and nothing that escapes it."""

from __future__ import annotations

from typing import Any

import pytest
import redis
import redis.asyncio

from tenure import BadSettings, Misuse, Token
from tenure.errors import OutOfSequence, StaleToken
from tenure.fences.redis import RedisFence
from tenure.fences.redis.keys import MOST_WORDS
from tenure.fences.rule import Mark
from tenure.testing.redis import Redis
from tests.fences.redis_fixtures import *  # noqa: F403 -- pytest finds fixtures by name
from tests.fences.redis_fixtures import FENCE, SCOPE, SEVEN, TAG, A, B, C

# -- commands


def test_a_write_of_several_commands_answers_each(every: Any) -> None:
    commands = [("SET", A, "x"), ("GET", B), ("INCRBY", C, 5), ("RPUSH", f"d{TAG}", "1", b"2"), ("DEL", A, B)]
    assert RedisFence(every).apply(SEVEN, commands, scope=SCOPE) == [b"OK", None, 5, 2, 1]
    assert RedisFence(every).current(SCOPE) == Mark("job-1", 7, 1)


def test_a_write_is_made_whole_or_not_at_all(every: Any) -> None:
    fence = RedisFence(every)
    every.rpush(B, "old", "list")
    every.set(C, "text", px=100_000)
    every.set(f"d{TAG}", "stays")
    commands = [
        ("SET", A, "new"),
        ("DEL", B),
        ("SET", C, "longer"),
        ("EXPIRE", f"d{TAG}", 1),
        ("INCRBY", C, 1),
        ("SET", B, "x"),
    ]
    with pytest.raises(Misuse, match=r"command 5 \(INCRBY\) failed: .*not an integer.*nothing was changed") as failed:
        fence.apply(SEVEN, commands, scope=SCOPE)
    assert "could not" not in str(failed.value)
    assert (every.get(A), every.lrange(B, 0, -1), every.get(C)) == (None, [b"old", b"list"], b"text")
    assert 90_000 < every.pttl(C) <= 100_000
    assert every.ttl(f"d{TAG}") == -1
    assert fence.current(SCOPE) is None
    assert fence.apply(SEVEN, [*commands[:3], ("SET", B, "x")], scope=SCOPE) == [b"OK", 1, b"OK", b"OK"]
    assert every.get(B) == b"x"


def test_a_command_that_fails_leaves_the_fence_to_its_owner(every: Any) -> None:
    fence = RedisFence(every)
    fence.apply(SEVEN, [("SET", A, "text")], scope=SCOPE)
    for bad in (("INCR", A), ("SET", A), ("LPUSH", A, 1), ("SET", A, 1, "NONSENSE")):
        with pytest.raises(Misuse, match="nothing was changed; the fence was not raised"):
            fence.apply(SEVEN, [bad], scope=SCOPE, sequence=2)
    assert fence.current(SCOPE) == Mark("job-1", 7, 1)
    fence.apply(SEVEN, [("SET", A, "next")], scope=SCOPE, sequence=2)
    assert every.get(A) == b"next"


def test_a_user_who_may_not_restore_is_refused_before_the_first_command(client: Any, server: Redis) -> None:
    client.execute_command("ACL", "SETUSER", "clerk", "on", ">pw", "~*", "+@all", "-restore")
    with redis.Redis(port=server.port, username="clerk", password="pw") as clerk:
        fence = RedisFence(clerk)
        with pytest.raises(Misuse, match=r"need the right to RESTORE .*nothing was changed"):
            fence.apply(SEVEN, [("SET", A, 1), ("SET", B, 1)], scope=SCOPE)
        assert clerk.get(A) is None
        fence.apply(SEVEN, [("SET", A, 1)], scope=SCOPE)
        assert clerk.get(A) == b"1"


def test_a_command_that_the_user_may_not_run_is_undone_like_any_other(client: Any, server: Redis) -> None:
    client.execute_command("ACL", "SETUSER", "clerk", "on", ">pw", "~*", "+@all", "-lpush", "-evalsha")
    with redis.Redis(port=server.port, username="clerk", password="pw") as clerk:
        with pytest.raises(BadSettings, match="refuses this client"):
            RedisFence(clerk).raise_to(SEVEN)
        client.execute_command("ACL", "SETUSER", "clerk", "+evalsha")
        with pytest.raises(Misuse, match=r"command 2 \(LPUSH\).*nothing was changed"):
            RedisFence(clerk).apply(SEVEN, [("SET", A, 1), ("LPUSH", B, 1)], scope=SCOPE)
    assert client.get(A) is None


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("NONSENSE", A), "knows no command NONSENSE"),
        (("FLUSHALL",), "FLUSHALL does not tell which keys"),
        (("PUBLISH", A, "x"), "PUBLISH does not tell which keys"),
        (("SPUBLISH", A, "x"), "SPUBLISH reaches beyond"),
        (("MOVE", A, 1), "MOVE reaches beyond"),
        (("copy", A, A, "Db", 1), "COPY reaches beyond"),
        (("COPY", A, B, "REPLACE", b"db", 1), "COPY reaches beyond"),
        (("EVAL", "return 1", 1, A), "EVAL does not tell which keys"),
        (("BLPOP", A, 0), "BLPOP does not tell which keys"),
        (("SORT", A, "STORE", "other"), "SORT does not tell which keys"),
        (("SET", FENCE, "x"), "a fence's own"),
        (("DEL", A, f"tenure:resets:{TAG}"), "a fence's own"),
        (("SET", "a", 1), "do not share a slot"),
        (("SET", "a:{account/8}", 1), "do not share a slot"),
        (("SET", "{}" + A, 1), "do not share a slot"),
        (("SET", "{" + A, 1), "do not share a slot"),
        (("SET", "a:{account/7", 1), "do not share a slot"),
        (("SET", "account/7", 1), "do not share a slot"),
        (("MSET", A, 1, "b", 2), "do not share a slot"),
        (("DEL", A, B, "c"), "do not share a slot"),
        (("SET", 7, 1), "a key is text or bytes, not int"),
        (("SET", A, None), "cannot be given this"),
        (("SET", A, {"x": 1}), "cannot be given this"),
        ("SET", "a command is"),
        ((), "a command is"),
        (("RPUSH", A, *range(MOST_WORDS - 1)), "a command is 1 to 7000 words"),
    ],
)
def test_a_command_that_cannot_stand_under_a_fence_is_refused(
    client: Any, fence: RedisFence, command: Any, why: str
) -> None:
    for commands in ([command], [("SET", B, "x"), command]):
        with pytest.raises(Misuse, match=why):
            fence.apply(SEVEN, commands, scope=SCOPE)
    assert client.keys() == []


def test_a_copy_within_the_database_is_let_through(client: Any, fence: RedisFence) -> None:
    db = f"DB{TAG}"
    assert fence.apply(SEVEN, [("SET", db, "x"), ("COPY", db, A, "REPLACE")], scope=SCOPE) == [b"OK", 1]
    assert client.get(A) == b"x"


def test_a_write_without_commands_is_refused(fence: RedisFence) -> None:
    with pytest.raises(Misuse, match="no command to apply"):
        fence.apply(SEVEN, [], scope=SCOPE)


def test_the_longest_command_passes(every: Any) -> None:
    longest = ("RPUSH", A, *range(MOST_WORDS - 2))
    assert RedisFence(every).apply(SEVEN, [longest, longest], scope=SCOPE) == [MOST_WORDS - 2, 2 * (MOST_WORDS - 2)]


def test_keys_of_any_name_pass_on_a_single_server_when_asked_for(client: Any) -> None:
    fence = RedisFence(client, tagged=False)
    fence.apply(SEVEN, [("SET", "a", 1), ("SET", b"b", 2)], scope=SCOPE)
    assert client.mget("a", "b") == [b"1", b"2"]
    with pytest.raises(Misuse, match="a fence's own"):
        fence.apply(SEVEN, [("DEL", FENCE)], scope=SCOPE, sequence=2)


def test_odd_scopes_share_their_slot_with_their_keys() -> None:
    for scope in ("a", "{a}", "}{", "%7B", "{}", "a}b", "ä{"):
        tag = RedisFence.tag(scope)
        assert tag[0] + tag[-1] == "{}"
        assert not {"{", "}"} & {*tag[1:-1]}
    assert len({RedisFence.tag(scope) for scope in ("{", "%7B", "%257B", "}")}) == 4


# -- scripts of the user's own


def test_a_script_writes_under_the_fence(every: Any) -> None:
    spend = RedisFence(every).script(
        """
        local left = tonumber(redis.call('GET', KEYS[1]) or '0') - tonumber(ARGV[1])
        if left < 0 then return redis.error_reply('only so much is there') end
        redis.call('SET', KEYS[1], left)
        return {left, ARGV[2]}
        """
    )
    every.set(A, 10)
    assert spend.apply(SEVEN, [A], [7, "x"], scope=SCOPE) == [3, b"x"]
    with pytest.raises(Misuse, match="only so much is there; the fence was not raised"):
        spend.apply(SEVEN, [A], [7], scope=SCOPE, sequence=2)
    with pytest.raises(OutOfSequence):
        spend.apply(SEVEN, [A], [1], scope=SCOPE)
    with pytest.raises(StaleToken):
        spend.apply(Token("job-1", 6), [A], [1], scope=SCOPE, sequence=9)
    assert every.get(A) == b"3"
    assert spend.apply(SEVEN, [A], [3], scope=SCOPE, sequence=2) == [0]


def test_a_script_that_fails_leaves_the_mark_and_what_it_wrote(every: Any) -> None:
    fence = RedisFence(every)
    bad = fence.script("redis.call('SET', KEYS[1], 'half') redis.call('INCR', KEYS[1]) return 1")
    with pytest.raises(Misuse, match=r"not an integer.*the fence was not raised"):
        bad.apply(SEVEN, [A], scope=SCOPE)
    assert (every.get(A), fence.current(SCOPE)) == (b"half", None)
    with pytest.raises(Misuse, match="wrong turn"):
        fence.script("error('wrong turn')").apply(SEVEN, [A], scope=SCOPE)
    with pytest.raises(Misuse, match="compiling script"):
        fence.script("return (").apply(SEVEN, [A], scope=SCOPE)
    assert fence.script("return nil").apply(SEVEN, [A], scope=SCOPE) is None
    assert fence.current(SCOPE) == Mark("job-1", 7, 1)


def test_a_script_keeps_to_the_slot(fence: RedisFence) -> None:
    with pytest.raises(Misuse, match="do not share a slot"):
        fence.script("return 1").apply(SEVEN, ["elsewhere"], scope=SCOPE)
    with pytest.raises(Misuse, match="a fence's own"):
        fence.script("return redis.call('DEL', KEYS[1])").apply(SEVEN, [FENCE], scope=SCOPE)


def test_a_server_that_forgot_its_scripts_is_told_again(client: Any, fence: RedisFence) -> None:
    script = fence.script("return redis.call('INCR', KEYS[1])")
    for generation in (7, 8):
        client.script_flush()
        fence.raise_to(Token("job-1", generation), scope=SCOPE)
        client.script_flush()
        assert script.apply(Token("job-1", generation), [A], scope=SCOPE) == generation - 6
