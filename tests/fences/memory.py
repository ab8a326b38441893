"""The rule carried out in this process's memory: what shows that the suite can be passed, and that it can fail."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tenure import Token
from tenure.fences.rule import Bid, Mark, announcement, check_reason, judge, writing
from tenure.testing.fences import Destination


@dataclass
class MemoryDestination:
    """Values and marks in dictionaries, behind one lock."""

    values: dict[str, str] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def raise_to(self, token: Token, scope: str) -> None:
        with self.lock:
            self._pass(announcement(token, scope))

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        with self.lock:
            self._pass(writing(token, scope, sequence))
            self.values[scope] = value

    def _pass(self, bid: Bid) -> None:
        self.marks[bid.scope] = judge(self.marks.get(bid.scope), bid)

    def write_unfenced(self, scope: str, value: str) -> None:
        self.values[scope] = value

    def read(self, scope: str) -> str | None:
        return self.values.get(scope)

    def delete(self, scope: str) -> None:
        self.values.pop(scope, None)

    def reset(self, scope: str, reason: str) -> None:
        check_reason(reason)
        with self.lock:
            self.marks.pop(scope, None)
            self.reasons.setdefault(scope, []).append(reason)

    def resets(self, scope: str) -> list[str]:
        return self.reasons.get(scope, [])

    @contextmanager
    def again(self) -> Iterator[Destination]:
        yield self
