"""What handlers and workers of other processes did: one line of JSON each, in one file, in the order of writing.

`at` is the host's boot clock, which all its processes share. Besides, tests and handlers agree by empty files in the
journal's folder: `go` makes one, `await_go` waits for it.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from tenure.clock import boot_clock

VARIABLE = "TENURE_TEST_JOURNAL"
WORKER = "TENURE_TEST_WORKER"
_POLL = 0.02
_LONGEST = 90.0


def note(what: str, **fields: Any) -> None:
    """Write one line, whole, whoever else writes."""
    line = {"what": what, "at": boot_clock(), "worker": os.environ.get(WORKER, "test"), "pid": os.getpid(), **fields}
    file = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, json.dumps(line).encode() + b"\n")
    os.close(file)


def folder() -> Path:
    """Return the folder that the processes of a site share."""
    return Path(os.environ[VARIABLE]).parent


def await_go(name: str) -> None:
    """Wait in a handler until the test says `go`."""
    path = folder() / f"go-{name}"
    until = boot_clock() + _LONGEST
    while not path.exists():
        if boot_clock() > until:
            raise TimeoutError(f"nobody said go {name}")
        time.sleep(_POLL)


class Journal:
    """The journal as a test reads it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal"
        self.path.touch()
        self._read_to = 0
        self._lines: list[dict[str, Any]] = []

    def go(self, name: str) -> None:
        """Let those go on who wait for `name`."""
        self.path.with_name(f"go-{name}").touch()

    def find(self, what: str, **fields: Any) -> list[dict[str, Any]]:
        """List the lines that say `what` and have these fields."""
        self._read_on()
        return [line for line in self._lines if line["what"] == what and fields.items() <= line.items()]

    def _read_on(self) -> None:
        with self.path.open("rb") as file:
            file.seek(self._read_to)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # it is still being written
                self._read_to += len(line)
                self._lines.append(json.loads(line))

    def count(self, what: str, **fields: Any) -> int:
        """Count such lines."""
        return len(self.find(what, **fields))
