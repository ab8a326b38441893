"""The evidence that the invariants look at: a history sorted by job and by scope, each answer with its place in time.

A call took effect somewhere between `sent` and `answered`; one whose answer was lost, at any time after it was sent, or
never. One call surely precedes another when it was answered before the other was sent. The invariants complain only of
what contradicts them in every order that these bounds allow, so what they find is never bad luck with the clock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from math import inf
from operator import attrgetter
from typing import Any, Generic, TypeVar, overload

from msgspec import Struct, field

from tenure.proof.history import Applied, Call, Entry, History, Outcome, Row
from tenure.proof.judge.words import Words
from tenure.proof.needs import ENDINGS, FENCED, RENEWALS

T = TypeVar("T")

Place = tuple[str, str]
"""A destination and one of its scopes."""

Right = tuple[str, int | None]
"""What was done under which generation."""


def right_of(entry: Entry) -> int | None:
    """Return the generation whose right a turn of a job's life used, ended or refused."""
    return entry.generation if entry.right is None else entry.right


class kept(Generic[T]):  # noqa: N801 -- it is used as a decorator
    """A property that is computed once; without a lock, like that of functools from Python 3.12 on."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> kept[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object, owner: type) -> T | kept[T]:
        """Compute the value, which from now on is found before this is asked."""
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


sent = attrgetter("sent")
"""Return the moment at which a call was sent."""


def latest(call: Call) -> float:
    """Return the last moment at which the call can have taken effect; endless where its answer was lost."""
    return inf if call.answered is None or call.outcome == "unknown" else call.answered


def precedes(one: Call, other: Call) -> bool:
    """Say whether one call surely took effect before the other."""
    return latest(one) < other.sent


def highest_so_far(calls: Iterable[Call], key: Callable[[Call], float]) -> list[Call]:
    """Return for each place the call with the highest `key` up to there."""
    best: list[Call] = []
    highest, height = None, -inf
    for call in calls:
        reached = key(call)
        if highest is None or reached > height:
            highest, height = call, reached
        best.append(highest)
    return best


class Spans:
    """Calls as spans of time, to be asked whether one of them lies between two moments."""

    def __init__(self, calls: Iterable[Call]) -> None:
        by_sent = sorted(calls, key=sent)
        by_latest = sorted(by_sent, key=latest)
        self._sents = [call.sent for call in by_sent]
        self._latests = [latest(call) for call in by_latest]
        self._latest_so_far = highest_so_far(by_sent, latest)
        self._last_sent_so_far = highest_so_far(by_latest, sent)

    def maybe(self, after: float, before: float) -> Call | None:
        """Find a call that may have taken effect between two moments."""
        place = bisect_right(self._sents, before)
        found = self._latest_so_far[place - 1] if place else None
        return found if found is not None and latest(found) >= after else None

    def surely(self, after: float, before: float) -> Call | None:
        """Find a call that can only have taken effect between two moments."""
        place = bisect_left(self._latests, before)
        found = self._last_sent_so_far[place - 1] if place else None
        return found if found is not None and found.sent > after else None


_NO_SPANS = Spans(())


class Case(Struct, dict=True, eq=False):
    """All that is known of one job; `settle` decides what became of calls whose answer was lost."""

    job: str
    row: Row | None = None
    entries: list[Entry] = field(default_factory=list)
    claims: list[Call] = field(default_factory=list)  # granted
    writes: list[Call] = field(default_factory=list)  # an owner's, accepted
    repeats: list[Call] = field(default_factory=list)  # answered: it stands there already
    refusals: list[Call] = field(default_factory=list)  # answered: stale
    failed: list[Call] = field(default_factory=list)  # answered: nothing was done
    unknown: list[Call] = field(default_factory=list)  # an owner's, never answered
    open: list[Call] = field(default_factory=list)  # those of them that may have happened or not
    moves: list[Call] = field(default_factory=list)  # an operator's, done or never answered
    effects: list[Call] = field(default_factory=list)  # which passed the gate
    swept: bool = False  # whether old jobs were pruned without naming them

    @property
    def is_gone(self) -> bool:
        """Whether the job was not in the store any more at the end."""
        return self.row is not None and self.row.state is None

    @kept
    def pruned(self) -> bool:
        """Whether the job may have been removed; and if it was named, have come back as another with its id."""
        named = "prune" in [move.call for move in self.moves] or "prune" in [one.event for one in self.entries]
        return named or (self.swept and (self.row is None or self.is_gone))

    @kept
    def claims_as_sent(self) -> list[Call]:
        """List the claims in the order of sending."""
        return sorted(self.claims, key=sent)

    @kept
    def by_generation(self) -> list[Call]:
        """List the claims in the order of their generations."""
        return sorted(self.claims, key=_generation)

    @kept
    def _generations(self) -> list[int]:
        return [_generation(claim) for claim in self.by_generation]

    @kept
    def _first_claims(self) -> dict[int, Call]:
        return {_generation(claim): claim for claim in reversed(self.by_generation)}

    def claim_of(self, generation: int | None) -> Call | None:
        """Find the claim that was given a generation."""
        return None if generation is None else self._first_claims.get(generation)

    def before(self, claim: Call) -> Call | None:
        """Find the claim with the highest generation below that of `claim`."""
        place = bisect_left(self._generations, _generation(claim))
        return self.by_generation[place - 1] if place else None

    @kept
    def _earliest_above(self) -> list[Call]:
        """For each place in `by_generation`, the claim from there on that was sent first."""
        return highest_so_far(reversed(self.by_generation), lambda claim: -claim.sent)[::-1]

    @kept
    def _soonest_above(self) -> list[Call]:
        """For each place in `by_generation`, the claim from there on that was surely granted first."""
        return highest_so_far(reversed(self.by_generation), lambda claim: -latest(claim))[::-1]

    def first_sent_above(self, generation: int) -> Call | None:
        """Find, of the claims with a higher generation, the one that was sent first."""
        place = bisect_right(self._generations, generation)
        return self._earliest_above[place] if place < len(self._generations) else None

    def first_granted_above(self, generation: int) -> Call | None:
        """Find, of the claims with a higher generation, the one whose answer came first."""
        place = bisect_right(self._generations, generation)
        return self._soonest_above[place] if place < len(self._generations) else None

    @kept
    def spans(self) -> Spans:
        """Give the moves of operators that were surely made, as spans of time."""
        return Spans(move for move in self.moves if move.outcome == "ok") if self.moves else _NO_SPANS

    @kept
    def maybe_spans(self) -> Spans:
        """Give the moves of operators that may have ended a right to this job, or tell that none was left."""
        return Spans(self.moves) if self.moves else _NO_SPANS

    @kept
    def completions(self) -> list[Call]:
        """List the completions that were acknowledged, in the order of their generations."""
        done = [write for write in self.writes if write.call == "complete" and write.outcome == "ok"]
        return sorted(done, key=_generation)

    def completion_from(self, generation: int) -> Call | None:
        """Find the first completion under this generation or a higher one."""
        place = bisect_left(self.completions, generation, key=_generation)
        return self.completions[place] if place < len(self.completions) else None

    @kept
    def asked(self) -> dict[Right, list[Call]]:
        """Sort what owners asked and were not refused, by call and generation."""
        asked: dict[Right, list[Call]] = {}
        for call in (*self.writes, *self.repeats, *self.unknown):
            asked.setdefault((call.call, call.generation), []).append(call)
        return asked

    @kept
    def told(self) -> dict[Right, list[Entry]]:
        """Sort what the store's history tells, by event and the right that was used for it."""
        told: dict[Right, list[Entry]] = {}
        for entry in self.entries:
            told.setdefault((entry.event, right_of(entry)), []).append(entry)
        return told

    @kept
    def ends(self) -> dict[int, list[Call]]:
        """Sort the accepted ends of runs by their generation, the first answered one first."""
        ends = defaultdict(list)
        for write in sorted(self.writes, key=latest):
            if write.call in ENDINGS:
                ends[_generation(write)].append(write)
        return ends

    @kept
    def maybe_ends(self) -> dict[int, Call]:
        """For each generation, the first sent of the ends of its run that may have been accepted."""
        first: dict[int, Call] = {}
        for write in sorted([*self.writes, *self.repeats, *self.open], key=sent):
            if write.call in ENDINGS:
                first.setdefault(_generation(write), write)
        return first

    @kept
    def ended_generations(self) -> list[int]:
        """List the generations whose run may have been ended, rising."""
        return sorted(self.maybe_ends)

    @kept
    def grants(self) -> dict[int, list[Call]]:
        """Sort what gave each generation a lease: its claim and its renewals, in the order of sending."""
        grants = defaultdict(list)
        for call in sorted([*self.claims, *self.writes], key=sent):
            if call.lease is not None and (call.call == "claim" or call.call in RENEWALS):
                grants[_generation(call)].append(call)
        return grants


_PILES: dict[Outcome, str] = {
    "ok": "writes",
    "already": "repeats",
    "stale": "refusals",
    "fail": "failed",
    "unknown": "unknown",
}
"""Where a case keeps what was asked under a token, by what was answered."""


_APART: dict[str, str] = {"claim": "claims", "effect": "effects"}
"""Where it keeps what is not asked under a token, unless nothing was done."""


class _Cases(dict[str, Case]):
    """Cases by their jobs; one that is not there yet is made."""

    def __missing__(self, job: str) -> Case:
        case = self[job] = Case(job)
        return case


class Evidence:
    """A whole run, sorted; `lost_claims` are claims without an answer, by their owner."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.meta = history.meta
        self.words = Words(history.origin)
        self.cases = _Cases()
        self.lost_claims: dict[str, list[Call]] = defaultdict(list)
        self.fenced: list[Call] = []
        self.logs: dict[Place, list[Applied]] = defaultdict(list)
        swept = False
        for call in history.calls:
            if call.call == "prune" and call.job is None and call.outcome != "fail":
                swept = True
            self._sort(call)
        for entry in history.entries:
            self.cases[entry.job].entries.append(entry)
        for row in history.rows:
            self.cases[row.job].row = row
        for line in history.applied:
            self.logs[line.destination, line.scope].append(line)
        for case in self.cases.values():
            case.swept = swept
        self.judged: Iterable[Case] = self.cases.values()  # what the invariants go through

    @kept
    def first_lost_claim(self) -> float:
        """Find the first moment at which a claim may have been granted of which nobody was told."""
        return min((claim.sent for claims in self.lost_claims.values() for claim in claims), default=inf)

    @kept
    def first_calm(self) -> float:
        """Find the first moment from which on nothing was disturbed any more."""
        return min([calm.at for calm in self.history.calms], default=inf)

    @kept
    def logged(self) -> frozenset[str]:
        """Name the destinations whose log is told."""
        return frozenset(destination for destination, _ in self.logs)

    @kept
    def must_log(self) -> frozenset[str]:
        """Name the destinations whose log has to tell what they accepted: that of the run too, if it tells nothing."""
        return self.logged | ({self.meta.destination} if self.meta.destination else frozenset())

    def _sort(self, call: Call) -> None:
        if call.call in FENCED:
            self.fenced.append(call)
        elif call.call == "claim" and call.outcome == "unknown":
            self.lost_claims[str(call.owner)].append(call)
        elif call.job is not None:
            pile: list[Call] = getattr(self.cases[call.job], _pile(call))
            pile.append(call)


def _pile(call: Call) -> str:
    """Name the pile of its case on which a call belongs."""
    if call.outcome == "fail":
        return "failed"
    if call.call in _APART:
        return _APART[call.call]
    return "moves" if call.owner is None else _PILES[call.outcome]


def _generation(call: Call) -> int:
    return call.generation or 0
