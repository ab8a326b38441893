"""States, verbs and the one table that says which verb may move a job from where to where.

House rules of this file:

1. Everything about transitions is decided by `TABLE`. The stores carry it out, the conformance suite is generated from
   it, the `CHECK` constraints and the drawing in the documentation are derived from it. Nothing else lists moves.
2. This file does not know time, ids or databases. A move may *need* something about time (`Need`), and says so; whoever
   carries it out looks at the store's clock inside the same atomic step (R12).

Theory of operation. A job is either waiting (`available`), owned (`running`) or over (`completed`, `cancelled`,
`discarded`). Time is not a state: "scheduled" is `available` with `run_at` ahead, "expired" is `running` with
`lease_until` behind. So nothing has to move a row for time to pass, and no background process is needed for
correctness: the next claim finds what is due and what was abandoned.

Three parties act. A *claimer* takes a job: one that is due, or one whose lease has ended (a takeover). An *owner* acts
under the token that its claim gave it, (job id, generation), and every one of its verbs is refused as stale when the
row carries another owner or generation (R5). An *operator* acts from outside and needs no token; when that takes the
job away from an owner, the generation rises at once, so that the owner's token is stale from this moment (R2).

The generation only ever grows (R3). It is raised by each claim and by each operator verb that ends an owner's right;
the end of a run leaves it alone, so that a repeated end can be recognised ("already", R7).

Two counters look alike and are kept apart. `attempts` counts runs that ended in failure and is bounded by
`max_attempts`; `takeovers` counts runs whose worker was lost and is bounded by `max_takeovers`. Reaching a bound sends
the job to `discarded` instead of its usual target: the dead letters.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tenure.errors import Misuse


class State(StrEnum):
    """Where a stored job is."""

    AVAILABLE = "available"
    RUNNING = "running"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"


class Actor(StrEnum):
    """Who acts: with no right yet, under a token, or from outside."""

    CLAIMER = "claimer"
    OWNER = "owner"
    OPERATOR = "operator"


class Verb(StrEnum):
    """What is done to a job; the past of a job is told in these words too."""

    CLAIM = "claim"
    TAKEOVER = "takeover"
    RENEW = "renew"
    EXTEND = "extend"
    PROGRESS = "progress"
    STEP = "step"
    COMPLETE = "complete"
    FAIL = "fail"
    RETRY = "retry"
    SNOOZE = "snooze"
    RELEASE = "release"
    CANCEL = "cancel"
    DISCARD = "discard"
    PRUNE = "prune"


class Need(StrEnum):
    """What a move needs of the store's clock."""

    NOTHING = "nothing"
    DUE = "due"  # run_at is not ahead
    LEASE_LIVE = "lease live"  # lease_until is ahead
    LEASE_ENDED = "lease ended"  # lease_until is not ahead


class Counter(StrEnum):
    """A counter that a move raises by one; at its bound the move goes to `discarded` instead."""

    ATTEMPTS = "attempts"
    TAKEOVERS = "takeovers"


@dataclass(frozen=True, slots=True)
class Move:
    """One allowed move: `actor` may `verb` a job in `source`, which brings it to `target`.

    `target` None means that the row is gone. `raises` says whether the generation grows by this move. `restarts` says
    whether both counters begin again at zero.
    """

    actor: Actor
    verb: Verb
    source: State
    target: State | None
    need: Need = Need.NOTHING
    raises: bool = False
    counts: Counter | None = None
    restarts: bool = False


_A, _R, _C, _X, _D = State
_CLAIMER, _OWNER, _OPERATOR = Actor

TABLE: tuple[Move, ...] = (
    # A claim takes what is due, and what was abandoned; after `max_takeovers` lost workers the job is discarded.
    Move(_CLAIMER, Verb.CLAIM, _A, _R, Need.DUE, raises=True),
    Move(_CLAIMER, Verb.TAKEOVER, _R, _R, Need.LEASE_ENDED, raises=True, counts=Counter.TAKEOVERS),
    # An owner keeps its lease only while it has not ended (decision 1, R6) ...
    Move(_OWNER, Verb.RENEW, _R, _R, Need.LEASE_LIVE),
    Move(_OWNER, Verb.EXTEND, _R, _R, Need.LEASE_LIVE),
    # ... but what it writes under its token stands, even late, as long as nobody else has claimed.
    Move(_OWNER, Verb.PROGRESS, _R, _R),
    Move(_OWNER, Verb.STEP, _R, _R),
    Move(_OWNER, Verb.COMPLETE, _R, _C),
    Move(_OWNER, Verb.FAIL, _R, _A, counts=Counter.ATTEMPTS),
    Move(_OWNER, Verb.RETRY, _R, _A, counts=Counter.ATTEMPTS),
    Move(_OWNER, Verb.SNOOZE, _R, _A),
    Move(_OWNER, Verb.RELEASE, _R, _A),
    Move(_OWNER, Verb.CANCEL, _R, _X),
    Move(_OWNER, Verb.DISCARD, _R, _D),
    # An operator needs no token; taking a job away from its owner makes the owner's token stale at once (R2).
    Move(_OPERATOR, Verb.CANCEL, _A, _X),
    Move(_OPERATOR, Verb.CANCEL, _R, _X, raises=True),
    Move(_OPERATOR, Verb.DISCARD, _A, _D),
    Move(_OPERATOR, Verb.DISCARD, _R, _D, raises=True),
    Move(_OPERATOR, Verb.RELEASE, _R, _A, raises=True),
    Move(_OPERATOR, Verb.RETRY, _X, _A, restarts=True),
    Move(_OPERATOR, Verb.RETRY, _D, _A, restarts=True),
    Move(_OPERATOR, Verb.PRUNE, _C, None),
    Move(_OPERATOR, Verb.PRUNE, _X, None),
    Move(_OPERATOR, Verb.PRUNE, _D, None),
)

LIVE = frozenset({State.AVAILABLE, State.RUNNING})
FINAL = frozenset(State) - LIVE

_BY_KEY = {(move.actor, move.verb, move.source): move for move in TABLE}

ENDINGS = frozenset(move.verb for move in TABLE if move.actor is Actor.OWNER and move.target is not State.RUNNING)
"""The verbs with which an owner ends its run."""

OPERATIONS = frozenset(move.verb for move in TABLE if move.actor is Actor.OPERATOR and move.target is not None)
"""The verbs with which an operator moves jobs."""


def move(actor: Actor, verb: Verb, source: State) -> Move | None:
    """Look up the one move that `actor` may make with `verb` from `source`; None where the table has none."""
    return _BY_KEY.get((actor, verb, source))


def ending(verb: Verb) -> Move:
    """Look up how an owner's `verb` ends a run; raises Misuse for a verb that ends none."""
    if verb not in ENDINGS:
        raise Misuse(f"{verb} ends no run; the verbs that do are {', '.join(sorted(ENDINGS))}")
    return _BY_KEY[Actor.OWNER, verb, State.RUNNING]


def operation(verb: Verb) -> tuple[Move, ...]:
    """Look up what an operator's `verb` does to jobs; raises Misuse for a verb that is none of an operator's."""
    if verb not in OPERATIONS:
        raise Misuse(f"{verb} is no operator's verb; those are {', '.join(sorted(OPERATIONS))}")
    return tuple(move for move in TABLE if (move.actor, move.verb) == (Actor.OPERATOR, verb))


def sources(actor: Actor, verb: Verb) -> frozenset[State]:
    """Name the states from which `actor` may `verb` a job."""
    return frozenset(move.source for move in TABLE if (move.actor, move.verb) == (actor, verb))


def check_constraint() -> str:
    """Write what each state says about a stored job as one SQL condition; the migrations carry it verbatim.

    A running job, and only a running one, has an owner and a lease; only a job that is over has an end.
    """
    lines = [f"    WHEN '{state}' THEN {_facts(state)}" for state in State]
    return "\n".join(["CASE state", *lines, "    ELSE FALSE", "END"])


def _facts(state: State) -> str:
    owned = "NOT NULL" if state is State.RUNNING else "NULL"
    over = "NOT NULL" if state in FINAL else "NULL"
    return f"owner IS {owned} AND lease_until IS {owned} AND finished_at IS {over}"
