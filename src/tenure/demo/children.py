"""The play's processes as their director sees them: started, heard, spoken to, stopped, continued and ended by pid.

A child tells what happens to it as JSON lines on its standard output and is told words on its standard input. Whatever
happens to the director, no child outlives it: leaving the `Cast` ends them, and a child whose input ends goes home.
"""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec

PATIENCE = 30.0
"""Seconds that anything in the play may take before it is called off."""

_BREAKING_OFF = (signal.SIGINT, signal.SIGTERM)
_FAREWELL = 3.0
_PR_SET_PDEATHSIG = 1


class Stalled(Exception):
    """What the play waited for did not come."""


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line from a child: what happened, under which generation, whether it was refused, and the words of it."""

    event: str
    who: str = ""
    generation: int = 0
    refused: bool = False
    text: str = ""
    seconds: float = 0.0
    port: int = 0


def tell(told: Told) -> None:
    """Tell the director, from any thread of a child: one write, so that lines of two threads never mix."""
    os.write(sys.stdout.fileno(), msgspec.json.encode(told) + b"\n")


def follow_parent() -> None:
    """Ask Linux to end this process with its parent, even while it is stopped and cannot see its input end."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Child:
    """One started process."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], errors: Path) -> None:
        self.name = name
        self.pid = process.pid
        self._process = process
        self._errors = errors
        self._heard: queue.SimpleQueue[Told | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name=f"hears-{name}", daemon=True).start()

    def expect(self, event: str) -> Told:
        """Wait until it tells of `event`, passing over others; raises Stalled when it ends or takes too long."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                told = self._heard.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise Stalled(f"{self.name} did not come to {event!r} within {PATIENCE:g} s") from None
            if told is None:
                said = self._errors.read_text(encoding="utf-8").strip()
                raise Stalled(f"{self.name} ended before {event!r}: {said[-2000:] or 'without a word'}")
            if told.event == event:
                return told

    def say(self, word: str) -> None:
        """Tell it a word."""
        assert self._process.stdin is not None  # noqa: S101 -- it was started with a pipe
        self._process.stdin.write(f"{word}\n".encode())
        self._process.stdin.flush()

    def stop(self) -> None:
        """Pause it (SIGSTOP), whatever it is doing; returns when it stands still."""
        self._process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            raise Stalled(f"{self.name} ended instead of standing still")

    def go_on(self) -> None:
        """Continue it (SIGCONT)."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it (SIGKILL) and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    def dismiss(self) -> None:
        """Let it go home by ending its input."""
        assert self._process.stdin is not None  # noqa: S101 -- as above
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            self._process.poll()  # it was killed before it had read everything

    def leave(self, deadline: float) -> None:
        """Wait until it has gone, and end it when `deadline` is over."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()

    def _listen(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 -- as above
        with self._process.stdout as lines:
            for line in lines:
                self._heard.put(msgspec.json.decode(line, type=Told))
        self._heard.put(None)


class Cast:
    """All children of one play; leaving the `with` block ends every one of them, at once if the play was broken off."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = {**os.environ, **environment}
        self._children: list[Child] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for child in self._children:
            child.dismiss()
        deadline = time.monotonic() + (_FAREWELL if kind is None else 0.0)
        for child in self._children:
            child.leave(deadline)

    def start(self, name: str, module: str, *arguments: str) -> Child:
        """Start ``python -m module name arguments``, out of reach of the terminal's Ctrl-C, which is the director's."""
        errors = self._folder / f"{name}.stderr"
        with _signals_put_off(), errors.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", module, name, *arguments],
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                start_new_session=True,
            )
            child = Child(name, process, errors)
            self._children.append(child)
        return child


@contextmanager
def _signals_put_off() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until a block has ended, so that no child is started and not known."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in _BREAKING_OFF}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for put_off in came:
            signal.raise_signal(put_off)
