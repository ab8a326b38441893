"""What each call of a history has to tell before anything can be judged by it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any

from tenure.errors import Misuse
from tenure.proof.history import Call, CallName, Outcome
from tenure.protocol import lifecycle

RENEWALS: frozenset[str] = frozenset({"renew", "extend"})
ENDINGS: frozenset[str] = frozenset(map(str, lifecycle.ENDINGS))
WRITES: frozenset[str] = RENEWALS | ENDINGS | {"progress", "step"}
"""What an owner asks of its store under a token."""

MOVES: frozenset[str] = frozenset(map(str, lifecycle.OPERATIONS | {lifecycle.Verb.PRUNE}))
"""What an operator asks of a store, without an owner."""

FENCED: frozenset[str] = frozenset({"raise", "apply", "seal"})
"""What is asked of a destination."""

_REFUSED: frozenset[str] = frozenset({"already", "stale"})
_UNDER_A_TOKEN = ("job", "generation", "owner")


def check_call(call: Call) -> None:
    """Raise Misuse naming the line and the culprit, where a call does not tell what the judge needs of it."""
    needed, read = _needed(call.call, call.outcome, call.job is not None, call.owner is not None)
    if None in read(call):
        missing = [name for name in needed if getattr(call, name) is None]
        problem: str | None = f"with the outcome {call.outcome} needs {' and '.join(missing)}"
    elif call.outcome in _REFUSED or (call.answered is not None and call.answered < call.sent):
        problem = _contradiction(call)
    else:
        return
    if problem:
        raise Misuse(f"{call.place or 'a history'}: {call.call} {problem}")


@cache
def _needed(call: CallName, outcome: Outcome, job: bool, owner: bool) -> tuple[tuple[str, ...], Callable[[Call], Any]]:  # noqa: FBT001 -- keys of a cache
    """Name what such a call has to tell, and make what reads at once all of that which is not known to be there."""
    needed = _names(call, outcome, job=job, owner=owner)
    known = {name for name, told in (("job", job), ("owner", owner)) if told}
    return needed, attrgetter("call", "outcome", *[name for name in needed if name not in known])


def _names(call: CallName, outcome: Outcome, *, job: bool, owner: bool) -> tuple[str, ...]:
    """Name what a call with this outcome has to tell, which may have named a job or an owner."""
    answered = () if outcome == "unknown" else ("answered",)
    if call == "claim":
        return ("owner", "generation", *answered) if outcome == "ok" and job else ("owner", *answered)
    if call in FENCED:
        return ("scope", *answered) if call == "apply" else ("scope", "generation", *answered)
    if not owner and call in MOVES:
        return answered if call == "prune" else ("job", *answered)
    return (*_UNDER_A_TOKEN, *answered)


def _contradiction(call: Call) -> str | None:
    if call.answered is not None and call.answered < call.sent:
        return f"was answered at {call.answered:g}, before it was sent at {call.sent:g}"
    if call.outcome not in _REFUSED:
        return None
    refusable = call.call in FENCED or call.owner is not None
    if call.call in {"claim", "effect"} or not refusable:
        return f"cannot be answered {call.outcome}: only a write under a token can"
    return None
