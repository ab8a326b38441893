"""Which event tells of a settled run."""

from __future__ import annotations

from tenure.hold import lost_reason
from tenure.protocol.events import Kind
from tenure.protocol.job import Answer, Claimed, Ending, Verdict
from tenure.protocol.lifecycle import Counter, Verb
from tenure.protocol.lifecycle import ending as ending_of
from tenure.worker.run import NotCommitted

_KINDS = {
    Verb.COMPLETE: Kind.JOB_COMPLETED,
    Verb.FAIL: Kind.JOB_FAILED,
    Verb.RETRY: Kind.JOB_FAILED,
    Verb.SNOOZE: Kind.JOB_RETURNED,
    Verb.RELEASE: Kind.JOB_RETURNED,
    Verb.CANCEL: Kind.JOB_CANCELLED,
    Verb.DISCARD: Kind.JOB_DISCARDED,
}


def kind_of(claimed: Claimed, ending: Ending, answer: Answer) -> Kind:
    """Name the event of a settled run."""
    if answer.verdict is Verdict.STALE:
        return Kind.STALE_REFUSED
    if _is_confirmed(ending, answer):
        return Kind.JOB_COMPLETED
    return Kind.JOB_DISCARDED if _is_spent(claimed, ending) else _KINDS[ending.verb]


def detail_of(claimed: Claimed, ending: Ending, answer: Answer) -> str:
    """Tell how the run was settled: where an error was raised, never what it said (B30)."""
    if answer.verdict is Verdict.STALE:
        return f"{ending.verb} was refused: {lost_reason(answer)}"
    if _is_confirmed(ending, answer):
        return str(Verb.COMPLETE)
    failure = ending.failure
    spent = "; attempts used up" if _is_spent(claimed, ending) else ""
    return _raised(ending) + spent + ("" if failure is None else f"; see tenure jobs show {claimed.id} --reveal")


def afterthought(ending: Ending, answer: Answer) -> str | None:
    """Tell what a handler raised after the transaction that completed its job: nothing comes of it."""
    failure = ending.failure
    if not _is_confirmed(ending, answer) or (failure is not None and failure.type == NotCommitted.__name__):
        return None
    return f"{_raised(ending)}: the job was completed before, in the handler's own transaction, and stays so"


def stopping(running: int, grace: float) -> str:
    """Tell how a worker stops, and how to hurry it."""
    jobs = "1 job" if running == 1 else f"{running} jobs"
    return f"{jobs} running, grace {grace:g} s; again to stop now"


def _raised(ending: Ending) -> str:
    failure = ending.failure
    if failure is None:
        return str(ending.verb)
    return failure.type + (f" at {failure.where}" if failure.where else "")


def _is_confirmed(ending: Ending, answer: Answer) -> bool:
    return ending.confirms and answer.verdict is Verdict.ALREADY


def _is_spent(claimed: Claimed, ending: Ending) -> bool:
    return claimed.attempts + 1 == claimed.max_attempts and ending_of(ending.verb).counts is Counter.ATTEMPTS
