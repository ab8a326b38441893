"""The client of a Redis fence: blocking or asyncio, of a server or a cluster, and what its errors mean.

The client may have sent a request several times before it gives up, so an error says "nothing was changed" only where
no earlier sending of the same request can have been carried out.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, TypeVar

import redis.asyncio
from redis import exceptions

from tenure.errors import BadSettings, Misuse, OutcomeUnknown, TenureError, Unavailable
from tenure.protocol.op import Op, Request, arun, ask, run

T = TypeVar("T")

_ERRORS = (exceptions.RedisError, exceptions.RedisClusterException)
_RIGHTS = (exceptions.AuthenticationError, exceptions.AuthorizationError, exceptions.NoPermissionError)
_FULL = (exceptions.OutOfMemoryError, exceptions.MaxConnectionsError)
_KEEPING_BACK = (
    redis.client.Pipeline,
    redis.client.PubSub,
    redis.cluster.ClusterPipeline,
    redis.asyncio.client.Pipeline,
    redis.asyncio.client.PubSub,
    redis.asyncio.cluster.ClusterPipeline,
)


@dataclass(frozen=True, slots=True)
class Command(Request[Any]):
    """One command for the server; one without keys names the node of a cluster, or goes to any."""

    words: tuple[Any, ...]
    changes: bool = False
    keyless: bool = False
    node: Any = None


class Script:
    """The text of a script, and the digest by which a server that has seen it knows it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def load(name: str) -> str:
    """Read the text of one of the scripts beside this module."""
    return resources.files("tenure.fences.redis").joinpath("scripts", name).read_text(encoding="utf-8")


def evaluate(script: Script, keys: Sequence[Any], arguments: Sequence[Any]) -> Op[Any]:
    """Run a script on the server that has the keys, sending its text only where it is not known yet."""
    rest = (len(keys), *keys, *arguments)
    try:
        return (yield from ask(Command(("EVALSHA", script.digest, *rest), changes=True)))
    except exceptions.NoScriptError:
        return (yield from ask(Command(("EVAL", script.text, *rest), changes=True)))


class Link:
    """The user's client, whose kind it knows, and how an operation is driven on it."""

    def __init__(self, client: Any) -> None:
        self._client = check_client(client)
        self._asynchronous = inspect.iscoroutinefunction(client.execute_command)
        self.cluster = hasattr(client, "get_primaries")

    def as_sent(self, words: Sequence[Any]) -> list[Any]:
        """Encode the texts among words as the client does, so that what is judged is what reaches the server.

        A client of one's own, which only executes commands, gets them in UTF-8.
        """
        encode = self._client.get_encoder().encode if hasattr(self._client, "get_encoder") else str.encode
        return [encode(word) if isinstance(word, str) else word for word in words]

    def primaries(self) -> list[Any]:
        """List the nodes of a cluster that hold slots."""
        return list(self._client.get_primaries())

    def do(self, op: Op[T]) -> T:
        """Drive an operation on a blocking client."""
        if self._asynchronous:
            raise Misuse("this fence has an asyncio client: await the method of the same name that ends in _async")
        return run(op, self._execute)

    async def ado(self, op: Op[T]) -> T:
        """Drive an operation without blocking the event loop; a blocking client is used in a thread."""
        if not self._asynchronous:
            return await asyncio.to_thread(self.do, op)
        if self.cluster:
            await self._client.initialize()  # before it, the client knows no node
        return await arun(op, self._aexecute)

    def _execute(self, request: Request[Any]) -> Any:
        command = _as_command(request)
        try:
            return self._client.execute_command(*command.words, **self._where(command))
        except exceptions.NoScriptError:
            raise
        except _ERRORS as error:
            raise _translate(error, changes=command.changes) from error

    async def _aexecute(self, request: Request[Any]) -> Any:
        command = _as_command(request)
        try:
            return await self._client.execute_command(*command.words, **self._where(command))
        except exceptions.NoScriptError:
            raise
        except _ERRORS as error:
            raise _translate(error, changes=command.changes) from error

    def _where(self, command: Command) -> dict[str, Any]:
        if not (self.cluster and command.keyless):
            return {}
        return {"target_nodes": command.node or random.choice(self.primaries())}


def check_client(client: Any) -> Any:
    """Return a client that answers each command; raises Misuse for what keeps commands back, and for no client."""
    if isinstance(client, _KEEPING_BACK):
        raise Misuse(
            f"a fence needs the answer to each of its commands, and a {type(client).__name__} keeps it back: pass the"
            " client that it was made from; RedisFence.apply takes several commands and makes them whole or not at all"
        )
    if not callable(getattr(client, "execute_command", None)):
        raise Misuse(f"a fence needs a client of redis-py, such as redis.Redis(), and got {type(client).__name__}")
    return client


def _as_command(request: Request[Any]) -> Command:
    if not isinstance(request, Command):
        raise TypeError(f"a Redis client is asked commands, not {type(request).__name__}")
    return request


def _translate(error: Exception, *, changes: bool) -> TenureError:
    if isinstance(error, exceptions.DataError) or "Error compiling script" in str(error):
        return Misuse(f"Redis cannot be given this: {error}; nothing was changed")
    if isinstance(error, _RIGHTS):
        return BadSettings(f"Redis refuses this client: {error}; nothing was changed")
    if isinstance(error, _FULL) or not changes:
        return Unavailable(f"Redis: {error}; nothing was changed")
    return OutcomeUnknown(f"Redis: {error}; the write may or may not have been made, and repeating it is harmless")


def was_answered(error: TenureError) -> bool:
    """Tell whether the server itself said no, as it does to a command that it does not offer."""
    return isinstance(error.__cause__, exceptions.ResponseError)


def as_text(value: Any) -> str:
    """Read what a client gives as bytes or, if it decodes answers, as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def as_texts(told: Mapping[Any, Any]) -> dict[str, str]:
    """Read names and values."""
    return {as_text(name): as_text(value) for name, value in told.items()}
