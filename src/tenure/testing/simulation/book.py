"""The book of a history: what every process asked and was answered, as the lines that the judge reads.

A note is opened when something is asked and closed when it is answered; one that stays open was never answered.
Moments are the scheduler's, which no process can read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import force_setattr as set_field

from tenure.proof.history import Call, Outcome
from tenure.protocol.job import Answer, Claimed, Claimer, Ending, Moved, Pruned, Turn, Verdict
from tenure.protocol.lease import Token
from tenure.testing.simulation.threads import Scheduler

_DONE: Final = Verdict.DONE
_OUTCOMES: dict[Verdict, Outcome] = {Verdict.DONE: "ok", Verdict.ALREADY: "already", Verdict.STALE: "stale"}


class Note(Struct, eq=False):
    """A question that is under way: who asked what, when, with which arguments."""

    process: str
    ask: str
    args: tuple[Any, ...]
    sent: float


class Book:
    """Keeps the notes and the calls of one history."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.calls: list[Call] = []
        self.grants: dict[tuple[str, str, int], Call] = {}  # the last that gave a process a lease, by its token
        self.leases: dict[tuple[str, int], float] = {}  # how long the lease of a claim is
        self.removed: dict[int, list[str]] = {}  # the jobs that a prune removed, by the identity of its arguments
        self._scheduler = scheduler
        self._open: dict[int, Note] = {}

    # -- what is asked of a store

    def asked(self, process: str, ask: str, args: tuple[Any, ...]) -> Note | None:
        """Open a note; None for a question whose answer the judge has no use for."""
        if ask not in _LINES:
            return None
        note = Note(process, ask, args, self._scheduler.now)
        self._open[id(note)] = note
        return note

    def again(self, note: Note | None) -> None:
        """Note that a question goes a second time, and that nobody will hear the answer to that."""
        if note is not None:
            self.asked(note.process, note.ask, note.args)

    def answered(self, note: Note | None, result: Any) -> None:
        """Close a note with what the store answered."""
        if note is not None:
            del self._open[id(note)]
            _LINES[note.ask](self, note, self._scheduler.now, result)

    def failed(self, note: Note | None) -> None:
        """Close a note on which nothing was done."""
        if note is not None:
            del self._open[id(note)]

    def believed(self, process: str, token: Token, until: float) -> None:
        """Write the end of a belief to the line of the answer on which it rests."""
        grant = self.grants.get((process, token.job, token.generation))
        if grant is not None:
            set_field(grant, "deadline", until)

    def close(self) -> list[Call]:
        """Write down what was never answered, and return all calls in the order of sending."""
        for note in self._open.values():
            _LINES[note.ask](self, note, None, None)
        self._open.clear()
        return sorted(self.calls, key=attrgetter("sent"))

    # -- lines

    def turn(self, note: Note, answered: float | None, turn: Turn | None) -> None:
        """Write a feeder's turn: the end of each run, and each claim."""
        claimer, endings, wanted = note.args
        if endings:
            self._endings(note, answered, endings, None if turn is None else turn.answers)
        if wanted:
            self._claims(note, answered, claimer, None if turn is None else turn.claimed)

    def _endings(
        self, note: Note, answered: float | None, endings: Sequence[Ending], answers: Sequence[Answer] | None
    ) -> None:
        owner = note.args[0].owner
        for place, ending in enumerate(endings):
            answer = None if answers is None else answers[place]
            detail = ending.reason or ""
            self._write(
                note, answered, str(ending.verb), ending.token, owner, answer, result=ending.result, detail=detail
            )

    def _claims(self, note: Note, answered: float | None, claimer: Claimer, claimed: Sequence[Claimed] | None) -> None:
        if claimed is None:
            self.calls.append(
                Call(process=note.process, call="claim", sent=note.sent, owner=claimer.owner, worker=claimer.worker)
            )
            return
        for row in claimed:
            call = Call(
                process=note.process,
                call="claim",
                sent=note.sent,
                answered=answered,
                outcome="ok",
                job=row.id,
                generation=row.generation,
                owner=claimer.owner,
                worker=claimer.worker,
                lease=row.lease,
                lost=row.lost_generation,
                state=row.state,
            )
            self.calls.append(call)
            self.leases[row.id, row.generation] = row.lease
            self.grants[note.process, row.id, row.generation] = call

    def renew(self, note: Note, answered: float | None, refused: Sequence[Answer] | None) -> None:
        """Write a renewal, a line for each lease."""
        owner, tokens, *rest = note.args
        duration = rest[0] if rest else None
        what = "renew" if duration is None else "extend"
        answers = {} if refused is None else {answer.token: answer for answer in refused}
        done = Answer(tokens[0], _DONE) if tokens else None
        for token in tokens:
            lease = duration or self.leases.get((token.job, token.generation))
            answer = None if refused is None else answers.get(token, done)
            call = self._write(note, answered, what, token, owner, answer, lease=lease)
            if call.outcome == "ok":
                self.grants[note.process, token.job, token.generation] = call

    def progress(self, note: Note, answered: float | None, answer: Answer | None) -> None:
        """Write a progress value."""
        owner, token, value = note.args
        self._write(note, answered, "progress", token, owner, answer, value=value)

    def record_step(self, note: Note, answered: float | None, answer: Answer | None) -> None:
        """Write the record of a step."""
        owner, token, step, result = note.args
        self._write(note, answered, "step", token, owner, answer, key=step, result=result)

    def operate(self, note: Note, answered: float | None, moved: Sequence[Moved] | None) -> None:
        """Write what an operator did, a line for each job."""
        verb, jobs = note.args[:2]
        for place, job in enumerate(jobs):
            outcome: Outcome = "unknown" if moved is None else "ok" if moved[place].moved else "fail"
            self.calls.append(
                Call(process=note.process, call=str(verb), sent=note.sent, answered=answered, outcome=outcome, job=job)  # type: ignore[arg-type]  # an operator's verbs are calls
            )

    def prune(self, note: Note, answered: float | None, pruned: Pruned | None) -> None:
        """Write that somebody removed what was over, a line for each job that this removed."""
        outcome: Outcome = "unknown" if pruned is None else "ok"
        for job in self.removed.pop(id(note.args), ()):
            self.calls.append(
                Call(process=note.process, call="prune", sent=note.sent, answered=answered, outcome=outcome, job=job)
            )

    def _write(  # noqa: PLR0917 -- every line has all of these
        self,
        note: Note,
        answered: float | None,
        call: str,
        token: Token,
        owner: str,
        answer: Answer | None,
        *,
        result: str | None = None,
        lease: float | None = None,
        key: str | None = None,
        value: str | None = None,
        detail: str = "",
    ) -> Call:
        outcome: Outcome = "unknown"
        current = None
        if answer is not None:
            outcome = _OUTCOMES.get(answer.verdict, "fail")
            current = answer.generation
            result = answer.result if outcome == "already" else result
        line = Call(
            process=note.process,
            call=call,  # type: ignore[arg-type]  # an owner's verbs are calls
            sent=note.sent,
            answered=answered,
            outcome=outcome,
            job=token.job,
            generation=token.generation,
            owner=owner,
            current=current,
            lease=lease,
            key=key,
            value=value,
            result=result,
            detail=detail,
        )
        self.calls.append(line)
        return line


_LINES: dict[str, Callable[[Book, Note, float | None, Any], None]] = {
    "turn": Book.turn,
    "renew": Book.renew,
    "progress": Book.progress,
    "record_step": Book.record_step,
    "operate": Book.operate,
    "prune": Book.prune,
}

__all__ = ["Book", "Note"]
