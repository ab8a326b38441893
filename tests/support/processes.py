"""Child processes that tests start, pause, continue and kill, and bounded waiting for what they do.

`Processes` starts each child in a session of its own and leaves none behind, even if the test process itself is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

_POLL: Final = 0.015
_PATIENCE: Final = 30.0

# Reads the process groups to end, and ends them when the process that holds the pipe is gone.
_REAPER: Final = 'while read -r group; do groups="$groups -$group"; done; kill -s KILL -- $groups 2>/dev/null'


def wait_for(predicate: Callable[[], T], timeout: float, what: str) -> T:
    """Ask until the answer is true and return it; after `timeout` seconds fail, naming `what` and the last answer."""
    deadline = time.monotonic() + timeout
    while not (answer := predicate()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s for {what}; last state: {answer!r}")
        time.sleep(_POLL)
    return answer


def gone(pid: int) -> bool:
    """Tell whether a process has ended, be it that its parent has not asked how."""
    try:
        return _stat(pid)[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def _stat(pid: int) -> list[str]:
    # The fields follow the program's name, which is in brackets and may hold anything.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def faketime(offset: float, rate: float = 1.0) -> dict[str, str] | None:
    """Return an environment in which the wall clock is `offset` seconds ahead and runs `rate` times as fast.

    None if this machine has no libfaketime (Debian's package of that name). Measured with 0.9.10 and Python 3.11:

    - Only CLOCK_REALTIME is shifted, because FAKETIME_DONT_FAKE_MONOTONIC is set. Without it CLOCK_MONOTONIC and
      CLOCK_BOOTTIME become copies of the false wall clock, and every timed wait of `threading` and `queue` hangs for
      good: the C library waits for a monotonic deadline that the kernel never reaches. So it cannot show a drifting
      CLOCK_BOOTTIME; inject a clock for that.
    - `time.sleep` fails with EINVAL (it is `clock_nanosleep` to an absolute time since Python 3.11). Timed waits of
      `threading`, `queue` and `asyncio`, psycopg and its pool work; waits in `select` and `poll` shrink by the rate.
    - A PostgreSQL server started under it works and `clock_timestamp()` is shifted, but its `statement_timeout` may
      never come (with an offset of +3600 it did not).
    """
    library = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
    if library is None:
        return None
    speed = f" x{rate:g}" if rate != 1.0 else ""
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME": f"{offset:+g}{speed}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


class Child:
    """A started process; what it writes is in the files `stdout` and `stderr`."""

    def __init__(self, process: subprocess.Popen[bytes], stdout: Path, stderr: Path) -> None:
        self.pid = process.pid
        self.stdout = stdout
        self.stderr = stderr
        self._process = process

    @property
    def running(self) -> bool:
        """Tell whether it has not ended, be it stopped."""
        return self._process.poll() is None

    def lines(self) -> list[str]:
        """Return the lines that it has written to its standard output so far, without one that has not ended yet."""
        return self.stdout.read_text().rpartition("\n")[0].splitlines()

    def signal(self, number: signal.Signals, *, group: bool = False) -> None:
        """Send a signal to it, or to its whole process group."""
        if group:
            os.killpg(self.pid, number)
        else:
            self._process.send_signal(number)

    def stop(self, *, group: bool = False) -> None:
        """Pause it by SIGSTOP and return when it stands still."""
        self.signal(signal.SIGSTOP, group=group)
        wait_for(lambda: _stat(self.pid)[0] == "T", _PATIENCE, f"process {self.pid} to stand still")

    def cont(self, *, group: bool = False) -> None:
        """Let it go on by SIGCONT."""
        self.signal(signal.SIGCONT, group=group)

    def kill(self, *, group: bool = False) -> None:
        """End it by SIGKILL and return when it is gone."""
        self.signal(signal.SIGKILL, group=group)
        self.wait()

    def wait(self, timeout: float = _PATIENCE) -> int:
        """Await its end and return the exit status, negative for a signal; fail with its output after `timeout` s."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            written = f"{self.stdout.read_text()[-1000:]}\n{self.stderr.read_text()[-2000:]}"
            raise AssertionError(f"process {self.pid} still runs after {timeout:g} s; it wrote:\n{written}") from None

    def processor_seconds(self) -> float:
        """Tell how long it has kept processors busy, its ended children left out."""
        return sum(map(int, _stat(self.pid)[11:13])) / os.sysconf("SC_CLK_TCK")


class Processes:
    """Starts children, writes their output to files in `folder` and ends them all on leaving its `with` block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: list[Child] = []
        self._reaper = subprocess.Popen(["/bin/sh", "-c", _REAPER], stdin=subprocess.PIPE, start_new_session=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def python(self, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> Child:
        """Start this Python with the arguments, such as `-m`, `tenure` or a script."""
        return self.start(sys.executable, *arguments, environment=environment)

    def start(self, program: str | Path, *arguments: str | Path, environment: Mapping[str, str] | None = None) -> Child:
        """Start a program as the leader of its own process group; `environment` is added to that of the test."""
        stdout, stderr = (self._folder / f"child-{len(self._children)}.{stream}" for stream in ("stdout", "stderr"))
        with stdout.open("wb") as out, stderr.open("wb") as err:
            process = subprocess.Popen(
                [program, *arguments],
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        child = Child(process, stdout, stderr)
        self._children.append(child)
        assert self._reaper.stdin is not None
        self._reaper.stdin.write(f"{child.pid}\n".encode())
        self._reaper.stdin.flush()
        return child

    def close(self) -> None:
        """End every child and what it started in its group."""
        for child in self._children:
            with suppress(ProcessLookupError):
                child.signal(signal.SIGKILL, group=True)
            child.wait()
        self._children.clear()
        # It must not end groups by their number later, when the number may be another's.
        self._reaper.kill()
        self._reaper.communicate()
