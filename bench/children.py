"""Child processes as the one who measures sees them: started, told to go, and ended whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from bench.board import Board
from bench.entrant import Entrant, Handler

ROOT = Path(__file__).parent.parent
PATIENCE = 120.0
"""Seconds after which a child that enqueues or prepares is given up."""


class Failed(Exception):
    """An entrant could not be measured; says why in one line."""


def ask(role: str, entrant: Entrant, address: str | Path, *arguments: object, patience: float = PATIENCE) -> Any:
    """Let a child play `role` and return what it prints, if anything; raises Failed with the end of what it said."""
    try:
        done = subprocess.run(
            _command(role, entrant, address, arguments),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"{role} took more than {patience:g} s") from None
    if done.returncode != 0:
        raise Failed(f"{role}: {_last_line(done.stderr) or f'ended with {done.returncode}'}")
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines else None


class Worker:
    """A worker process that has imported everything and waits for the word."""

    def __init__(self, process: subprocess.Popen[bytes], said: IO[bytes]) -> None:
        self.pid = process.pid
        self._process = process
        self._said = said

    def await_ready(self) -> None:
        """Wait until it could begin; raises Failed if it ends before."""
        if not cast("IO[bytes]", self._process.stdout).readline():
            self._process.wait()
            self.check()

    def go(self) -> None:
        """Give the word."""
        word = cast("IO[bytes]", self._process.stdin)
        word.write(b"go\n")
        word.flush()

    def check(self) -> None:
        """Raise Failed if it has ended."""
        if self._process.poll() is not None:
            self._said.seek(0)
            reason = _last_line(self._said.read().decode(errors="replace"))
            raise Failed(f"work: {reason or f'ended with {self._process.returncode}'}")

    def end(self) -> None:
        """End it and whatever it has started; it has nothing left to do."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()


@contextmanager
def workers(entrant: Entrant, address: str, handler: Handler, board: Board, count: int = 1) -> Iterator[list[Worker]]:
    """Start worker processes, which go together, and end them on leaving."""
    with ExitStack() as stack:
        team = [stack.enter_context(_worker(entrant, address, handler, board, place)) for place in range(count)]
        for worker in team:
            worker.await_ready()
        for worker in team:
            worker.go()
        yield team


@contextmanager
def _worker(entrant: Entrant, address: str, handler: Handler, board: Board, place: int) -> Iterator[Worker]:
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            _command("work", entrant, address, (handler, board.path, place)),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
        )
        worker = Worker(process, said)
        try:
            with process:
                try:
                    yield worker
                finally:
                    worker.end()
        except BrokenPipeError:
            worker.check()


def _command(role: str, entrant: Entrant, address: str | Path, arguments: Sequence[object]) -> list[str]:
    return [sys.executable, "-m", "bench.child", role, entrant.key, str(address), *map(str, arguments)]


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
