"""Destinations of the proof: a service of its own that keeps a log, and the object of a user.

What is written is the list of all writes so far, each with a name of its own (`g7.2.a1b2`: the second write under
generation 7). A list tells from what it was computed and which writes it has lost, so no destination has to keep a log.
"""

from __future__ import annotations

import inspect
import json
import os
import socket
import socketserver
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, Literal, Protocol, Self, cast

import msgspec

from tenure.clock import boot_clock
from tenure.errors import BadSettings, Misuse, OutcomeUnknown, OutOfSequence, StaleToken, TenureError, Unavailable
from tenure.fences import rule
from tenure.fences.rule import Mark
from tenure.proof.history import Act, Applied
from tenure.protocol.lease import Effect, Token

HOST = "127.0.0.1"
REFERENCE = "reference"
PATIENCE = 1.0
"""Seconds that a worker waits for the destination's answer."""

_OPENING = 30.0  # seconds within which a destination is to be open
_VERBS = ("raise_to", "read", "write", "write_unfenced")


class Place(Protocol):
    """What a worker asks of a destination; see `tenure.testing.fences.Destination`."""

    def raise_to(self, token: Token, scope: str) -> None:
        """Announce the owner of `token` before it reads."""
        ...

    def read(self, scope: str) -> str | None:
        """Return the scope's value."""
        ...

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        """Pass the fence and make `value` the scope's value."""
        ...

    def write_unfenced(self, scope: str, value: str) -> None:
        """Write around the fence."""
        ...


def open_place(name: str) -> Place:
    """Open the destination that ``module:factory`` makes; raises BadSettings. The current directory is looked at."""
    return _made(name, _factory(name))


def check_place(name: str, within: float = _OPENING) -> None:
    """Open a destination once, as a thread of a worker does, and let it go; raises BadSettings, naming it."""
    factory = _factory(name)
    errors: list[BaseException] = []

    def opening() -> None:
        try:
            _made(name, factory)
        except BaseException as error:  # noqa: BLE001 -- raised again below, in the thread that waits
            errors.append(error)

    thread = threading.Thread(target=opening, name="opening", daemon=True)
    thread.start()
    thread.join(within)
    if thread.is_alive():
        raise BadSettings(f"the destination {name} was not open within {within:g} s: its factory has not returned")
    if errors:
        raise errors[0]


def _factory(name: str) -> Callable[[], object]:
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise BadSettings(f"a destination is named MODULE:FACTORY, such as shop.proof:open_ledger, not {name!r}")
    if "" not in sys.path and os.getcwd() not in sys.path:  # noqa: PTH109 -- compared with the texts of sys.path
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 -- as above
    try:
        factory: object = getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise BadSettings(f"the destination {name} cannot be loaded: {error}") from error
    except Exception as error:
        raise BadSettings(f"the destination {name} cannot be loaded: {_told(error)}") from error
    if not callable(factory):
        raise BadSettings(f"the destination {name} is of type {type(factory).__name__}, and no factory")
    _refuse_async(f"the factory of the destination {name}", factory)
    return factory


def _made(name: str, factory: Callable[[], object]) -> Place:
    try:
        place = factory()
    except Exception as error:
        raise BadSettings(f"the destination {name} cannot be opened: {_told(error)}") from error
    missing = [verb for verb in _VERBS if not callable(getattr(place, verb, None))]
    if missing:
        raise BadSettings(f"what {name} made has no {', '.join(missing)}: see tenure.testing.fences.Destination")
    for verb in _VERBS:
        _refuse_async(f"{verb} of the destination {name}", getattr(place, verb))
    return cast("Place", place)


def _refuse_async(what: str, function: object) -> None:
    if inspect.iscoroutinefunction(function):
        raise BadSettings(f"{what} is async, and nobody would await it: open and ask a destination by plain calls")


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


class Request(msgspec.Struct, frozen=True):
    """What is asked of the service."""

    verb: Literal["raise", "apply", "read"]
    scope: str
    job: str = ""
    generation: int = 0
    sequence: int = 0
    value: str = ""


class Reply(msgspec.Struct, frozen=True):
    """What it answers: the value, or why it refused."""

    value: str | None = None
    refused: Literal["", "stale", "sequence", "bad"] = ""
    met: int | None = None
    why: str = ""


class Service:
    """The reference destination: values behind the rule of fences, or behind nothing, and a log in its own order.

    Comparing, writing and logging are one step under one lock.
    """

    def __init__(self, *, fence: bool) -> None:
        self.log: list[Applied] = []
        self._fence = fence
        self._values: dict[str, str] = {}
        self._marks: dict[str, Mark] = {}
        self._lock = threading.Lock()

    def answer(self, request: Request) -> Reply:
        """Do what is asked, or refuse it and change nothing."""
        with self._lock:
            if request.verb == "read":
                return Reply(self._values.get(request.scope))
            try:
                self._pass(request)
            except StaleToken as error:
                return Reply(refused="stale", met=error.current)
            except OutOfSequence as error:
                return Reply(refused="sequence", met=error.highest)
            except TenureError as error:
                return Reply(refused="bad", why=str(error))
            self._carry_out(request)
            return Reply(self._values.get(request.scope))

    def _pass(self, request: Request) -> None:
        if not self._fence:
            return
        token = Token(request.job, request.generation)
        if request.verb == "raise":
            bid = rule.announcement(token, request.scope)
        else:
            bid = rule.writing(token, request.scope, request.sequence)
        self._marks[request.scope] = rule.judge(self._marks.get(request.scope), bid)

    def _carry_out(self, request: Request) -> None:
        line: dict[str, Any] = {
            "job": request.job,
            "generation": request.generation,
            "at": boot_clock(),
            "destination": REFERENCE,
        }
        if request.verb == "apply":
            self._values[request.scope] = request.value
            self.log.append(applied(request.scope, request.value, sequence=request.sequence, **line))
        elif self._fence:
            self.log.append(Applied(scope=request.scope, act="raise", **line))


def applied(scope: str, value: str, **fields: Any) -> Applied:
    """Tell one write of a list: it was computed from the last name before its own."""
    names = names_in(value)
    act: Act = "apply"
    return Applied(scope=scope, act=act, before=names[-2] if names[1:] else "nothing", after=names[-1], **fields)


def names_in(value: str | None) -> list[str]:
    """Read the names of the writes that a value carries; a value that is no list has lost them all."""
    with suppress(ValueError):
        found = json.loads(value or "[]")
        if isinstance(found, list):
            return [str(name) for name in found]
    return []


class Server:
    """The service on a free port of this host, until its `with` block ends."""

    def __init__(self, service: Service) -> None:
        class Conversation(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with suppress(OSError):
                    for line in self.rfile:
                        if not line.endswith(b"\n"):
                            return  # the connection was cut: a request that was not ended is no request
                        reply = service.answer(msgspec.json.decode(line, type=Request))
                        self.wfile.write(msgspec.json.encode(reply) + b"\n")

        self._server = socketserver.ThreadingTCPServer((HOST, 0), Conversation)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Reference:
    """The reference destination as a worker sees it; one connection for one thread, opened anew when it breaks."""

    def __init__(self, port: int, patience: float = PATIENCE) -> None:
        self._port = port
        self._patience = patience
        self._connection: tuple[socket.socket, Any] | None = None

    def raise_to(self, token: Token, scope: str) -> None:
        """Announce the owner of `token`."""
        self._ask(Request("raise", scope, token.job, token.generation), token)

    def read(self, scope: str) -> str | None:
        """Return the scope's value."""
        return self._ask(Request("read", scope)).value

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        """Write under the token; a service without a fence does not look at it."""
        self._ask(
            Request("apply", scope, token.job, token.generation, sequence, value),
            Effect(token.job, token.generation, sequence),
        )

    def write_unfenced(self, scope: str, value: str) -> None:
        """Refuse: a service without a fence is started as one."""
        raise Misuse(f"{scope}: {value!r} is to be written by `write`; a service without a fence is started as one")

    def _ask(self, request: Request, token: Token | None = None) -> Reply:
        sent = False
        try:
            connection, answers = self._connection or self._connect()
            sent = True
            connection.sendall(msgspec.json.encode(request) + b"\n")
            line = answers.readline()
            if not line.endswith(b"\n"):
                raise ConnectionError("the connection was cut")
        except OSError as error:
            self.close()
            if sent:
                raise OutcomeUnknown(f"the destination's answer was lost: {error}") from error
            raise Unavailable(f"the destination cannot be reached: {error}") from error
        return self._read(msgspec.json.decode(line, type=Reply), token)

    @staticmethod
    def _read(reply: Reply, token: Token | None) -> Reply:
        if token is None or not reply.refused:
            return reply
        if reply.refused == "stale":
            reason = f"the destination has met generation {reply.met}"
            raise StaleToken(token.job, token.generation, current=reply.met, reason=reason)
        if reply.refused == "sequence":
            sequence = token.sequence if isinstance(token, Effect) else 0
            raise OutOfSequence(token.job, token.generation, sequence, highest=reply.met or 0)
        raise BadSettings(f"the destination refused: {reply.why}")

    def _connect(self) -> tuple[socket.socket, Any]:
        connection = socket.create_connection((HOST, self._port), timeout=self._patience)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = (connection, connection.makefile("rb"))
        return self._connection

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._connection is not None:
            for end in reversed(self._connection):
                with suppress(OSError):
                    end.close()
        self._connection = None


class PerThread:
    """Opens a destination once for each thread that asks for it."""

    def __init__(self, opened: Callable[[], Place]) -> None:
        self._opened = opened
        self._local = threading.local()

    def get(self) -> Place:
        """Give this thread its own."""
        place = getattr(self._local, "place", None)
        if place is None:
            place = self._local.place = self._opened()
        opened: Place = place
        return opened
