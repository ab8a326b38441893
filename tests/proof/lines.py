"""Lines of hand-made histories, short enough to be read: A and B fight for job ``j``, all within one minute."""

from __future__ import annotations

from typing import Any

from tenure.proof.history import AnyLine, Applied, Call, Entry, History, Meta, Row
from tenure.proof.judge import Judgement, judge
from tenure.protocol.lifecycle import State

TOOK = 0.5  # seconds from question to answer


class Bad:
    """One bad history: the invariant that it breaks, what the one sentence about it has to say, its lines, its meta."""

    def __init__(self, invariant: str, says: tuple[str, ...], *lines: AnyLine, **meta: Any) -> None:
        self.invariant = invariant
        self.says = says
        self.history = History.of([Meta(began=0.0, **meta), *lines])


def claim(generation: int, at: float, who: str = "A", *, lost: int | None = None, **more: Any) -> Call:
    given = {"lease": 30.0, "deadline": at + 28.0} | more
    return under(generation, "claim", at, who, lost=lost, **given)


def owned(call: Any, generation: int, at: float, who: str = "A", outcome: Any = "ok", **more: Any) -> Call:
    if call == "renew" and outcome == "ok":
        more = {"lease": 30.0, "deadline": at + 28.0} | more
    return under(generation, call, at, who, outcome, **more)


def under(generation: int, call: Any, at: float, who: str, outcome: Any = "ok", **more: Any) -> Call:
    answered = None if outcome == "unknown" else at + TOOK
    fields = {"process": f"process {who}", "owner": f"owner {who}", "worker": who, "job": "j", "answered": answered}
    return Call(call=call, sent=at, outcome=outcome, generation=generation, **fields | more)


def lost_claim(at: float, who: str = "A") -> Call:
    return Call(process=f"process {who}", call="claim", sent=at, owner=f"owner {who}", worker=who)


def operated(call: Any, at: float, outcome: Any = "ok", job: str | None = "j") -> Call:
    answered = None if outcome == "unknown" else at + TOOK
    return Call(process="console", call=call, sent=at, outcome=outcome, answered=answered, job=job)


def fenced(call: Any, generation: int, at: float, who: str = "A", outcome: Any = "ok", **more: Any) -> Call:
    sequence = 1 if call == "apply" else None
    return under(generation, call, at, who, outcome, **{"scope": "s", "sequence": sequence} | more)


def entry(event: Any, generation: int | None, at: float, state: str | None = None, **more: Any) -> Entry:
    return Entry(job="j", event=event, generation=generation, at=at, state=_state(state), **more)


def taken(event: Any, generation: int, at: float, who: str = "A", **more: Any) -> Entry:
    """Tell of a claim or a takeover, for thirty seconds."""
    owner = {"owner": f"owner {who}", "worker": who}
    return entry(event, generation, at, "running", until=at + 30.0, **owner | more)


def ended(event: Any, generation: int, at: float, state: str, who: str = "A", **more: Any) -> Entry:
    return entry(event, generation, at, state, right=generation, owner=f"owner {who}", worker=who, **more)


def row(state: str | None, generation: int | None = None, **more: Any) -> Row:
    return Row(job="j", state=_state(state), generation=generation, **more)


def applied(act: Any, generation: int | None, sequence: int | None = None, **more: Any) -> Applied:
    return Applied(**{"scope": "s", "act": act, "job": "j", "generation": generation, "sequence": sequence} | more)


def judged(*lines: AnyLine, **meta: Any) -> Judgement:
    """Judge lines that are not in a file."""
    return judge(History.of([Meta(began=0.0, **meta), *lines]))


def _state(name: str | None) -> State | None:
    return None if name is None else State(name)


RUN = (entry("enqueue", 0, -1.0, "available", attempts=0, takeovers=0), taken("claim", 1, 0.2))
"""How the store tells that a job was made and A was given generation 1."""
