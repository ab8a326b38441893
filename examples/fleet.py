"""The worker processes of an example, and the nemesis that stops, continues, kills and replaces them."""

from __future__ import annotations

import os
import queue
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tenure import App, LeaseHeld, State, Unavailable

ROOT = Path(__file__).resolve().parents[1]
_PATIENCE = 30.0
_LOOK = 0.02
_LINGER = 0.3
_PROBE = 0.25


@dataclass(frozen=True, slots=True)
class Writing:
    """A worker that has passed the gate and is about to write for this job."""

    worker: subprocess.Popen[bytes]
    job: str


class Fleet:
    """`size` worker processes; leaving the `with` block ends every one of them, by its process id.

    Each runs ``python -m module worker-N arguments`` and prints the id of a job whenever it is about to write for it:
    see `examples.child`.
    """

    def __init__(self, size: int, module: str, *arguments: str, environment: Mapping[str, str], log: Path) -> None:
        self._command = (module, arguments)
        self._environment = {**os.environ, **environment}
        self._log = log
        self._workers: list[subprocess.Popen[bytes]] = []
        self._size = size
        self.started = 0
        self.writing: queue.SimpleQueue[Writing] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        for _ in range(self._size):
            self.add()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM if kind is None else signal.SIGKILL)
        for worker in self._workers:
            with suppress(subprocess.TimeoutExpired):
                worker.wait(_PATIENCE)
            _end(worker)

    def add(self) -> None:
        """Start one more worker."""
        self.started += 1
        module, arguments = self._command
        with self._log.open("ab") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", module, f"worker-{self.started}", *arguments],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._workers.append(worker)
        threading.Thread(target=self._listen, args=(worker,), daemon=True).start()

    def replace(self, worker: subprocess.Popen[bytes]) -> None:
        """Kill a worker and start another one in its place."""
        _end(worker)
        self._workers.remove(worker)
        self.add()

    def find_writer(self, seconds: float) -> Writing | None:
        """Wait for a worker that is about to write from now on; None when none was within `seconds`."""
        while not self.writing.empty():
            self.writing.get()
        try:
            found = self.writing.get(timeout=seconds)
        except queue.Empty:
            self.check()
            return None
        return found if found.worker in self._workers else None  # else the last word of one that was killed

    def check(self) -> None:
        """Raise ChildProcessError when a worker has ended by itself."""
        for worker in self._workers:
            if worker.poll() is not None:
                said = self._log.read_text(encoding="utf-8")[-2000:]
                raise ChildProcessError(f"process {worker.pid} ended by itself ({worker.returncode}); it said: {said}")

    def _listen(self, worker: subprocess.Popen[bytes]) -> None:
        assert worker.stdout is not None  # noqa: S101 -- it was started with a pipe
        with worker.stdout as lines:
            for line in lines:
                self.writing.put(Writing(worker, line.decode().strip()))


def _end(worker: subprocess.Popen[bytes]) -> None:
    assert worker.stdin is not None  # noqa: S101 -- it was started with a pipe
    worker.stdin.close()
    worker.kill()
    worker.wait()


class Nemesis:
    """Strikes workers in the moment that hurts most: after the gate, before the write.

    `kills` is the share of strikes that kill; the others stop a worker until its job has another owner, and continue
    it. `nobody_locked` tells whether everything that is written to can be written to just now.
    """

    def __init__(self, fleet: Fleet, app: App, seed: int, *, kills: float, nobody_locked: Callable[[], bool]) -> None:
        self._fleet = fleet
        self._app = app
        self._random = random.Random(seed)
        self._share = kills
        self._nobody_locked = nobody_locked
        self.stops = 0
        self.kills = 0

    def strike(self, seconds: float) -> str | None:
        """Strike once and say what was done; None when nobody was about to write within `seconds`."""
        victim = self._fleet.find_writer(seconds)
        if victim is None:
            return None
        kill, linger = self._random.random() < self._share, self._random.uniform(0.0, _LINGER)
        if kill:
            self._fleet.replace(victim.worker)
            self.kills += 1
            return f"killed process {victim.worker.pid} and started another one"
        began = time.monotonic()
        try:
            self._stop(victim, began + _PATIENCE)
            self._await_loss(victim, began + _PATIENCE)
            time.sleep(linger)  # the new owner may or may not have written by then
        finally:
            victim.worker.send_signal(signal.SIGCONT)
        self.stops += 1
        return f"stopped process {victim.worker.pid} for {time.monotonic() - began:.1f} s"

    def _stop(self, victim: Writing, deadline: float) -> None:
        """Stop a worker outside its transactions: in SQLite it would keep the lock, and everybody waiting."""
        _freeze(victim.worker)
        while not self._nobody_locked():
            if time.monotonic() > deadline:
                raise TimeoutError(f"process {victim.worker.pid} held a lock whenever it was stopped")
            victim.worker.send_signal(signal.SIGCONT)
            self._nobody_locked()  # waits for it to finish its transaction
            _freeze(victim.worker)

    def _await_loss(self, victim: Writing, deadline: float) -> None:
        """Wait until the stopped worker's job has another owner, or is over."""
        owned = self._running(victim.job)
        while owned is not None and self._running(victim.job) == owned:
            self._fleet.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"nobody took job {victim.job} over from a stopped worker within {_PATIENCE:g} s")
            time.sleep(_LOOK)

    def _running(self, job: str) -> int | None:
        """Tell under which generation a job is running, None when it is not."""
        record = self._app.client.get(job)
        return record.generation if record.state is State.RUNNING else None


def _freeze(worker: subprocess.Popen[bytes]) -> None:
    """Stop a process; returns when it stands still."""
    worker.send_signal(signal.SIGSTOP)
    _, status = os.waitpid(worker.pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        raise ChildProcessError(f"process {worker.pid} ended instead of standing still")


def store_answers(app: App) -> bool:
    """Tell whether the store can be written to just now: claim something of no importance, and give it back."""
    probe = App(app.store, timeout=_PROBE)
    try:
        probe.claim("nemesis", owner="nemesis", duration=1.0).release()
    except Unavailable:
        return False
    except LeaseHeld:
        return True  # an earlier probe could not give it back
    return True
