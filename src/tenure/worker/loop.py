"""The executor for async handlers: an event loop in a thread of its own, one task a run."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tenure.worker.run import Finished, Run

if sys.version_info >= (3, 12):
    # A handler that waits for nothing has ended when its task has been made, and the loop never hears of it.
    _Task = partial(asyncio.Task, eager_start=True)
else:
    _Task = asyncio.Task


class LoopExecutor:
    """Run async handlers, up to `slots` at a time; stopping one cancels it."""

    kind = "async"

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._fresh: deque[Run] = deque()
        self._begins = False  # whether the loop has been told by itself to begin what is fresh
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._main, name="tenure-loop", daemon=True)

    def open(self, finished: Finished) -> None:
        """Start the loop."""
        self._finished = finished
        self._thread.start()

    def start(self, runs: Sequence[Run]) -> None:
        """Hand a batch to the loop in one hop; all that the ends of runs make room for begin in its next turn."""
        self._fresh.extend(runs)
        if threading.get_ident() != self._thread.ident:
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
        self._call(self._loop.stop)
        self._thread.join(timeout=1.0)

    def _call(self, function: Callable[..., object], *args: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *args)

    def _main(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            rest = asyncio.all_tasks(loop)
            for task in rest:
                task.cancel()
            if rest:
                loop.run_until_complete(asyncio.wait(rest, timeout=1.0))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

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
