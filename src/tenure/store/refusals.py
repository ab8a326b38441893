"""Why the store refused: what an owner's write met instead of its token, put into an answer or an error.

Pure functions over the rows of the statement `explain`: id, state, generation, owner, worker, ended, result, and the
milliseconds that are left of the lease.
"""

from __future__ import annotations

from tenure.errors import LeaseHeld, NotAllowed, NotFound
from tenure.protocol.job import Answer, Ending, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import State, Verb
from tenure.store.statements import Row


def owns(owner: str, token: Token, met: Row | None) -> bool:
    """Whether the row that was met is owned under this token."""
    return met is not None and (met[2], met[3]) == (token.generation, owner)


def met_by(token: Token, verdict: Verdict, met: Row | None) -> Answer:
    """Answer with what was met, None when the job is gone."""
    if met is None:
        return Answer(token, verdict)
    _, state, generation, _, worker, ended, result, _ = met
    return Answer(token, verdict, State(state), generation, worker, None if ended is None else Verb(ended), result)


def why_not_renewed(owner: str, token: Token, met: Row | None) -> Answer:
    """Answer a renewal that changed no row."""
    # A row that is ours with a live lease was locked by another transaction just then: not lost, ask again.
    busy = owns(owner, token, met) and met is not None and met[7] > 0
    return met_by(token, Verdict.BUSY if busy else Verdict.STALE, met)


def why_not_settled(end: Ending, met: Row | None) -> Answer:
    """Answer an ending that changed no row."""
    # One token has one owner, so the same verb under the same generation is this owner's own earlier write (R7).
    ends = {str(end.verb), str(Verb.COMPLETE)} if end.confirms else {str(end.verb)}
    same = met is not None and met[2] == end.token.generation and met[5] in ends and met[1] != State.RUNNING
    return met_by(end.token, Verdict.ALREADY if same else Verdict.STALE, met)


def why_not_claimed(job: str, found: list[Row]) -> NotFound | LeaseHeld | NotAllowed:
    """Make the error for a claim by id that took nothing."""
    if not found:
        return NotFound(job)
    _, state, generation, _, worker, _, _, remaining_ms = found[0]
    if state == State.RUNNING and remaining_ms > 0:
        return LeaseHeld(job, holder=worker, generation=generation, remaining=remaining_ms / 1000)
    due = "it is not due yet" if state == State.AVAILABLE else ""
    return NotAllowed(job, verb=Verb.CLAIM, state=state, reason=due)
