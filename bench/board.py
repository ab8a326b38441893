"""The board: when each job ran, and when it was sent, in a file that all processes of a measurement map.

A handler's only work is `mark(number)`. It is the same for everybody who is measured, costs well below a microsecond,
and is what shows that every job was done, how often, from when to when, and how soon after it was sent.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import mmap
from pathlib import Path
from tempfile import TemporaryDirectory

PROCESSES = 8
_REPEATS = PROCESSES
_HOLDS = PROCESSES + 1
_HEAD = PROCESSES + 2
_CELL = 8
_FOR_EVER = 3600.0
_PATH = "TENURE_BENCH_BOARD"
_PLACE = "TENURE_BENCH_PLACE"


class Board:
    """The board at `path`; `place` is the number of this worker process, if it is one."""

    def __init__(self, path: Path, place: int = 0) -> None:
        self.path = path
        with path.open("r+b") as file:
            self._cells = memoryview(mmap(file.fileno(), 0)).cast("d")
        self.jobs = (len(self._cells) - _HEAD) // 2
        self._place = place
        self._began = False
        self._holds = bool(self._cells[_HOLDS])
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
        if self._holds:
            time.sleep(_FOR_EVER)

    def sent(self, number: int) -> None:
        """Note that a job is being sent now."""
        self._cells[_HEAD + self.jobs + number] = time.monotonic()

    # -- what the one who measures reads

    def ran(self, number: int) -> bool:
        """Tell whether a job ran."""
        return bool(self._cells[_HEAD + number])

    def ran_in_a_row(self) -> int:
        """Count the jobs before the first one that did not run yet; each is looked at until it has."""
        while self._seen < self.jobs and self.ran(self._seen):
            self._seen += 1
        return self._seen

    @property
    def at_work(self) -> list[int]:
        """Return the places of the worker processes that got anything."""
        return [place for place in range(PROCESSES) if self._cells[place]]

    @property
    def times(self) -> list[float]:
        """Return when each job ran; 0 for one that did not."""
        return self.times_of(self.jobs)

    def times_of(self, jobs: int) -> list[float]:
        """Return when each of the first `jobs` ran."""
        return list(self._cells[_HEAD : _HEAD + jobs])

    def missing(self, jobs: int) -> int:
        """Count those of the first `jobs` that did not run."""
        return sum(not at for at in self.times_of(jobs))

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
def fresh_board(jobs: int, *, holds: bool = False) -> Iterator[Board]:
    """Make a board for so many jobs, which never end if it `holds` them; it vanishes in the end."""
    with TemporaryDirectory(prefix="tenure-bench-board-") as folder:
        path = Path(folder, "board")
        with path.open("wb") as file:
            file.truncate((_HEAD + 2 * jobs) * _CELL)
        board = Board(path)
        board._cells[_HOLDS] = float(holds)  # noqa: SLF001 -- its maker
        yield board


_at_work: list[Board] = []


def work_on(path: Path, place: int) -> None:
    """Let the handlers of this process, and of those that it starts, mark on the board at `path`."""
    os.environ.update({_PATH: str(path), _PLACE: str(place)})
    _at_work[:] = [Board(path, place)]


def mark(number: int) -> None:
    """Note that a job runs now: all that a handler does."""
    if not _at_work:
        work_on(Path(os.environ[_PATH]), int(os.environ[_PLACE]))
    _at_work[0].mark(number)
