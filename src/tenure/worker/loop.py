"""The executor for async handlers: an event loop in a thread of its own, one task a run."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tenure.protocol.ending import failure_of
from tenure.protocol.events import log
from tenure.worker.part import Crashed, Part
from tenure.worker.run import Finished, Run

if sys.version_info >= (3, 12):
    # A handler that waits for nothing has ended when its task has been made, and the loop never hears of it.
    _Task = partial(asyncio.Task, eager_start=True)
else:
    _Task = asyncio.Task


class LoopExecutor:
    """Run async handlers, up to `slots` at a time; stopping one cancels it.

    What a handler leaves in the loop may try to end it, by `sys.exit` in a task of its own or by `loop.stop()`: the
    loop goes on, with the other handlers. `crashed` hears of any other end that nobody asked for.
    """

    kind = "async"

    def __init__(self, slots: int, crashed: Crashed) -> None:
        self.slots = slots
        self._fresh: deque[Run] = deque()
        self._begins = False  # whether the loop has been told by itself to begin what is fresh
        self._loop = asyncio.new_event_loop()
        self._closing = False
        self._part = Part("loop", self._main, crashed)

    def open(self, finished: Finished) -> None:
        """Start the loop."""
        self._finished = finished
        self._part.start()

    def start(self, runs: Sequence[Run]) -> None:
        """Hand a batch to the loop in one hop; all that the ends of runs make room for begin in its next turn."""
        self._fresh.extend(runs)
        if not self._part.is_current:
            self._call(self._begin)
        elif not self._begins:
            self._begins = True
            self._loop.call_soon(self._begin)

    def stop(self, run: Run) -> None:
        """Cancel a run: CancelledError is raised inside its handler at its next await."""
        self._call(self._cancel, run)

    def abandon(self, run: Run) -> bool:  # noqa: ARG002 -- a task that is left behind costs nothing but itself
        """Leave a handler to itself that swallowed its cancellation or blocks the loop; there is room for another."""
        return True

    def close(self) -> None:
        """Stop the loop; a handler may be blocking it, so nobody waits for it for long."""
        self._call(self._finish)
        self._part.join(timeout=1.0)

    def _call(self, function: Callable[..., object], *args: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)

    def _main(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            while not self._closing:
                self._go_on()
            self._wind_up()
        finally:
            loop.close()

    def _finish(self) -> None:
        self._closing = True  # only here, so that no stop is left in the loop for what winds it up
        self._loop.stop()

    def _go_on(self) -> None:
        try:
            self._loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:  # what asyncio lets through; all else is a fault of the loop
            told = failure_of(error)
            log.error("what a handler left in the event loop raised %s at %s: the loop goes on", told.type, told.where)

    def _wind_up(self) -> None:
        loop, rest = self._loop, asyncio.all_tasks(self._loop)
        for task in rest:
            task.cancel()
        try:
            if rest:
                loop.run_until_complete(asyncio.wait(rest, timeout=1.0))
            loop.run_until_complete(loop.shutdown_asyncgens())
        except BaseException as error:  # every run has ended, so nothing hangs on what is left
            told = failure_of(error)
            log.error("what handlers left in the event loop ended it with %s at %s", told.type, told.where)

    def _begin(self) -> None:
        self._begins = False
        for _ in range(len(self._fresh)):  # no more than these, so that the loop has its turn whatever ends at once
            run = self._fresh.popleft()
            if run.stop is None:
                run.handle = _Task(self._one(run), loop=self._loop)
            else:
                self._finished(run, run.obeyed())

    def _cancel(self, run: Run) -> None:
        if isinstance(run.handle, asyncio.Task):
            run.handle.cancel()

    async def _one(self, run: Run) -> None:
        try:
            value = await run.call()
        except asyncio.CancelledError as error:
            self._finished(run, run.raised(error) if run.stop is None else run.obeyed())
        except BaseException as error:
            self._finished(run, run.raised(error))
        else:
            self._finished(run, run.returned(value))
