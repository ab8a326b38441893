"""The worker processes of a run: started, heard, stopped, continued, killed and replaced, each by its process id."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec

from tenure.errors import Misuse
from tenure.proof.prove.worker import NOT_STARTED, Orders

_PATIENCE = 15.0
_STANDING, _LOOK = 15.0, 0.0005


@dataclass(eq=False)
class Member:
    """One started worker process."""

    name: str
    process: subprocess.Popen[bytes]
    struck: threading.Lock = field(default_factory=threading.Lock)  # whoever does something to it holds this
    gone: bool = False

    def signal(self, number: int) -> None:
        """Send it a signal, if it is there."""
        self.process.send_signal(number)

    def stop(self) -> None:
        """Stop it, and return when it stands still: its threads go on for a moment after the signal was sent."""
        self.signal(signal.SIGSTOP)
        if sys.platform != "linux":  # where Python cannot wait for that
            return
        until = time.monotonic() + _STANDING
        with suppress(ChildProcessError):  # it has ended
            while os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOHANG) is None:
                if time.monotonic() > until:
                    return
                time.sleep(_LOOK)


@dataclass(frozen=True, slots=True)
class Moment:
    """A worker is about to write for this job, under this generation."""

    member: Member
    job: str
    generation: int


class Fleet:
    """`size` worker processes; leaving the `with` block ends every one of them.

    Only the thread that made it may start processes: they end with that thread.
    """

    def __init__(self, size: int, orders: Callable[[str], Orders], address: str, folder: Path) -> None:
        self._orders = orders
        self._environment = {**os.environ, "TENURE_STORE": address}
        self._log = folder / "workers.log"
        self._size = size
        self._members: list[Member] = []
        self._started = 0
        self._missing = 0
        self._lock = threading.Lock()
        self.moments: queue.SimpleQueue[Moment] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        for _ in range(self._size):
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members():
            member.signal(signal.SIGCONT)
            _end(member)

    def members(self) -> list[Member]:
        """List the processes that are there."""
        with self._lock:
            return list(self._members)

    def kill(self, member: Member) -> None:
        """Kill a worker; `look_after` starts another one in its place."""
        with self._lock:
            if member.gone:
                return
            member.gone = True
            self._members.remove(member)
            self._missing += 1
        _end(member)

    def look_after(self) -> None:
        """Replace who was killed; raises Misuse with its words when a worker has ended by itself."""
        for member in self.members():
            code = member.process.poll()
            if code == NOT_STARTED:
                self.kill(member)  # it is over; another one tries again
            elif code is not None and not member.gone:
                raise Misuse(f"{member.name} ended by itself ({code}); it said{self._words()}")
        with self._lock:
            missing, self._missing = self._missing, 0
        for _ in range(missing):
            self._start()

    def stop(self) -> None:
        """Ask every worker to stop, and wait until they have."""
        members = self.members()
        for member in members:
            member.gone = True
            member.signal(signal.SIGTERM)
        until = time.monotonic() + _PATIENCE
        for member in members:
            with suppress(subprocess.TimeoutExpired):
                member.process.wait(max(0.1, until - time.monotonic()))

    def said(self) -> str:
        """Return the end of what the workers wrote to their standard errors."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-2000:].strip()

    def _words(self) -> str:
        said = self.said()
        return f": {said}" if said else " nothing"

    def _start(self) -> None:
        self._started += 1
        name = f"worker-{self._started}"
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tenure.proof.prove.worker", msgspec.json.encode(self._orders(name)).decode()],
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        member = Member(name, process)
        with self._lock:
            self._members.append(member)
        threading.Thread(target=self._listen, args=(member,), daemon=True).start()

    def _listen(self, member: Member) -> None:
        assert member.process.stdout is not None  # noqa: S101 -- it was started with a pipe
        with member.process.stdout as lines:
            for line in lines:
                job, generation = line.decode().split()
                self.moments.put(Moment(member, job, int(generation)))


def _end(member: Member) -> None:
    assert member.process.stdin is not None  # noqa: S101 -- it was started with a pipe
    with suppress(BrokenPipeError):
        member.process.stdin.close()
    member.process.kill()
    member.process.wait()
