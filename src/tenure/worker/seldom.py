"""`Seldom`: how long to wait before a request is made again that may take long."""

from __future__ import annotations

from collections import deque

SHARE = 1 / 20
"""Of the time that such requests may take, up to `LONGEST` seconds between two of them."""

LONGEST = 10.0

_OF = 3


class Seldom:
    """Tell a pause after each of the requests; of the last three the quickest counts, so chance changes nothing."""

    def __init__(self) -> None:
        self._took = deque([0.0] * _OF, maxlen=_OF)

    def after(self, took: float) -> float:
        """Return the seconds until the next one, after one that took so many."""
        self._took.append(took)
        return min(LONGEST, min(self._took) / SHARE)
