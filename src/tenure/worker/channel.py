"""What a worker and its child process say to each other: JSON, one message a line, over a socket pair.

The worker says `Begin` and gets `Ended`. In between the child may ask, and is told. Arguments and results travel as the
JSON text that the store holds. A child never opens the store for its job's own requests: they go through the worker
that owns the lease, under that lease's token, whatever store the child's program would open.
"""

from __future__ import annotations

import os
import select
import threading
from typing import Generic, TypeVar

import msgspec

from tenure.protocol.job import Answer, Claimed, Ending


class Module(msgspec.Struct, frozen=True):
    """How to import a module: by its name, or from `path` when it is the script that was started."""

    name: str
    path: str | None = None


class Place(msgspec.Struct, frozen=True):
    """Where a child finds a task: after importing `modules`, in the app that the first of them calls `app`.

    `argv` are the program's arguments, which a script may look at while it is imported.
    """

    modules: tuple[Module, ...]
    app: str
    argv: tuple[str, ...]


class Begin(msgspec.Struct, tag=True, frozen=True):
    """Run this claimed job of `owner`; the program's app uses the store at `address`, where it has one."""

    place: Place
    claimed: Claimed
    owner: str
    address: str | None


class Told(msgspec.Struct, tag=True, frozen=True):
    """The answer to a question: what the client returned, or the kind and words of the error that it raised."""

    number: int
    value: Answer | str | None = None
    error: tuple[str, str] | None = None


class Begun(msgspec.Struct, tag=True, frozen=True):
    """The program is loaded and the handler is called now: its time limit counts from here."""


class Ended(msgspec.Struct, tag=True, frozen=True):
    """How the run ended; None when there is nothing to settle."""

    ending: Ending | None


class Progress(msgspec.Struct, tag=True, frozen=True):
    """Store how far the run is, as JSON text."""

    number: int
    value: str


class Recall(msgspec.Struct, tag=True, frozen=True):
    """Look up the remembered result of a step."""

    number: int
    step: str


class Record(msgspec.Struct, tag=True, frozen=True):
    """Remember the result of a step, as JSON text."""

    number: int
    step: str
    result: str


class Extend(msgspec.Struct, tag=True, frozen=True):
    """Make the lease last `duration` seconds from now; None only verifies it, after a jump of the clocks (R14)."""

    number: int
    duration: float | None


class Lift(msgspec.Struct, tag=True, frozen=True):
    """Let claims start above a generation that a destination has met (R41)."""

    number: int
    generation: int


Question = Progress | Recall | Record | Extend | Lift
FromWorker = Begin | Told
FromChild = Question | Begun | Ended

In = TypeVar("In")
_encode = msgspec.json.Encoder().encode
from_worker: msgspec.json.Decoder[FromWorker] = msgspec.json.Decoder(FromWorker)
from_child: msgspec.json.Decoder[FromChild] = msgspec.json.Decoder(FromChild)


class Channel(Generic[In]):
    """One end of a socket pair: any thread may send, one receives.

    The descriptor stays open until `close`, or until the kernel closes it with the process: its end is what the other
    side sees, and it must not come while the process still runs its last lines.
    """

    def __init__(self, fd: int, decoder: msgspec.json.Decoder[In]) -> None:
        self._fd = fd
        self._decode = decoder.decode
        self._lines = open(fd, "rb", closefd=False)  # noqa: SIM115 -- it is kept open as long as the process lives
        self._sending = threading.Lock()

    def send(self, message: FromWorker | FromChild) -> None:
        """Send one message; raises BrokenPipeError or ConnectionResetError when the other side is gone."""
        data = memoryview(_encode(message) + b"\n")
        with self._sending:
            while data:
                data = data[os.write(self._fd, data) :]

    def receive(self) -> In | None:
        """Wait for a message; None when the other side is gone."""
        try:
            line = self._lines.readline()
        except ConnectionResetError:
            return None
        # A line that was not ended is the last word of a process that was killed while it wrote.
        return self._decode(line) if line.endswith(b"\n") else None

    def pending(self, seconds: float = 0.0) -> bool:
        """Whether `receive` would return at once, or will within `seconds`."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000.0))

    def close(self) -> None:
        """Close this end; a later `send` raises OSError."""
        fd, self._fd = self._fd, -1
        os.close(fd)
