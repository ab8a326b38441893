"""`RedisFence` and `FencedScript`: the verbs of a fence, each one script."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from tenure.errors import BadSettings, BadToken, Misuse, Unavailable
from tenure.fences.redis.connect import Command, Link, Script, as_text, evaluate, load
from tenure.fences.redis.durability import Durability, look
from tenure.fences.redis.keys import FENCE, RESETS, Spec, Words, check_keys, own_key, read_name, read_spec, tag
from tenure.fences.rule import LEAP, Bid, Mark, Reset, announcement, check_reason, judge, writing
from tenure.protocol.lease import Token
from tenure.protocol.op import Op, ask


def _fenced(body: str) -> Script:
    return Script(load("fence.lua").replace("--@write", body))


_COMMANDS = _fenced(load("commands.lua"))
_RESET = Script(load("reset.lua"))

_PASSED = {"announced", "applied", "repeated"}
_TRY_LATER = ("OOM ", "READONLY ", "MISCONF ", "NOREPLICAS ")
_WRONG = {
    "expires": "its fence has an expiry, after which older tokens would pass: let it persist (R35)",
    "damaged": "its fence holds no mark: find out which generation is in force, and reset the scope",
    "malformed": "the token is malformed",
}


class RedisFence:
    """Fences beside the data in Redis; `client` is a redis-py client, blocking or asyncio, of a server or a cluster.

    The keys of a write carry the scope's hash tag (`tag`), so that fence and data share a slot. With `tagged=False` any
    key will do, on a single server only. The methods that end in `_async` take either kind of client, the others a
    blocking one.
    """

    def __init__(self, client: Any, *, leap: int = LEAP, tagged: bool = True) -> None:
        self._link = Link(client)
        self._leap = leap
        self._tagged = tagged
        self._specs: dict[str, Spec] = {}
        if self._link.cluster and not tagged:
            raise BadSettings("tagged=False is for a single server: in a cluster, fence and data must share a slot")

    @staticmethod
    def tag(scope: str) -> str:
        """Return the hash tag of a scope, such as ``{account/7}``, to stand in each key written under it."""
        return tag(scope)

    def raise_to(self, token: Token, *, scope: str | None = None) -> None:
        """Announce a new owner before its first read there (R32); raises StaleToken when a newer one was here.

        `scope` names what is protected, by default the job itself.
        """
        self._link.do(self._pass(_COMMANDS, announcement(token, scope)))

    async def raise_to_async(self, token: Token, *, scope: str | None = None) -> None:
        """Announce a new owner; the twin of `raise_to`."""
        await self._link.ado(self._pass(_COMMANDS, announcement(token, scope)))

    def apply(
        self, token: Token, commands: Iterable[Words], *, sequence: int | None = None, scope: str | None = None
    ) -> list[Any] | None:
        """Run commands such as ``("SET", key, value)`` under the fence, whole or not at all; return their replies.

        None in place of the replies says that they were applied and the answer was lost on its way. Raises StaleToken
        or OutOfSequence, and nothing was changed. A command that fails is Misuse, and those before it are undone.

        After OutcomeUnknown repeat the call with its sequence; an OutOfSequence with `sequence == highest` then says
        that the first one was applied. Several commands cost a copy of the keys that they write: see `script`.
        """
        bid = writing(token, scope, sequence)
        return self._link.do(self._apply(bid, [*commands]))

    async def apply_async(
        self, token: Token, commands: Iterable[Words], *, sequence: int | None = None, scope: str | None = None
    ) -> list[Any] | None:
        """Run commands under the fence; the twin of `apply`."""
        bid = writing(token, scope, sequence)
        return await self._link.ado(self._apply(bid, [*commands]))

    def script(self, body: str) -> FencedScript:
        """Make a write of your own in Lua, which finds its KEYS and ARGV as every script does."""
        return FencedScript(self, _fenced(body))

    def current(self, scope: str) -> Mark | None:
        """Return the mark of a scope, None where nothing was announced or written."""
        return self._link.do(_current(scope))

    async def current_async(self, scope: str) -> Mark | None:
        """Return the mark of a scope; the twin of `current`."""
        return await self._link.ado(_current(scope))

    def reset(self, scope: str, *, reason: str) -> None:
        """Put the mark of a scope aside and keep it with the reason (R38); any token passes the scope afterwards."""
        self._link.do(_reset(scope, reason))

    async def reset_async(self, scope: str, *, reason: str) -> None:
        """Put the mark of a scope aside; the twin of `reset`."""
        await self._link.ado(_reset(scope, reason))

    def resets(self, scope: str) -> list[Reset]:
        """List the marks of a scope that were put aside, oldest first."""
        return self._link.do(_resets(scope))

    async def resets_async(self, scope: str) -> list[Reset]:
        """List the marks that were put aside; the twin of `resets`."""
        return await self._link.ado(_resets(scope))

    def check(self) -> Durability:
        """Read the settings of the server, or of every primary of a cluster, and tell what they promise (R42)."""
        return self._link.do(look(self._link))

    async def check_async(self) -> Durability:
        """Tell what the settings promise; the twin of `check`."""
        return await self._link.ado(look(self._link))

    def _apply(self, bid: Bid, commands: Sequence[Words]) -> Op[list[Any] | None]:
        if not commands:
            raise Misuse("there is no command to apply; raise_to announces a new owner without writing")
        keys: list[bytes] = []
        undoable: list[bytes] = []
        names = [read_name(words) for words in commands]
        commands = [self._link.as_sent(words) for words in commands]
        for number, (name, words) in enumerate(zip(names, commands, strict=True), 1):
            spec = yield from self._spec(name)
            keys += spec.keys(words)
            # A command is whole by itself, so the last one leaves nothing to undo.
            if spec.writes and number < len(commands):
                undoable += spec.keys(words)
        undoable = list(dict.fromkeys(undoable))
        laid_out = [word for words in commands for word in (len(words), *words)]
        every = list(dict.fromkeys(undoable + keys))
        replies: list[Any] | None = yield from self._pass(
            _COMMANDS, bid, every, [len(undoable), len(commands), *laid_out]
        )
        return replies

    def _spec(self, name: str) -> Op[Spec]:
        if name not in self._specs:
            (told,) = yield from ask(Command(("COMMAND INFO", name), keyless=True))
            self._specs[name] = read_spec(name, told)
        return self._specs[name]

    def _pass(self, script: Script, bid: Bid, keys: Sequence[Any] = (), given: Sequence[Any] = ()) -> Op[Any]:
        keys = self._link.as_sent(keys)
        check_keys(bid.scope, keys, tagged=self._tagged)
        call = secrets.token_hex(8)
        arguments = (bid.job.encode(), bid.generation, bid.sequence, self._leap, call, *given)
        answer = yield from evaluate(script, (own_key(FENCE, bid.scope), *keys), arguments)
        verdict, told = as_text(answer[0]), answer[1:]
        if verdict in _PASSED:
            return told[0] if told else None
        if verdict == "failed":
            reason = as_text(told[0])
            kind = Unavailable if any(code in reason for code in _TRY_LATER) else Misuse
            raise kind(f"scope {bid.scope!r}: {reason}; the fence was not raised")
        if verdict == "refused":
            judge(_mark(told), bid, leap=self._leap)
        raise BadToken(f"scope {bid.scope!r}: {_WRONG.get(verdict, verdict)}; nothing was changed")


class FencedScript:
    """A write of the user's own in Lua, run under a fence; `RedisFence.script` makes one.

    Redis does not roll back: a body that fails leaves what it wrote before, so let it check first and write then. The
    mark stays as it was in that case. To refuse, return ``redis.error_reply("why")``, which is told as Misuse.
    """

    def __init__(self, fence: RedisFence, script: Script) -> None:
        self._fence = fence
        self._script = script

    def apply(
        self,
        token: Token,
        keys: Sequence[str | bytes],
        arguments: Sequence[Any] = (),
        *,
        sequence: int | None = None,
        scope: str | None = None,
    ) -> Any:
        """Run the body under the fence and return its reply; as in `RedisFence.apply`, None if the answer was lost."""
        return self._fence._link.do(self._op(token, keys, arguments, sequence, scope))  # noqa: SLF001 -- its other half

    async def apply_async(
        self,
        token: Token,
        keys: Sequence[str | bytes],
        arguments: Sequence[Any] = (),
        *,
        sequence: int | None = None,
        scope: str | None = None,
    ) -> Any:
        """Run the body under the fence; the twin of `apply`."""
        return await self._fence._link.ado(self._op(token, keys, arguments, sequence, scope))  # noqa: SLF001 -- its other half

    def _op(
        self,
        token: Token,
        keys: Sequence[str | bytes],
        arguments: Sequence[Any],
        sequence: int | None,
        scope: str | None,
    ) -> Op[Any]:
        return self._fence._pass(self._script, writing(token, scope, sequence), keys, arguments)  # noqa: SLF001 -- its other half


def _current(scope: str) -> Op[Mark | None]:
    return _mark((yield from ask(Command(("HMGET", own_key(FENCE, scope), "job", "generation", "sequence")))))


def _reset(scope: str, reason: str) -> Op[None]:
    yield from evaluate(_RESET, (own_key(FENCE, scope), own_key(RESETS, scope)), (check_reason(reason).encode(),))


def _resets(scope: str) -> Op[list[Reset]]:
    entries = yield from ask(Command(("LRANGE", own_key(RESETS, scope), 0, -1)))
    return [_put_aside(scope, msgspec.json.decode(entry, type=dict[str, str])) for entry in entries]


def _mark(told: Sequence[Any]) -> Mark | None:
    if not told or told[0] is None:
        return None
    job, generation, sequence = map(as_text, told)
    return Mark(job, int(generation), int(sequence))


def _put_aside(scope: str, entry: Mapping[str, str]) -> Reset:
    generation, sequence = (int(entry[name]) if entry[name].isdecimal() else 0 for name in ("generation", "sequence"))
    return Reset(scope, Mark(entry["job"], generation, sequence), float(entry["at"]), entry["reason"])
