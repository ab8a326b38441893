"""`Lane`: an executor's slots with the tasks that run in them and the queues that they serve."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.worker.prefetch import Prefetch


class Lane:
    """One executor's part of the claiming.

    `hungry` is whether a claim is likely to find something: it rang, or the last claim was filled to its limit.
    `behind` is whether jobs may be left whose lease has ended: the last look had no room for them, or not enough.
    """

    def __init__(self, prefetch: Prefetch, names: Iterable[str], queues: tuple[str, ...]) -> None:
        self.prefetch = prefetch
        self.names = frozenset(names)
        self.names_in_order = tuple(sorted(self.names))
        self.hungry = True
        self.behind = False
        self.queues = queues

    def next_queues(self) -> tuple[str, ...]:
        """Return the queues, each time beginning with another, so that equal priorities take turns (B20)."""
        self.queues = self.queues[1:] + self.queues[:1]
        return self.queues
