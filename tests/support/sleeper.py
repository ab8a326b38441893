"""A server that serves nobody, to see how a server's process is treated: a shell that says what happens to it."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Self

from tenure.testing.process import Server

READY = "echo ready; while :; do sleep 0.02; done"


class Sleeper(Server):
    """A shell that runs `script`, and is ready once it says so; QUIT is what ends it at once."""

    kind = "Sleeper"
    _AT_ONCE = signal.SIGQUIT

    def __init__(self, script: str, folder: Path | None) -> None:
        self.script = script
        super().__init__(folder)

    @classmethod
    def start(cls, script: str = READY, folder: Path | None = None) -> Self:
        server = cls(script, folder)
        server._begin()
        return server

    @property
    def stray(self) -> Path:
        """Return the file that it leaves beside its folder."""
        return self.folder.with_suffix(".sock")

    def _command(self) -> list[str | Path]:
        return ["/bin/sh", "-c", f'touch "$0"; {self.script}', self.stray]

    def _ready(self) -> bool:
        return "ready" in self._said().split()  # and not in "already in use"

    def _strays(self) -> list[Path]:
        return [self.stray]
