"""A TCP proxy that misbehaves on demand, to stand between a client and its store or destination.

It moves bytes and knows no protocol, so it serves PostgreSQL, Redis and HTTP alike. An event loop in a thread of its
own moves them; every control runs in that loop and has taken effect when it returns.

A connection carries two streams, named by where they lead: toward the server and toward the client.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from contextlib import suppress
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from tenure.errors import Misuse, Unavailable
from tenure.testing.streams import BOTH, Counts, Faults, Toward

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

_CHUNK: Final = 65_536
_CHUNKS_IN_FLIGHT: Final = 256
_PATIENCE: Final = 10.0


_held: dict[int, int] = {}  # for each port that was given out, the descriptor of a socket that is bound to it


def free_port() -> int:
    """Return a free TCP port of 127.0.0.1 below the range from which systems pick ports for outgoing connections.

    Nobody gets such a port by chance, and on Linux nobody who asks here does either, in this process or another, until
    `give_back` or the end of this process: a server may give it up and take it again. `Unavailable` if none is free.
    """
    for port in SystemRandom().sample(range(20_000, 30_000), 100):
        with socket.socket() as holder, suppress(OSError):
            holder.bind(("127.0.0.1", port))  # without SO_REUSEADDR: not where another one is bound
            if sys.platform == "linux":  # which lets a server listen beside a socket that only holds the place
                holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                _held[port] = holder.detach()
            return port
    raise Unavailable("no free TCP port was found between 20000 and 29999 on 127.0.0.1")


def give_back(port: int) -> None:
    """Let a port that `free_port` gave to this process go to others; nothing if it has been given back."""
    holder = _held.pop(port, None)
    if holder is not None:
        os.close(holder)


class Proxy:
    """A proxy on 127.0.0.1 in front of a server; it works until `close` or the end of its `with` block."""

    def __init__(self, target_host: str, target_port: int) -> None:
        self.port = free_port()
        self._target = (target_host, target_port)
        self._faults = Faults()
        self._connections: set[_Connection] = set()
        self._listener: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"proxy-{self.port}", daemon=True)
        self._thread.start()
        self.accept()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def counts(self) -> Counts:
        """Return the counters as they are now."""
        return self._faults.counts

    @property
    def connections(self) -> int:
        """Return the number of open connections."""
        return len(self._connections)

    def url_for(self, url: str) -> str:
        """Return a url, of any scheme, with this proxy in place of its host and port; `Misuse` if it names no host."""
        parts = urlsplit(url)
        if not parts.hostname:
            raise Misuse("a proxy stands in for a url that names a host, such as postgresql://user@127.0.0.1:5432/name")
        credentials, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{credentials}{at}127.0.0.1:{self.port}").geturl()

    def delay(self, seconds: float, toward: Toward | None = None) -> None:
        """Deliver what arrives from now on so much later, in order, in both directions unless one is named."""
        if seconds < 0:
            raise Misuse(f"delay: seconds must not be negative, but it is {seconds}")
        self._do(lambda: self._faults.set_delay(seconds, toward))

    def hold(self, toward: Toward | None = None) -> None:
        """Keep all bytes back, closing nothing, until `release`: to both ends, a network that lets nothing through."""
        self._do(lambda: self._faults.set_flowing(toward, flowing=False))

    def release(self, toward: Toward | None = None) -> None:
        """Deliver what was held or kept back and let bytes flow again."""
        self._do(lambda: self._faults.set_flowing(toward, flowing=True))

    def drop_reply(self) -> None:
        """Let the next request through, swallow its answer and cut its connection: done, but unknown (R30).

        The next request is whatever is next delivered toward the server, on any connection. The cut comes when the
        first bytes of the answer arrive.
        """
        self._do(self._faults.arm_drop_reply)

    def overtake(self, others: int, within: float) -> None:
        """Keep the next request back until `others` more pieces, of other connections, have reached the server.

        The next request is whatever is next delivered toward the server, on any connection; what follows it there
        waits behind it. After `within` seconds, or by `release`, it is let go, overtaken or not. It happens once;
        `counts.overtaken` tells afterwards how many have overtaken it.
        """
        if others < 1 or within < 0:
            raise Misuse(f"overtake: at least one other, and no negative time, but they are {others} and {within}")
        self._do(lambda: self._faults.arm_overtaking(others, within))

    def cut_after(self, count: int, toward: Toward) -> None:
        """Deliver `count` more bytes in a direction, over all connections, then cut the one that carried the last.

        With 0, cut the one that would carry the next byte. It happens once.
        """
        if count < 0:
            raise Misuse(f"cut_after: count must not be negative, but it is {count}")
        self._do(lambda: self._faults.set_allowance(count, toward))

    def behave(self) -> None:
        """Undo everything: deliver what was held or kept back, delay and cut nothing any more, and accept again."""
        self._do(self._faults.behave)
        self.accept()

    def cut(self) -> None:
        """Close all connections now, on both sides; bytes that were kept back are lost."""
        self._await(self._cut())

    def refuse(self) -> None:
        """Refuse new connections, as a host without a server does; those that are open live on."""
        self._await(self._refuse())

    def accept(self) -> None:
        """Accept new connections again."""
        self._await(self._accept())

    def close(self) -> None:
        """Refuse and cut everything and end the thread."""
        if self._loop.is_closed():
            return
        self._await(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        give_back(self.port)

    def _do(self, change: Callable[[], object]) -> None:
        async def run() -> None:
            change()

        self._await(run())

    def _await(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    async def _cut(self) -> None:
        cut = tuple(self._connections)
        for connection in cut:
            connection.cut()
        for connection in cut:
            await connection.ended.wait()

    async def _refuse(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _accept(self) -> None:
        if self._listener is None:
            self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _finish(self) -> None:
        await self._refuse()
        await self._cut()
        serving = asyncio.all_tasks() - {asyncio.current_task()}
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await self._loop.shutdown_default_executor()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server = await asyncio.open_connection(*self._target)
        except (OSError, asyncio.CancelledError):
            self._faults.count(unreachable=1)
            writer.transport.abort()
            return
        self._faults.count(accepted=1)
        connection = _Connection(self._faults, client=(reader, writer), server=server)
        self._connections.add(connection)
        await connection.run()
        self._connections.discard(connection)
        connection.ended.set()


_Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_Queue = asyncio.Queue[tuple[float, bytes]]


class _Connection:
    """One connection: two streams, each read into a queue and delivered from it when due."""

    def __init__(self, faults: Faults, client: _Ends, server: _Ends) -> None:
        self.ended = asyncio.Event()
        self._faults = faults
        self._writers: dict[Toward, asyncio.StreamWriter] = {"server": server[1], "client": client[1]}
        self._readers: dict[Toward, asyncio.StreamReader] = {"server": client[0], "client": server[0]}
        self._reply_unwanted = False
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Carry both streams until both have ended or the connection is cut."""
        for toward in BOTH:
            # So that `drain` waits until all is with the kernel: what a cut follows has been delivered.
            self._writers[toward].transport.set_write_buffer_limits(0)
            queue: _Queue = asyncio.Queue(_CHUNKS_IN_FLIGHT)
            self._tasks += [
                asyncio.create_task(self._read(toward, queue)),
                asyncio.create_task(self._deliver(toward, queue)),
            ]
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers.values():
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, OSError):
                raise result

    def cut(self) -> None:
        """Drop the connection on both sides."""
        self._faults.count(cut=1)
        self._drop()

    def _drop(self) -> None:
        for writer in self._writers.values():
            writer.transport.abort()
        for task in self._tasks:
            task.cancel()

    async def _read(self, toward: Toward, queue: _Queue) -> None:
        reader, stream = self._readers[toward], self._faults.toward[toward]
        clock = asyncio.get_running_loop().time
        try:
            while data := await reader.read(_CHUNK):
                if toward == "client" and self._reply_unwanted:
                    self._faults.count(replies_dropped=1)
                    self.cut()
                    return
                await queue.put((clock() + stream.delay, data))
        except OSError:
            self._drop()
            return
        await queue.put((clock() + stream.delay, b""))

    async def _deliver(self, toward: Toward, queue: _Queue) -> None:
        writer, stream = self._writers[toward], self._faults.toward[toward]
        clock = asyncio.get_running_loop().time
        try:
            while True:
                due, data = await queue.get()
                await asyncio.sleep(max(0.0, due - clock()))
                await stream.flowing.wait()
                if not data:
                    return writer.write_eof()
                if toward == "server":
                    await self._faults.keep_back_if_chosen()
                passing, last = stream.take(data)
                if toward == "server" and self._faults.drop_reply_of_this():
                    self._reply_unwanted = True
                writer.write(passing)
                self._faults.count(**{f"bytes_to_{toward}": len(passing)})
                await writer.drain()
                if toward == "server":
                    self._faults.passed_others()
                if last:
                    return self.cut()
        except OSError:
            self._drop()
