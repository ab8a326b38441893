"""A stand-in for PgBouncer in transaction mode, because a bare machine has none.

It lends a server connection to a client from the client's first message until the server is ready outside a
transaction, and then to whoever comes next. As with PgBouncer before 1.21, nothing is reset in between: settings,
prepared statements and LISTEN stay with the server connection and meet the wrong client.

Source of the messages: PostgreSQL's documentation, chapter "Frontend/Backend Protocol", version 3.0.
"""

from __future__ import annotations

import itertools
import os
import secrets
import select
import socket
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

_VERSION_3: Final = 196_608
_CANCEL: Final = 80_877_102
_ENCRYPTION: Final = (80_877_103, 80_877_104)
_IDLE: Final = b"I"
_FIRST_PID: Final = 1_000_000_001
_FOLLOWED: Final = ("client_encoding", "datestyle", "timezone", "standard_conforming_strings", "application_name")
_ACCEPTED: Final = {"user", "database", *_FOLLOWED}
_REPORTED: Final = (
    "server_version", "server_encoding", "client_encoding", "DateStyle", "TimeZone", "IntervalStyle",
    "integer_datetimes", "standard_conforming_strings", "application_name", "is_superuser", "session_authorization",
)  # fmt: skip


@dataclass(frozen=True)
class _Message:
    """One message: its type, its body and both as they are on the wire."""

    kind: bytes
    body: bytes
    raw: bytes


class _Wire:
    """A socket that yields whole messages."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._buffer = b""

    def fileno(self) -> int:
        return self.socket.fileno()

    def receive(self) -> list[_Message]:
        """Wait for bytes and return the messages that are complete; raise `EOFError` when the other end is gone."""
        try:
            data = self.socket.recv(65_536)
        except OSError:
            data = b""
        if not data:
            raise EOFError
        self._buffer += data
        messages = []
        while len(self._buffer) >= 5 and len(self._buffer) > (length := struct.unpack("!I", self._buffer[1:5])[0]):
            raw, self._buffer = self._buffer[: length + 1], self._buffer[length + 1 :]
            messages.append(_Message(raw[:1], raw[5:], raw))
        return messages

    def receive_first(self) -> tuple[int, bytes]:
        """Return the code and the body of the first message of a connection, which has no type."""
        length, code = struct.unpack("!II", self._exactly(8))
        return code, self._exactly(length - 8)

    def send(self, *messages: bytes) -> None:
        with suppress(OSError):
            self.socket.sendall(b"".join(messages))

    def hang_up(self) -> None:
        """Wake whoever waits for this socket: the connection is over. Only its own thread closes it."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data


class _Server:
    """A server connection: psycopg signs in, then its socket is taken over."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, sslmode="disable", gssencmode="disable")
        self.wire = _Wire(socket.socket(fileno=os.dup(self._connection.fileno())))
        self.wire.socket.setblocking(True)
        status = self._connection.pgconn.parameter_status
        self.reported = {name: (status(name.encode()) or b"").decode() for name in _REPORTED}
        self.settings: dict[str, str] = {}

    def adopt(self, settings: dict[str, str]) -> None:
        """Drop what came in while nobody used it, and apply a client's startup parameters as PgBouncer does."""
        while select.select([self.wire], [], [], 0)[0]:
            self.wire.receive()
        changed = {name: value for name, value in settings.items() if self.settings.get(name) != value}
        if changed:
            statements = [sql.SQL("SET {} = {}").format(sql.Identifier(name), changed[name]) for name in changed]
            self.wire.send(_message(b"Q", sql.SQL(";").join(statements).as_bytes(self._connection) + b"\0"))
            while not any(message.kind == b"Z" for message in self.wire.receive()):
                continue
            self.settings |= changed

    def cancel(self) -> None:
        self._connection.cancel_safe()

    def close(self) -> None:
        self._connection.close()
        self.wire.socket.close()


class _Turn:
    """How long a client keeps a server: until every request is answered and no transaction is open."""

    def __init__(self) -> None:
        self._answers_due = 0
        self._open_batch = False
        self._last = b""
        self._status = b""

    @property
    def over(self) -> bool:
        return not self._answers_due and not self._open_batch and self._status == _IDLE

    def sent(self, message: _Message) -> None:
        if message.kind in (b"Q", b"S", b"F"):
            self._answers_due += 1
            self._open_batch = False
        elif message.kind not in (b"d", b"c", b"f"):
            self._open_batch = True
        self._last = message.kind

    def received(self, message: _Message) -> None:
        if message.kind == b"Z":
            self._answers_due -= 1
            self._status = message.body
        elif message.kind == b"G" and self._last == b"S":
            # The Sync behind a COPY FROM STDIN is ignored, and the client sends another one at the end of its data.
            self._answers_due -= 1


class _Pool:
    """At most `size` server connections, opened when first needed; the last one returned is the first one lent."""

    def __init__(self, url: str, size: int) -> None:
        self._url = url
        self._free: list[_Server | None] = [None] * size
        self._changed = threading.Condition()
        self._closed = False

    def lend(self, settings: dict[str, str]) -> _Server:
        """Wait for a server connection; raise `EOFError` if there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._free or self._closed)
            if self._closed:
                raise EOFError
            server = self._free.pop()
        try:
            return self._ready(server, settings)
        except (psycopg.Error, EOFError) as error:
            self.give_back(None)
            raise EOFError from error

    def give_back(self, server: _Server | None) -> None:
        with self._changed:
            if self._closed and server is not None:
                server.close()
            self._free.append(server)
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            for server in filter(None, self._free):
                server.close()

    def _ready(self, server: _Server | None, settings: dict[str, str]) -> _Server:
        if server is not None:
            try:
                server.adopt(settings)
            except EOFError:
                server.close()
            else:
                return server
        fresh = _Server(self._url)
        fresh.adopt(settings)
        return fresh


class _Client:
    """A client connection, served by a thread of its own."""

    def __init__(self, pid: int, wire: _Wire) -> None:
        self.pid = pid
        self.key = secrets.randbits(31)
        self.wire = wire
        self.settings: dict[str, str] = {}
        self.server: _Server | None = None

    def serve(self, pool: _Pool) -> None:
        """Pass messages on, transaction by transaction, until the client leaves."""
        while True:
            messages = self.wire.receive()
            if not messages:
                continue
            if messages[0].kind == b"X":
                return
            self.server = pool.lend(self.settings)
            try:
                self._transact(self.server, messages)
            except EOFError:
                # Half a transaction may be left on it.
                self.server.close()
                pool.give_back(None)
                raise
            pool.give_back(self.server)
            self.server = None

    def _transact(self, server: _Server, messages: list[_Message]) -> None:
        turn = _Turn()
        self._forward(turn, server, messages)
        while not turn.over:
            readable = select.select([server.wire, self.wire], [], [])[0]
            if server.wire in readable:
                answers = server.wire.receive()
                for answer in answers:
                    turn.received(answer)
                self.wire.send(*(answer.raw for answer in answers))
            if self.wire in readable and not turn.over:
                self._forward(turn, server, self.wire.receive())

    def _forward(self, turn: _Turn, server: _Server, messages: list[_Message]) -> None:
        for message in messages:
            if message.kind == b"X":
                raise EOFError
            turn.sent(message)
        server.wire.send(*(message.raw for message in messages))


class TransactionPooler:
    """Pools `size` connections to one database; `url` leads clients to it without a password, on loopback."""

    def __init__(self, url: str, size: int = 2) -> None:
        target = urlsplit(url)
        self._database = target.path.removeprefix("/")
        self._pool = _Pool(url, size)
        self._clients: dict[int, _Client] = {}
        self._pids = itertools.count(_FIRST_PID)
        self._threads: list[threading.Thread] = []
        server = self._pool.lend({})
        self._reported = server.reported
        self._pool.give_back(server)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"postgresql://{target.username}@127.0.0.1:{self.port}/{self._database}"
        self._acceptor = threading.Thread(target=self._accept, name=f"pooler-{self.port}", daemon=True)
        self._acceptor.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection and end every thread."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        self._pool.close()
        for client in tuple(self._clients.values()):
            client.wire.hang_up()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            client = _Client(next(self._pids), _Wire(connection))
            self._clients[client.pid] = client
            thread = threading.Thread(target=self._serve, args=(client,), name=f"pooler-{client.pid}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: _Client) -> None:
        with client.wire.socket, suppress(EOFError, OSError):
            code, body = client.wire.receive_first()
            while code in _ENCRYPTION:
                client.wire.send(b"N")
                code, body = client.wire.receive_first()
            if code == _CANCEL:
                self._cancel(*struct.unpack("!II", body))
            elif refusal := self._refusal(code, client, body):
                client.wire.send(_fatal(refusal))
            else:
                client.wire.send(*self._welcome(client))
                client.serve(self._pool)
        del self._clients[client.pid]

    def _refusal(self, code: int, client: _Client, body: bytes) -> str:
        """Read the startup message into the client; return why it is refused, empty if it is not."""
        if code != _VERSION_3:
            return f"unsupported protocol {code >> 16}.{code & 0xFFFF}"
        words = body.decode().split("\0")
        parameters = {name.lower(): value for name, value in zip(words[::2], words[1::2], strict=False) if name}
        unknown = sorted(parameters.keys() - _ACCEPTED)
        if unknown:
            return f"unsupported startup parameter: {unknown[0]}"
        if parameters.get("database", parameters.get("user")) != self._database:
            return f"no such database: {parameters.get('database')}"
        client.settings = {name: parameters[name] for name in _FOLLOWED if name in parameters}
        return ""

    def _welcome(self, client: _Client) -> list[bytes]:
        own = {name: client.settings.get(name.lower(), value) for name, value in self._reported.items()}
        return [
            _message(b"R", struct.pack("!I", 0)),
            *(_message(b"S", f"{name}\0{value}\0".encode()) for name, value in own.items()),
            _message(b"K", struct.pack("!II", client.pid, client.key)),
            _message(b"Z", _IDLE),
        ]

    def _cancel(self, pid: int, key: int) -> None:
        client = self._clients.get(pid)
        server = client.server if client is not None and client.key == key else None
        if server is not None:
            with suppress(psycopg.Error):
                server.cancel()


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _fatal(text: str) -> bytes:
    """Return an ErrorResponse as PgBouncer's: SQLSTATE 08P01, protocol violation."""
    return _message(b"E", f"SFATAL\0VFATAL\0C08P01\0M{text}\0\0".encode())
