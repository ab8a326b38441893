"""A network that repeats requests, delays them and overtakes itself, and on which connections break.

Requests go through two hands: `tenure.testing.proxy.Proxy` moves bytes and can cut connections and swallow answers; a
`Courier` behind it takes whole requests and delivers each of them as often and as late as fate has it.
"""

from __future__ import annotations

import asyncio
import random
import re
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from tenure.testing.proxy import Proxy, free_port, give_back

Fate = tuple[float, ...]
"""What becomes of one request: for each copy that is delivered, after how many seconds. The first copy is answered."""

ONCE: Fate = (0.0,)
TWICE: Fate = (0.0, 0.0)

_PATIENCE = 30.0
_CUTS = 0.25  # of what a storm does; the rest swallows answers
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Courier:
    """Takes requests, one a connection, and delivers each to the provider on `port` as `fate` has it."""

    def __init__(self, port: int, fate: Callable[[bytes], Fate]) -> None:
        self.port = free_port()
        self._provider = port
        self._fate = fate
        self._under_way: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="courier", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        give_back(self.port)

    def drain(self) -> None:
        """Wait until everything that is under way has been delivered."""
        self._do(self._drain())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=256)

    async def _stop(self) -> None:
        self._listener.close()
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _drain(self) -> None:
        while self._under_way:
            await asyncio.wait(self._under_way)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._begin(self._serve(reader, writer))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read(reader)
            if request is not None:
                first, *copies = self._fate(request)
                for seconds in copies:
                    self._begin(self._deliver(request, seconds, None))
                await self._deliver(request, first, writer)
        finally:
            writer.close()

    async def _deliver(self, request: bytes, seconds: float, back: asyncio.StreamWriter | None) -> None:
        """Deliver one copy, and bring the answer back if the sender is to have it and still wants it."""
        await asyncio.sleep(seconds)
        reader, writer = await asyncio.open_connection("127.0.0.1", self._provider)
        writer.write(request)
        answer = await reader.read(-1)
        writer.close()
        if back is not None:
            with suppress(OSError):
                back.write(answer)
                await back.drain()


async def _read(reader: asyncio.StreamReader) -> bytes | None:
    """Read one whole request; None when the connection was cut before it had arrived."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        return head + await reader.readexactly(int(length[1]) if length else 0)
    except (asyncio.IncompleteReadError, OSError):
        return None


class Weather:
    """Draws the fate of every request; the part of them that meets each trouble is `SHARE`."""

    SHARE = 0.08

    def __init__(self, seed: int, longest: float) -> None:
        self._random = random.Random(seed)
        self._longest = longest
        self.duplicated = 0
        self.delayed = 0

    def __call__(self, _request: bytes) -> Fate:
        """Draw one."""
        draw, late = self._random.random(), self._random.uniform(0.1, self._longest)
        if draw < self.SHARE:
            self.duplicated += 1
            return TWICE
        if draw < 2 * self.SHARE:
            self.duplicated += 1
            return (0.0, late)
        if draw < 3 * self.SHARE:
            self.delayed += 1
            return (late,)
        return ONCE


@contextmanager
def storm(proxy: Proxy, seed: int) -> Iterator[None]:
    """Swallow an answer or cut every connection, again and again, while the block runs."""
    over, chance = threading.Event(), random.Random(seed)

    def blow() -> None:
        while not over.wait(chance.uniform(0.1, 0.5)):
            if chance.random() < _CUTS:
                proxy.cut()
            else:
                proxy.drop_reply()

    thread = threading.Thread(target=blow, name="storm", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
