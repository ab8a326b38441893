"""`Pace`: how many jobs one turn may move, so that its answer comes while it is of use.

The belief in a claim counts from before it was sent (R13). A claim of many big jobs may be answered when that is over:
then all of them are given back, or taken over, to be claimed as many at a time again, for ever. What a job costs cannot
be asked beforehand; it is measured. Where a turn took too long, the next one moves as many as would have been in time,
at most half as many as before, down to one. Where a turn was filled and still quick, the next one may move twice as
many. So it begins with few, since nothing has been measured yet.
"""

from __future__ import annotations

import math

FIRST = 16
"""Jobs that the first turn may move: with small ones, the bound is out of the way five turns later."""

MOST = 1000
"""Jobs that a turn may move however quick it is."""

PART = 0.25
"""Of the shortest lease in it, that a turn may take: the turn itself, the third of a lease until the next renewal, and
one more turn that this renewal waits for are all over before the belief is."""


_RECOVERED = 8  # times the limit that was told last: to fall below that again is news


class Pace:
    """Bound the jobs of one turn, those to settle and those to claim for one lane, each by `limit`.

    `request_limit` is how many seconds a request may take; a turn is to take half of that at most.
    """

    def __init__(self, request_limit: float = math.inf) -> None:
        self.limit = FIRST
        self._longest = request_limit / 2
        self._told = MOST + 1

    def allowed(self, lease: float = math.inf) -> float:
        """Tell how many seconds a turn may take in which `lease` is the shortest lease."""
        part = PART * lease
        return part if part < self._longest else self._longest

    def answered(self, moved: int, took: float, allowed: float) -> bool:
        """Learn from a turn that moved `moved` jobs in `took` seconds; True for a fall of the limit to be told."""
        if moved and took > allowed:
            return self._fall(min(self.limit // 2, int(moved * allowed / took)))
        if moved >= self.limit and took <= allowed / 2:
            self._rise(self.limit * 2)
        return False

    def unanswered(self, took: float) -> bool:
        """Learn from a turn that failed after `took` seconds; True for a fall of the limit to be told.

        What fails at once says nothing about the jobs.
        """
        return took > self._longest and self._fall(self.limit // 4)

    def _fall(self, limit: int) -> bool:
        self.limit = max(1, limit)
        is_news = self.limit < self._told
        self._told = min(self._told, self.limit)
        return is_news

    def _rise(self, limit: int) -> None:
        self.limit = min(MOST, limit)
        if self.limit >= min(MOST, _RECOVERED * self._told):
            self._told = MOST + 1
