"""`Part`: a thread of the machinery. One that fails ends the whole worker, loudly: half a worker keeps no promise."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tenure.protocol.ending import name_of
from tenure.protocol.events import log

Crashed = Callable[[BaseException], None]


class Gone(BaseException):
    """Raised inside a part whose process is gone, which only a simulation can play: there is nobody left to tell."""


class Part:
    """Run `main` in a thread named `name`; `crashed` hears of an error that `main` did not expect."""

    def __init__(self, name: str, main: Callable[[], None], crashed: Crashed) -> None:
        self._name = name
        self._main = main
        self._crashed = crashed
        self._thread = threading.Thread(target=self._guarded, name=f"tenure-{name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread to end, if it was started."""
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    @property
    def is_current(self) -> bool:
        """Whether it is this thread that asks."""
        return threading.get_ident() == self._thread.ident

    def _guarded(self) -> None:
        try:
            self._main()
        except Gone:
            raise
        except BaseException as error:
            try:
                log.critical("the worker's %s failed and the worker stops", self._name, exc_info=True)
            finally:
                self._crashed(error if issubclass(type(error), Exception) else self._exited(error))

    def _exited(self, error: BaseException) -> Exception:
        """Make an error of what would end a program in silence, such as SystemExit(0), if it were raised again."""
        failed = RuntimeError(f"the worker's {self._name} was ended by {name_of(type(error))}")
        failed.__cause__ = error
        return failed
