"""The ringer: a thread that waits at the store's bell and wakes the feeder; a dead bell is noticed and replaced."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from tenure.errors import TenureError
from tenure.protocol.events import Emitter, Kind
from tenure.store.contract import Bell
from tenure.worker.part import Crashed, Part

if TYPE_CHECKING:
    from tenure.worker.feeder import Feeder

_WAIT = 5.0
_PAUSE = 1.0


class Ringer:
    """Listen at the bell that `open_bell` makes; without one the feeder polls."""

    def __init__(
        self, open_bell: Callable[[], Bell | None], feeder: Feeder, emitter: Emitter, crashed: Crashed
    ) -> None:
        self._open_bell = open_bell
        self._feeder = feeder
        self._emitter = emitter
        self._bell: Bell | None = None
        self._lock = threading.Lock()  # so that nobody wakes a bell that is being closed
        self._stopped = threading.Event()
        self._part = Part("ringer", self._run, crashed)

    def start(self) -> None:
        """Start the thread."""
        self._part.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        with self._lock:
            if self._bell is not None:
                self._bell.wake()
        self._part.join()

    def _run(self) -> None:
        told = False
        while not self._stopped.is_set():
            try:
                bell = self._open_bell()
                if bell is None:
                    return
                told = False
                self._listen(bell)
            except TenureError as error:
                self._feeder.has_bell = False
                if not told:
                    self._emitter.emit(Kind.BELL_LOST, detail=str(error))
                told = True
                self._stopped.wait(_PAUSE)

    def _listen(self, bell: Bell) -> None:
        with self._lock:
            self._bell = bell
        self._feeder.has_bell = True
        self._feeder.ring()  # whatever was announced before the bell was open
        try:
            while not self._stopped.is_set():
                if bell.wait(_WAIT):
                    self._feeder.ring()
        finally:
            with self._lock:
                self._bell = None
                bell.close()
