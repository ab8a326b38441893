"""The named points at which a worker process dies, and never by its own doing: CRASH_AT names the one that is meant."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

from tenure import App
from tenure.protocol.job import Turn
from tenure.protocol.op import Op
from tenure.store.contract import Driver

P = ParamSpec("P")
T = TypeVar("T")

VARIABLE: Final = "CRASH_AT"

CLAIMED: Final = "claimed"
"""The store's answer to a claim has come back, and the worker knows nothing of it yet."""

BEFORE: Final = "before the handler"
"""Its arguments are read; the handler has not begun."""

INSIDE: Final = "inside the handler"
"""Its effect is at the destination; the handler has not returned."""

AFTER: Final = "after the handler"
"""The worker is about to store that the run has ended."""

STORED: Final = "stored"
"""The end is stored; the answer has come back, and the worker knows nothing of it yet."""

POINTS: Final = (CLAIMED, BEFORE, INSIDE, AFTER, STORED)


def pass_by(point: str) -> None:
    """Die here if this is the point, as by a power cut: nothing of this process does anything more."""
    if os.environ.get(VARIABLE) == point:
        os.kill(os.getpid(), signal.SIGKILL)


class _Crossing:
    """A driver whose turns pass by the points."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def do(self, verb: Callable[P, Op[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `verb`."""
        settles = getattr(verb, "__name__", "") == "turn" and bool(args[1])
        if settles:
            pass_by(AFTER)
        answer = self._driver.do(verb, *args, **kwargs)
        if settles:
            pass_by(STORED)
        if isinstance(answer, Turn) and answer.claimed:
            pass_by(CLAIMED)
        return answer

    def close(self) -> None:
        """Give connections back."""
        self._driver.close()


def lay(app: App) -> None:
    """Lay the points along the way of every job that this process works on."""
    open_driver = app.store.dedicated
    app.store.dedicated = lambda *, timeout: _Crossing(open_driver(timeout=timeout))  # type: ignore[method-assign]
    for task in app.tasks.values():
        task.function = _passing(task.function)


def _passing(function: Callable[..., Any]) -> Callable[..., Any]:
    def handler(*args: Any, **kwargs: Any) -> Any:
        pass_by(BEFORE)
        return function(*args, **kwargs)

    return handler
