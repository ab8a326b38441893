"""What every store does: the verbs with what each needs, does, promises and may refuse, and how verbs are driven.

Rules that hold for all verbs, stated once:

- A verb is an operation (`tenure.protocol.op`). Each of its requests is atomic, and at most one changes a job. A store
  makes one transaction of all of them (memory, SQLite), or of each (PostgreSQL, so that no lock is held over a round
  trip): what is asked before the change only advises, and what is asked afterwards explains or notes a refusal.
- The store's clock decides about leases and due times, read inside the atomic step and after its lock (R12).
- The tokens of one job only grow (R3). A claim takes ``max(generation, floor) + 1``; at 15 digits it is refused (R4).
- Every write of an owner names job, owner and generation; no match is the verdict *stale*, for good (R5).
- A decision of an operator or of upkeep is checked again in the statement that carries it out (R10).
- Three answers: done, stale (or another refusal), unknown. A lost answer raises `OutcomeUnknown`; repeating a verb is
  harmless: ids are made by the client, endings are idempotent under their token, and what a lost claim took is found
  by `held` and given back (R26, R28, R30).
- Abnormal turns of a job's life are written to its history in the same transaction (R46).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import datetime
from typing import Any, ParamSpec, Protocol, TypeVar

from msgspec import Struct

from tenure.protocol.job import (
    Answer,
    Claimed,
    Claimer,
    Ending,
    Enqueued,
    Filter,
    Foremost,
    HistoryEntry,
    JobRecord,
    Moved,
    NewJob,
    Outlook,
    Pruned,
    QueueCounts,
    Turn,
    Wanted,
    WorkerRecord,
)
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.protocol.op import Op, Request

P = ParamSpec("P")
T = TypeVar("T")

MAX_GENERATION = 999_999_999_999_999
"""The largest generation: 15 digits are exact in JSON, Lua and JavaScript numbers (R4)."""

FLOOR_STEP = 1_000_000_000
"""How far a changed identity raises the floor: far beyond the claims that any job can have had since (R41, R44)."""


class Admission(Struct, frozen=True, gc=False):
    """The floor in force, whether the verb raised it, and where it stood before."""

    floor: int
    raised: bool
    before: int


class Verbs(Protocol):
    """Every verb of a store, grouped by noun."""

    # -- jobs, from their enqueuer's side

    def enqueue(self, jobs: Sequence[NewJob]) -> Op[list[Enqueued]]:
        """Store new jobs, all or none, and ring the bell.

        A job whose id is there already, or whose (task, unique key) is held by a live job, is not stored again: its
        answer names the job that was met. Answers come in the order of `jobs`.
        """
        ...

    # -- leases

    def claim(self, claimer: Claimer, wanted: Wanted) -> Op[list[Claimed]]:
        """Take due jobs and, when asked to look, jobs whose lease has ended; never more than `wanted.limit` (R1, R9).

        Each is owned by `claimer` for its lease from now on, under a generation above every one before. A job that
        has lost `max_takeovers` workers is discarded instead, with the reason "worker lost", and returned as such.
        """
        ...

    def claim_named(self, claimer: Claimer, job: str, duration: float, *, create: bool) -> Op[Claimed]:
        """Take one job by its id, due or with an ended lease; with `create`, make a bare one where there is none.

        Refuses with LeaseHeld, NotAllowed (over, or not due) or NotFound.
        """
        ...

    def renew(self, owner: str, tokens: Sequence[Token], duration: float | None = None) -> Op[list[Answer]]:
        """Prolong leases that have not ended, all in one statement: each to its own length, or to `duration` seconds.

        No lease is ever shortened: answers that cross on the way must not leave a holder believing too long (R13).

        Returns answers only for tokens that were *not* renewed: stale ones, and busy ones, whose job another
        transaction had locked just then.
        """
        ...

    def settle(self, owner: str, endings: Sequence[Ending]) -> Op[list[Answer]]:
        """End runs under their tokens, each independently, answers in order (R5, R7).

        A run's end is accepted late as long as nobody else has claimed (R6). What the end does to the job stands in the
        lifecycle table; a refused end is noted in the history.
        """
        ...

    def turn(
        self, claimer: Claimer, endings: Sequence[Ending], wanted: Sequence[Wanted], *, careful: bool = False
    ) -> Op[Turn]:
        """Settle and claim in one round trip: what a feeder does over and over.

        With `careful`, the ending of a job that another transaction has locked is answered BUSY and not carried out.
        """
        ...

    def outlook(self, queues: Sequence[str]) -> Op[Outlook]:
        """Tell what time alone has made claimable in these queues, whatever its task, and when it next will.

        Changes and locks nothing.
        """
        ...

    def progress(self, owner: str, token: Token, value: str) -> Op[Answer]:
        """Store a progress value under the token."""
        ...

    def recall_step(self, job: str, step: str) -> Op[str | None]:
        """Look up the remembered result of a named effect of this job; None when it has none."""
        ...

    def record_step(self, owner: str, token: Token, step: str, result: str) -> Op[Answer]:
        """Remember a named effect's result under the token; the first result stays (answer ALREADY carries it)."""
        ...

    def guard(self, owner: str, token: Token) -> Op[Answer]:
        """Lock the token's job until the transaction ends, so that neither a claim nor an operator can come between.

        Stale when it has another owner already; an ended lease that nobody has taken over still counts (R6). For the
        caller's own transaction, where it makes an effect and the right to it one thing (D1); alone it guards nothing.
        """
        ...

    def held(self, owner: str) -> Op[list[Token]]:
        """List what the store says this owner holds, to be compared with what it knows after a lost answer (R28)."""
        ...

    # -- operators

    def get(self, job: str) -> Op[JobRecord]:
        """Show one job; refuses with NotFound."""
        ...

    def history(self, job: str) -> Op[list[HistoryEntry]]:
        """Tell the abnormal turns of a job's life, oldest first."""
        ...

    def find(
        self, which: Filter, *, limit: int, after: str | None = None, newest_first: bool = True
    ) -> Op[list[JobRecord]]:
        """List jobs in order of id, `limit` at a time, after the id of the last one seen.

        What may be large is left out: arguments, result, progress, and of a failure its message and traceback.
        """
        ...

    def operate(self, verb: Verb, jobs: Sequence[str], reason: str | None = None) -> Op[list[Moved]]:
        """Cancel, discard, release or retry jobs by id; each is checked again as it is changed (R2, R10)."""
        ...

    def prune(self, before: float, *, limit: int, after: str | None = None) -> Op[Pruned]:
        """Remove jobs that ended more than `before` seconds ago, in one small step of at most `limit` rows looked at.

        Removing a job whose id was chosen by a person raises the floor to its generation, so that the id can come back
        without its tokens repeating (R3).
        """
        ...

    def queues(self) -> Op[list[QueueCounts]]:
        """Count the live jobs of each queue."""
        ...

    # -- workers, and the store itself

    def report(self, worker: WorkerRecord) -> Op[list[Foremost]]:
        """Tell that a worker lives; `seen_ago` and `held` are ignored.

        Returns what has been due longest in each of its queues under each priority: what stands there for long is of a
        task that nobody runs.
        """
        ...

    def forget(self, owner: str) -> Op[None]:
        """Remove a worker that has stopped."""
        ...

    def workers(self) -> Op[list[WorkerRecord]]:
        """List the workers that reported themselves, oldest start first."""
        ...

    def admit(self) -> Op[Admission]:
        """Compare the store's identity with the remembered one; if it changed, raise the floor first (R41, R44).

        Whatever raises the floor, this and the two below, logs it as a warning: from where, to where, and why.
        """
        ...

    def lift_floor(self, generation: int) -> Op[Admission]:
        """Raise the floor to `generation`, which a destination has met, if it is lower (R41)."""
        ...

    def recover(self) -> Op[Admission]:
        """Raise the floor above anything that can have been issued, after a restore that nothing can notice."""
        ...


class Driver(Protocol):
    """Runs verbs on a blocking connection."""

    def do(self, verb: Callable[P, Op[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `verb` in one session and return its result; the operation is built anew when it must be repeated."""
        ...

    def close(self) -> None:
        """Give connections back; the driver may be used again and then connects anew."""
        ...


class AsyncDriver(Protocol):
    """Runs verbs on an asynchronous connection."""

    async def do(self, verb: Callable[P, Op[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `verb` in one session and return its result; the twin of `Driver.do`."""
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...


Execute = Callable[[Request[Any]], Any]


class Bell(Protocol):
    """A hint that work may be waiting; never needed for correctness."""

    def wait(self, seconds: float) -> bool:
        """Wait until it rings or `seconds` have passed; True when it rang. Raises Unavailable when it is broken."""
        ...

    def wake(self) -> None:
        """Make a waiting thread return at once."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class Store(Protocol):
    """An address opened: its verbs, and the ways to drive them."""

    @property
    def name(self) -> str:
        """The address without user data, for people."""
        ...

    @property
    def durability(self) -> str:
        """The class of durability, as banners show it (R42)."""
        ...

    @property
    def verbs(self) -> Verbs:
        """The store's verbs."""
        ...

    @property
    def capabilities(self) -> Collection[str]:
        """What this store can do: caller_transaction, bell, processes, parallel_writes."""
        ...

    def connect(self, *, timeout: float, repeat_unknown: bool = False) -> Driver:
        """Open a driver that threads may share; no verb takes longer than `timeout` seconds.

        With `repeat_unknown` a lost answer is repeated within that time: right for verbs whose repetition is harmless
        to the caller, wrong for a claim, whose caller must give back what a lost answer took (R28).
        """
        ...

    def dedicated(self, *, timeout: float) -> Driver:
        """Open a driver over one connection of its own, which nothing else can occupy; for one thread."""
        ...

    def aconnect(self, *, timeout: float, repeat_unknown: bool = False) -> AsyncDriver:
        """Open an asynchronous driver with connections of its own."""
        ...

    def join(self, connection: object) -> Driver:
        """Drive verbs inside the caller's own open transaction; raises Misuse for a connection of another kind."""
        ...

    def ajoin(self, connection: object) -> AsyncDriver:
        """Drive verbs inside the caller's own open transaction, asynchronously."""
        ...

    def bell(self) -> Bell | None:
        """Open a bell, None where the store has none."""
        ...

    def check(self) -> None:
        """Raise BadSettings where this store, as set up, could lose an acknowledged generation (R11, R42)."""
        ...

    def migrate(self) -> list[str]:
        """Bring the schema up to date and return the names of the migrations applied."""
        ...

    def pending_migrations(self) -> list[tuple[str, str]]:
        """Return the (name, SQL) of every migration not yet applied."""
        ...

    def close(self) -> None:
        """Close every connection that this store opened."""
        ...


class Harness(Protocol):
    """What a store offers to tests on top: its clock can be moved, and its requests can be tampered with."""

    def shift_clock(self, seconds: float) -> None:
        """Move the store's clock forward; every later request sees the moved clock."""
        ...

    def now(self) -> datetime:
        """Read the store's clock."""
        ...


Session = Callable[[], AbstractContextManager[Execute]]
AsyncSession = Callable[[], AbstractAsyncContextManager[Callable[[Request[Any]], Any]]]
