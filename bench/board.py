"""The board: when each job ran, and when it was sent, in a file that all processes of a measurement map.

A handler's only work is `mark(number)`. It is the same for everybody who is measured, costs well below a microsecond,
and is what shows that every job was done, how often, from when to when, and how soon after it was sent.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import mmap
from pathlib import Path
from tempfile import TemporaryDirectory

PROCESSES = 8
_REPEATS = PROCESSES
_HEAD = PROCESSES + 1
_CELL = 8


class Board:
    """The board at `path`; `place` is the number of this worker process, if it is one."""

    def __init__(self, path: Path, place: int = 0) -> None:
        self.path = path
        with path.open("r+b") as file:
            self._cells = memoryview(mmap(file.fileno(), 0)).cast("d")
        self.jobs = (len(self._cells) - _HEAD) // 2
        self._place = place
        self._began = False
        self._seen = 0

    def mark(self, number: int) -> None:
        """Note that a job runs now."""
        now, cells, at = time.monotonic(), self._cells, _HEAD + number
        if not self._began:
            self._began = True
            cells[self._place] = now
        if cells[at]:
            cells[_REPEATS] += 1
        cells[at] = now

    def sent(self, number: int) -> None:
        """Note that a job is being sent now."""
        self._cells[_HEAD + self.jobs + number] = time.monotonic()

    # -- what the one who measures reads

    def ran(self, number: int) -> bool:
        """Tell whether a job ran."""
        return bool(self._cells[_HEAD + number])

    def all_ran(self) -> bool:
        """Tell whether every job ran; each is looked at until it has."""
        while self._seen < self.jobs and self.ran(self._seen):
            self._seen += 1
        return self._seen == self.jobs

    @property
    def times(self) -> list[float]:
        """Return when each job ran; 0 for one that did not."""
        return list(self._cells[_HEAD : _HEAD + self.jobs])

    @property
    def missing(self) -> int:
        """Count the jobs that did not run."""
        return sum(not at for at in self.times)

    @property
    def repeats(self) -> int:
        """Count the runs beyond the first of each job."""
        return int(self._cells[_REPEATS])

    @property
    def all_at_work(self) -> float:
        """Return when the last of the worker processes that got anything began its first job."""
        return max(self._cells[:PROCESSES])

    def delays(self, *, after: int) -> list[float]:
        """Return the seconds from sending to running of each job that ran, from number `after` on, sorted."""
        sent = self._cells[_HEAD + self.jobs :]
        return sorted(ran - sent[number] for number, ran in enumerate(self.times) if ran and number >= after)


@contextmanager
def fresh_board(jobs: int) -> Iterator[Board]:
    """Make a board for so many jobs; it vanishes in the end."""
    with TemporaryDirectory(prefix="tenure-bench-board-") as folder:
        path = Path(folder, "board")
        path.write_bytes(bytes((_HEAD + 2 * jobs) * _CELL))
        yield Board(path)


_at_work: list[Board] = []


def work_on(board: Board) -> None:
    """Let the handlers of this process mark on `board`."""
    _at_work[:] = [board]


def mark(number: int) -> None:
    """Note that a job runs now: all that a handler does."""
    _at_work[0].mark(number)
