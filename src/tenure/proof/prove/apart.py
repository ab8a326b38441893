"""Runs a plan: in this process, or where its store needs a file system of its own, in one that sees another.

    python -m tenure.proof.prove.apart VOLUME FOLDER

The plan comes in as one line of JSON, and answers go back so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from tenure.errors import BadSettings, Misuse, OutcomeUnknown, TenureError, Unavailable
from tenure.proof.prove.outcome import Proof
from tenure.proof.prove.plan import Plan
from tenure.proof.prove.runner import Played, Progress, judged, play
from tenure.proof.prove.volume import Volume

_ERRORS = {kind.__name__: kind for kind in (BadSettings, Unavailable, OutcomeUnknown)}


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line from the process apart: how far the run is, what it was in the end, or why there is none."""

    passed: float | None = None
    played: Played | None = None
    error: str = ""
    message: str = ""


def prove(plan: Plan, folder: Path, *, progress: Progress = lambda _: None) -> Proof:
    """Run the plan and judge it; `folder`, which must be empty, holds the whole run as `history.jsonl` then."""
    if "disk" in plan.faults:
        return judged(plan, folder, _played_apart(plan, folder, progress))
    return judged(plan, folder, play(plan, folder, progress=progress))


def _played_apart(plan: Plan, folder: Path, progress: Progress) -> Played:
    with tempfile.TemporaryDirectory(prefix="tenure-disk-") as volume:
        child = subprocess.Popen(
            [sys.executable, "-m", "tenure.proof.prove.apart", volume, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        try:
            return _heard(child, plan, progress)
        finally:
            child.kill()
            child.wait()


def _heard(child: subprocess.Popen[bytes], plan: Plan, progress: Progress) -> Played:
    assert child.stdin is not None  # noqa: S101 -- it was started with pipes
    assert child.stdout is not None  # noqa: S101 -- as above
    with child.stdin as orders, child.stdout as lines:
        with suppress(BrokenPipeError):  # what became of it is told below
            orders.write(msgspec.json.encode(plan) + b"\n")
        for line in lines:
            told = msgspec.json.decode(line, type=Told)
            if told.error:
                raise _ERRORS.get(told.error, Misuse)(told.message)
            if told.played is not None:
                return told.played
            progress(told.passed or 0.0)
    raise Misuse(f"the process in which the run was played has ended by itself ({child.wait()})")


def main() -> None:
    """Play the plan that comes in, and tell about it."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0) as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # so that nothing else is said there
        plan = msgspec.json.decode(sys.stdin.readline(), type=Plan)
        try:
            volume = Volume(Path(sys.argv[1]))
            threading.Thread(target=_end_with_input, daemon=True).start()
            played = play(plan, Path(sys.argv[2]), volume=volume, progress=lambda passed: _tell(answers, Told(passed)))
        except TenureError as error:
            _tell(answers, Told(error=type(error).__name__, message=str(error)))
        else:
            _tell(answers, Told(played=played))


def _tell(answers: IO[bytes], told: Told) -> None:
    answers.write(msgspec.json.encode(told) + b"\n")


def _end_with_input() -> None:
    """End at once when whoever started this is gone; workers and servers that were started here do so in turn."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
