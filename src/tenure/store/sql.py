"""The verbs that the SQL stores share: which named statements a verb asks for, and what their rows mean.

The words of the statements are each store's own (`statements.sql`); their names, parameters and columns are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenure.errors import NotAllowed, NotFound, Unavailable
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
    Verdict,
    Wanted,
    WorkerRecord,
)
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import State, Verb, operation
from tenure.protocol.op import Op, ask
from tenure.store import calls, floor, rows
from tenure.store.contract import FLOOR_STEP, MAX_GENERATION, Admission
from tenure.store.refusals import met_by, owns, why_not_claimed, why_not_renewed, why_not_settled
from tenure.store.statements import Batch, Call, Row

_TOKEN = ("job", "generation")
_ENQUEUE_TRIES = 3
_SILENT_MS = 86_400_000  # a worker unheard of for a day is forgotten


class SqlVerbs:
    """`Verbs` over named statements; `name` is the store's, for what is told of it."""

    def __init__(self, name: str = "the store") -> None:
        self._name = name

    # -- jobs

    def enqueue(self, jobs: Sequence[NewJob]) -> Op[list[Enqueued]]:
        """Store new jobs; see `Verbs.enqueue`."""
        if not jobs:
            return []
        answers: dict[str, Enqueued] = {}
        missing = jobs if len(jobs) == 1 else list({job.id: job for job in reversed(jobs)}.values())[::-1]
        for _ in range(_ENQUEUE_TRIES):
            # A job that a unique key kept out is tried again when its rival has ended in between.
            stored = yield from _one(calls.enqueue(missing))
            if len(stored) == len(jobs):
                return [Enqueued(job.id, created=True) for job in jobs]
            answers.update((id_, Enqueued(id_, created=True)) for (id_,) in stored)
            missing = [job for job in missing if job.id not in answers]
            if missing:
                keys = [(job.id, job.task, job.unique_key) for job in missing]
                met = yield from _one(Call("met", {}, ("id", "task", "unique_key"), keys))
                answers.update((asked, Enqueued(found, created=False)) for asked, found in met)
                missing = [job for job in missing if job.id not in answers]
            if not missing:
                return _first_made([answers[job.id] for job in jobs])
        raise Unavailable(f"job {missing[0].id} could not be stored: its unique key changed hands too often; try again")

    # -- leases

    def claim(self, claimer: Claimer, wanted: Wanted) -> Op[list[Claimed]]:
        """Take due and abandoned jobs; see `Verbs.claim`."""
        return rows.claimed_in_order((yield from _one(calls.claim(claimer, wanted))))

    def claim_named(self, claimer: Claimer, job: str, duration: float, *, create: bool) -> Op[Claimed]:
        """Take one job by its id; see `Verbs.claim_named`."""
        who = {"job": job, "owner": claimer.owner, "worker": claimer.worker, "max_generation": MAX_GENERATION}
        lease_ms = rows.duration_ms(duration)
        calls = [Call("claim_named", who | {"lease_ms": lease_ms})]
        if create:
            calls.insert(0, Call("create_named", {"job": job, "lease_ms": lease_ms, "max_generation": MAX_GENERATION}))
        taken = (yield from ask(Batch(tuple(calls))))[-1]
        if taken:
            return rows.claimed(taken[0])
        met = yield from _one(Call("explain", {}, ("job",), [(job,)]))
        if create and not met:
            raise NotAllowed(job, verb=Verb.CLAIM, state=State.AVAILABLE, reason="the store's generations are used up")
        raise why_not_claimed(job, met)

    def renew(self, owner: str, tokens: Sequence[Token], duration: float | None = None) -> Op[list[Answer]]:
        """Prolong leases; see `Verbs.renew`."""
        if not tokens:
            return []
        parameters = {"owner": owner, "duration_ms": None if duration is None else rows.duration_ms(duration)}
        pairs = sorted((token.job, token.generation) for token in tokens)
        renewed = yield from _one(Call("renew", parameters, _TOKEN, pairs))
        if len(renewed) == len(tokens):
            return []
        kept = {Token(*row) for row in renewed}
        missing = [token for token in tokens if token not in kept]
        met = yield from self._explain(missing)
        return [why_not_renewed(owner, token, met.get(token.job)) for token in missing]

    def settle(self, owner: str, endings: Sequence[Ending]) -> Op[list[Answer]]:
        """End runs; see `Verbs.settle`."""
        if not endings:
            return []
        ended = yield from _one(calls.settle(owner, endings))
        return (yield from self._answers(owner, endings, ended))

    def turn(
        self, claimer: Claimer, endings: Sequence[Ending], wanted: Sequence[Wanted], *, careful: bool = False
    ) -> Op[Turn]:
        """Settle and claim in one round trip; see `Verbs.turn`."""
        if careful and endings:
            return (yield from self._careful_turn(claimer, endings, wanted))
        asked = [calls.settle(claimer.owner, endings)] if endings else []
        asked += [calls.claim(claimer, want) for want in wanted]
        if not asked:
            return Turn([], [])
        replies = yield from ask(Batch(tuple(asked)))
        ended = replies.pop(0) if endings else []
        taken = [claimed for reply in replies for claimed in rows.claimed_in_order(reply)]
        answers = yield from self._answers(claimer.owner, endings, ended)
        return Turn(answers, taken)

    def _careful_turn(self, claimer: Claimer, endings: Sequence[Ending], wanted: Sequence[Wanted]) -> Op[Turn]:
        tokens = [(end.token.job, end.token.generation) for end in endings]
        jobs = sorted({(job,) for job, _ in tokens})
        free, met = yield from ask(
            Batch((Call("free", {"owner": claimer.owner}, _TOKEN, tokens), Call("explain", {}, ("job",), jobs)))
        )
        unlocked = {Token(*row) for row in free}
        held = {Token(row[0], row[2]): row for row in met if row[3] == claimer.owner}
        locked = {token: row for token, row in held.items() if token not in unlocked}
        turn = yield from self.turn(claimer, [end for end in endings if end.token not in locked], wanted)
        answers = iter(turn.answers)
        told = [
            met_by(end.token, Verdict.BUSY, locked[end.token]) if end.token in locked else next(answers)
            for end in endings
        ]
        return Turn(told, turn.claimed)

    def outlook(self, queues: Sequence[str]) -> Op[Outlook]:
        """Tell what is claimable, and when more will be; see `Verbs.outlook`."""
        (found,) = yield from _one(Call("outlook", {"queues": tuple(queues)}))
        return rows.outlook(found)

    def progress(self, owner: str, token: Token, value: str) -> Op[Answer]:
        """Store a progress value; see `Verbs.progress`."""
        parameters = {"job": token.job, "generation": token.generation, "owner": owner, "value": value}
        if (yield from _one(Call("progress", parameters))):
            return Answer(token, Verdict.DONE)
        return (yield from self._refused(owner, token, Verb.PROGRESS))

    def recall_step(self, job: str, step: str) -> Op[str | None]:
        """Look up a named effect; see `Verbs.recall_step`."""
        found = yield from _one(Call("recall_step", {"job": job, "step": step}))
        return found[0][0] if found else None

    def record_step(self, owner: str, token: Token, step: str, result: str) -> Op[Answer]:
        """Remember a named effect; see `Verbs.record_step`."""
        parameters = {"job": token.job, "generation": token.generation, "owner": owner, "step": step, "result": result}
        if (yield from _one(Call("record_step", parameters))):
            return Answer(token, Verdict.DONE)
        met = yield from self._explain([token])
        first = yield from self.recall_step(token.job, step)
        if first is not None and owns(owner, token, met.get(token.job)):
            return Answer(token, Verdict.ALREADY, result=first)
        return (yield from self._refused(owner, token, Verb.STEP))

    def guard(self, owner: str, token: Token) -> Op[Answer]:
        """Lock a job for the caller's transaction; see `Verbs.guard`."""
        parameters = {"job": token.job, "generation": token.generation, "owner": owner}
        if (yield from _one(Call("guard", parameters))):
            return Answer(token, Verdict.DONE)
        met = yield from self._explain([token])
        return met_by(token, Verdict.STALE, met.get(token.job))

    def held(self, owner: str) -> Op[list[Token]]:
        """List what an owner holds; see `Verbs.held`."""
        return [Token(*row) for row in (yield from _one(Call("held", {"owner": owner})))]

    # -- operators

    def get(self, job: str) -> Op[JobRecord]:
        """Show one job; see `Verbs.get`."""
        found = yield from _one(Call("get", {"job": job}))
        if not found:
            raise NotFound(job)
        return rows.record(found[0])

    def history(self, job: str) -> Op[list[HistoryEntry]]:
        """Tell the abnormal turns of a job's life; see `Verbs.history`."""
        return [rows.history_entry(row) for row in (yield from _one(Call("history", {"job": job})))]

    def find(
        self, which: Filter, *, limit: int, after: str | None = None, newest_first: bool = True
    ) -> Op[list[JobRecord]]:
        """List jobs; see `Verbs.find`."""
        parameters = {
            "ids": which.ids,
            "queue": which.queue,
            "task": which.task,
            "state": None if which.state is None else str(which.state),
            "limit": limit,
            "after": after,
        }
        found = yield from _one(Call("find_newest" if newest_first else "find_oldest", parameters))
        return [rows.record(row) for row in found]

    def operate(self, verb: Verb, jobs: Sequence[str], reason: str | None = None) -> Op[list[Moved]]:
        """Move jobs from outside; see `Verbs.operate`."""
        moves = operation(verb)
        ids = [(id_,) for id_ in sorted(set(jobs))]
        parameters = {
            "verb": str(verb),
            "target": str(moves[0].target),
            "restarts": moves[0].restarts,
            "sources": tuple(sorted(str(move.source) for move in moves)),
            "reason": reason,
        }
        met, moved = yield from ask(
            Batch((Call("explain", {}, ("job",), ids), Call("operate", parameters, ("job",), ids)))
        )
        states = {row[0]: State(row[1]) for row in met}
        done = {id_ for (id_,) in moved}
        return [Moved(id_, id_ in done, states.get(id_)) for id_ in jobs]

    def prune(self, before: float, *, limit: int, after: str | None = None) -> Op[Pruned]:
        """Remove finished jobs in one small step; see `Verbs.prune`."""
        seen = yield from _one(Call("prune_look", {"after": after or "", "limit": limit}))
        if not seen:
            return Pruned(0, None)
        span = {"after": after or "", "upto": seen[-1][0], "before_ms": rows.duration_ms(before)}
        gone = yield from _one(Call("prune", span))
        return Pruned(len(gone), seen[-1][0] if len(seen) == limit else None)

    def queues(self) -> Op[list[QueueCounts]]:
        """Count live jobs; see `Verbs.queues`."""
        return [rows.queue_counts(row) for row in (yield from _one(Call("queues")))]

    # -- workers, and the store itself

    def report(self, worker: WorkerRecord) -> Op[list[Foremost]]:
        """Tell that a worker lives; see `Verbs.report`."""
        parameters = {
            "owner": worker.owner,
            "name": worker.name,
            "host": worker.host,
            "pid": worker.pid,
            "queues": rows.write_names(worker.queues),
            "slots": worker.slots,
        }
        calls = (Call("report", parameters), Call("foremost", {"queues": worker.queues}))
        return [rows.foremost(row) for row in (yield from ask(Batch(calls)))[1]]

    def forget(self, owner: str) -> Op[None]:
        """Remove a worker that has stopped, and any unheard of for a day; see `Verbs.forget`."""
        yield from _one(Call("forget", {"owner": owner, "silent_ms": _SILENT_MS}))

    def workers(self) -> Op[list[WorkerRecord]]:
        """List workers; see `Verbs.workers`."""
        return [rows.worker_record(row) for row in (yield from _one(Call("workers")))]

    def admit(self) -> Op[Admission]:
        """Compare identities and raise the floor if they differ; see `Verbs.admit`."""
        ((before, same),) = yield from _one(Call("admit"))
        if same:
            return Admission(before, raised=False, before=before)
        changed = yield from _one(Call("raise_floor", {"force": False, "step": FLOOR_STEP}))
        return floor.moved(self._name, before, changed[0][0] if changed else before, floor.COPIED)

    def lift_floor(self, generation: int) -> Op[Admission]:
        """Raise the floor to what a destination has met; see `Verbs.lift_floor`."""
        calls = (Call("admit"), Call("lift_floor", {"generation": generation}), Call("admit"))
        (((before, _),), lifted, ((after, _),)) = yield from ask(Batch(calls))
        return floor.moved(self._name, before if lifted else after, after, floor.LIFTED)

    def recover(self) -> Op[Admission]:
        """Raise the floor by hand; see `Verbs.recover`."""
        calls = (Call("admit"), Call("raise_floor", {"force": True, "step": FLOOR_STEP}))
        (((before, _),), ((after,),)) = yield from ask(Batch(calls))
        return floor.moved(self._name, before, after, floor.RECOVERED)

    # -- why was I refused?

    def _explain(self, tokens: Sequence[Token]) -> Op[dict[str, Row]]:
        found = yield from _one(Call("explain", {}, ("job",), sorted((token.job,) for token in tokens)))
        return {row[0]: row for row in found}

    def _answers(self, owner: str, endings: Sequence[Ending], ended: list[Row]) -> Op[list[Answer]]:
        if len(ended) == len(endings):
            return [Answer(end.token, Verdict.DONE) for end in endings]
        done = {Token(*row) for row in ended}
        missing = _not_done(endings, done)
        met = yield from self._explain([end.token for end in missing])
        refused = {id(end): why_not_settled(end, met.get(end.token.job)) for end in missing}
        stale = [
            (end.token.job, end.token.generation, f"stale {end.verb} refused")
            for end in missing
            if refused[id(end)].verdict is Verdict.STALE and end.token.job in met
        ]
        if stale:
            yield from _one(Call("note_refused", {"owner": owner}, ("job", "generation", "event"), stale))
        return [refused.get(id(end)) or Answer(end.token, Verdict.DONE) for end in endings]

    def _refused(self, owner: str, token: Token, verb: Verb) -> Op[Answer]:
        met = yield from self._explain([token])
        if token.job in met:
            noted = [(token.job, token.generation, f"stale {verb} refused")]
            yield from _one(Call("note_refused", {"owner": owner}, ("job", "generation", "event"), noted))
        return met_by(token, Verdict.STALE, met.get(token.job))


def _first_made(answers: list[Enqueued]) -> list[Enqueued]:
    """Say of an id that came twice in one call that only its first mention made the job."""
    seen: set[str] = set()
    told = []
    for answer in answers:
        told.append(Enqueued(answer.id, created=False) if answer.id in seen else answer)
        seen.add(answer.id)
    return told


def _not_done(endings: Sequence[Ending], done: set[Token]) -> list[Ending]:
    """List the endings that no row answered; of several under one token only the first can have been done."""
    left = set(done)
    missing = []
    for end in endings:
        if end.token in left:
            left.discard(end.token)
        else:
            missing.append(end)
    return missing


def _one(call: Call) -> Op[list[Row]]:
    (answer,) = yield from ask(Batch((call,)))
    return answer
