"""`Recorder`: writes a history while it happens, cheaply, from any thread of one process.

    recorder = Recorder(append_to(path, "worker-1"), "worker-1")
    asked = recorder.asked("complete", job=job, generation=7, owner=owner, worker="A", result='"done"')
    ...                                              # send it; the process may be killed here
    recorder.answered(asked, "ok")                   # or already, stale, fail, unknown

Each process start writes a file of its own, each line with one system call, so that a killed process leaves whole lines
and a process that vanished between question and answer leaves the question, which the judge takes as unknown.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, cast

import msgspec

from tenure.clock import Clock, boot_clock
from tenure.errors import Misuse
from tenure.proof.history import (
    Act,
    Applied,
    Call,
    CallName,
    Calm,
    Entry,
    EventName,
    Fault,
    Line,
    Meta,
    Outcome,
    Part,
    Row,
)
from tenure.protocol.job import HistoryEntry, JobRecord
from tenure.protocol.lifecycle import Verb

Sink = Callable[[Any], object]
"""Takes one line after the other: a file's end, or the `append` of a list in a simulation."""


class File:
    """A sink at the end of a new file; its first line is `head`."""

    def __init__(self, path: Path, head: Meta | Part) -> None:
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except FileExistsError as error:
            raise Misuse(f"{path} is there already: each start of a process writes a file of its own") from error
        self._encode = msgspec.json.Encoder().encode
        self(head)

    def __call__(self, line: Line) -> None:
        """Append one line: one system call, so that lines of threads and forks do not mix."""
        data = self._encode(line) + b"\n"
        if os.write(self._fd, data) != len(data):
            raise OSError(f"a line of {len(data)} bytes was written in part: is the disk full?")

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


class Recorder:
    """Writes the lines of one process, or of one part of a simulation, one method for each kind.

    `clock` is the judge's clock. Fields that are left out are not told; `tenure.proof.history` says what each means.
    """

    def __init__(self, sink: Sink, process: str, *, clock: Clock = boot_clock) -> None:
        self.process = process
        self.clock = clock
        self.write = sink
        self._numbers = count(1)

    # -- what was asked and answered

    def asked(self, call: CallName | Verb, **fields: Any) -> Call:
        """Note a call right before it is sent; unless `answered` follows, the judge takes its outcome as unknown."""
        fields.setdefault("sent", self.clock())
        line = Call(process=self.process, number=next(self._numbers), call=_call(call), **fields)
        self.write(line)
        return line

    def answered(self, asked: Call, outcome: Outcome, **fields: Any) -> Call:
        """Note the answer to `asked`, with what became known by it; once for each job that a claim took."""
        fields.setdefault("answered", self.clock())
        line = msgspec.structs.replace(asked, outcome=outcome, **fields)
        self.write(line)
        return line

    def call(self, call: CallName | Verb, outcome: Outcome, *, sent: float, **fields: Any) -> Call:
        """Note a call and its answer at once, where nothing can end the process in between; or a passed gate."""
        fields.setdefault("answered", self.clock())
        line = Call(
            process=self.process, number=next(self._numbers), call=_call(call), outcome=outcome, sent=sent, **fields
        )
        self.write(line)
        return line

    # -- what stores and destinations kept

    def store(self, job: str, event: EventName | Verb, **fields: Any) -> None:
        """Note one turn of a job's life, in the store's order."""
        self.write(Entry(job=job, event=cast(EventName, str(event)), **fields))

    def row(self, job: str, **fields: Any) -> None:
        """Note how a job stood at the end; without a `state`, that it was gone."""
        fields.setdefault("at", self.clock())
        self.write(Row(job=job, **fields))

    def applied(self, scope: str, act: Act, **fields: Any) -> None:
        """Note one line of a destination's log, in the destination's order."""
        self.write(Applied(scope=scope, act=act, **fields))

    # -- what was done to them

    def fault(self, what: str, whom: str = "", *, began: float, ended: float | None = None, detail: str = "") -> None:
        """Note what was done to whom, from when to when."""
        self.write(Fault(what=what, whom=whom, began=began, ended=ended, detail=detail))

    def calm(self, within: float, *, at: float | None = None) -> None:
        """Note that from now on nothing is disturbed, and how soon every job that can run has to be over (I14)."""
        self.write(Calm(at=self.clock() if at is None else at, within=within))

    # -- the same, from Tenure's own values

    def tell_row(self, record: JobRecord) -> None:
        """Note how a job of a Tenure store stood at the end."""
        self.row(
            record.id,
            state=record.state,
            generation=record.generation,
            worker=record.worker,
            ended=record.ended,
            attempts=record.attempts,
            max_attempts=record.max_attempts,
            takeovers=record.takeovers,
            max_takeovers=record.max_takeovers,
            due_in=max(0.0, (record.run_at - record.now).total_seconds()),
            result=record.result,
        )

    def tell_history(self, entry: HistoryEntry) -> None:
        """Note one turn as a Tenure store keeps it: under the generation whose right it ended or refused."""
        event, detail = _event(entry.event)
        self.store(
            entry.job,
            event,
            at=entry.at.timestamp(),
            right=entry.generation,
            worker=entry.worker,
            detail=detail or entry.reason or "",
        )


def _call(name: CallName | Verb) -> CallName:
    """Name a call by a verb as well; a takeover is what some claims turn out to be."""
    return "claim" if name == Verb.TAKEOVER else cast(CallName, str(name))


def _event(name: str) -> tuple[EventName | Verb, str]:
    """Read an event of a Tenure store's history: a verb, or ``stale VERB refused``."""
    words = name.split()
    if [words[0], words[-1]] == ["stale", "refused"]:
        return "refused", words[1]
    if name not in {str(verb) for verb in Verb}:
        raise Misuse(f"the store's history tells of {name!r}, which is no verb")
    return Verb(name), ""
