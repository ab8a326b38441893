"""How evidence is told to people: who did what to which job, under which generation, when."""

from __future__ import annotations

from tenure.proof.history import Applied, Call, Entry

_SHORT = 12
_LONG = 40
_DEEDS = {
    "raise": "announcement",
    "apply": "write",
    "renew": "renewal",
    "extend": "extension",
    "complete": "completion",
}
_PAST = {
    "cancel": "cancelled it",
    "discard": "discarded it",
    "release": "took it away",
    "retry": "made it available again",
    "prune": "pruned it",
}


class Words:
    """Tells a run whose moments count from `origin`."""

    def __init__(self, origin: float) -> None:
        self.origin = origin

    def time(self, moment: float) -> str:
        """Tell a moment as seconds since the run began."""
        return f"{moment - self.origin:.3f} s"

    def at(self, moment: float) -> str:
        """Tell when something was."""
        return f"at {self.time(moment)}"

    def when(self, call: Call) -> str:
        """Tell when a call took effect: when it was answered, or where the answer was lost, that it was not."""
        if call.outcome == "unknown" or call.answered is None:
            return f"{self.at(call.sent)} (sent, its answer was lost)"
        return self.at(call.answered)

    def granted(self, claim: Call) -> str:
        """Tell a claim that was granted."""
        return f"{who(claim)} had been given generation {claim.generation} {self.when(claim)}"

    def did(self, call: Call) -> str:
        """Tell what ended a right: a newer claim, an operator, or its own holder."""
        if call.call == "claim":
            return self.granted(call)
        if call.owner is None:
            return f"an operator had {_PAST[call.call]} {self.when(call)}"
        return f"{who(call)} had ended that run with {call.call} {self.when(call)}"


def who(line: Call | Entry) -> str:
    """Name who acted: the worker where it has a name, else as much of its identity as people can tell apart."""
    if line.worker:
        return line.worker
    if line.owner:
        return line.owner[:_SHORT]
    return line.process if isinstance(line, Call) else "somebody"


def turn(entry: Entry) -> str:
    """Name a turn of a job's life, with whoever took it where the store tells that."""
    by = f" by {who(entry)}" if entry.worker or entry.owner else ""
    return f"{'an' if entry.event[0] in 'aeiou' else 'a'} {entry.event}{by}"


def deed(call: Call) -> str:
    """Name a call as a thing that somebody made."""
    number = "" if call.call != "apply" or call.sequence is None else f" {call.sequence}"
    return _DEEDS.get(call.call, call.call) + number


def written(line: Call | Applied) -> str:
    """Name a write at a destination by its number and its generation."""
    number = "a write" if line.sequence is None else f"write {line.sequence}"
    return f"{number} without a generation" if line.generation is None else f"{number} of generation {line.generation}"


def some(count: int, what: str) -> str:
    """Count things, such as ``1 attempt`` or ``2 attempts``."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def shown(value: object) -> str:
    """Show a value, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _LONG else text[:_LONG] + "…"
