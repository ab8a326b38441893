"""`Lane`: an executor's slots with the tasks that run in them and the queues that they serve."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tenure.protocol.job import Claimed, Head, Wanted
from tenure.worker.prefetch import Prefetch
from tenure.worker.seldom import Seldom

ANEW = 1.0
"""Seconds after which a claim begins at the very beginning of each line again."""

MOST_HEADS = 64
"""Lines of which it is known where they begin; with more of them, the others are read from their beginning."""


class Lane:
    """One executor's part of the claiming.

    `hungry` is whether a claim is likely to find something: it rang, or the last claim was filled to its limit.
    `behind` is whether jobs may be left whose lease has ended: the last look had no room for them, or not enough.

    Each claim goes on where the last one ended: in PostgreSQL, what was claimed stands in the way of the next claim for
    as long as the oldest transaction of the whole server lasts. What becomes due before that place, such as a job of a
    transaction that took long to commit, is found by a claim that begins at the very beginning: at once after a claim
    that was not filled, while claims are, every `ANEW` seconds, and where this takes long, seldom.
    """

    def __init__(self, prefetch: Prefetch, names: Iterable[str], queues: tuple[str, ...]) -> None:
        self.prefetch = prefetch
        self.names = frozenset(names)
        self.names_in_order = tuple(sorted(self.names))
        self.hungry = True
        self.behind = False
        self.queues = queues
        self._heads: dict[tuple[str, int], Head] = {}
        self._rung = False  # since the last claim that began at the very beginning
        self._filled = False  # the last claim
        self._may_begin_at = self._must_begin_at = 0.0  # at the very beginning
        self._seldom = Seldom()

    def next_queues(self) -> tuple[str, ...]:
        """Return the queues, each time beginning with another, so that equal priorities take turns (B20)."""
        self.queues = self.queues[1:] + self.queues[:1]
        return self.queues

    def ring(self) -> None:
        """Hear that there may be something to claim."""
        self.hungry = self._rung = True

    def patience(self, now: float) -> float:
        """Tell for how many seconds a claim is not worth while; infinitely many when nothing speaks for one."""
        if self.hungry or self.behind:
            return 0.0
        return max(0.0, self._may_begin_at - now) if self._rung else math.inf

    def want(self, room: int, now: float) -> Wanted:
        """Ask for up to `room` jobs, in the next claim."""
        anew = now >= (self._must_begin_at if self._filled else self._may_begin_at)
        heads = () if anew else tuple(self._heads.values())
        if not heads:
            self._rung = False
        wanted = Wanted(self.next_queues(), self.names_in_order, room, takeovers=self.behind, heads=heads)
        # Before asking: a ring that comes while the answer is under way still counts.
        self.hungry = self.behind = False
        return wanted

    def answered(self, wanted: Wanted, rows: Sequence[Claimed], now: float, took: float) -> None:
        """Learn from what a claim returned `now`, after `took` seconds."""
        if not wanted.heads:
            self._may_begin_at = now + self._seldom.after(took)
            self._must_begin_at = max(self._may_begin_at, now + ANEW)
        self._go_on_after(rows)
        self._filled = len(rows) >= wanted.limit
        if self._filled:
            self.hungry = True
            self.behind = self.behind or any(row.lost_generation is not None for row in rows)

    def _go_on_after(self, rows: Sequence[Claimed]) -> None:
        """Remember where these stood, in the order of their lines; the lines that were read last are kept."""
        for row in rows:
            if row.lost_generation is None:
                line = (row.queue, row.priority)
                self._heads.pop(line, None)
                self._heads[line] = Head(*line, row.run_at_ms)
        for line in list(self._heads)[:-MOST_HEADS]:
            del self._heads[line]

    def unanswered(self, wanted: Wanted) -> None:
        """Ask for the same again."""
        self.hungry, self.behind = True, wanted.takeovers
