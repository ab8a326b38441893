"""Destinations: one that follows the rule of fences, one that follows none, and a till that knows idempotency keys.

Each writes its log as the lines of a history, in its own order.
"""

from __future__ import annotations

from dataclasses import dataclass

from tenure.errors import TenureError
from tenure.fences import rule
from tenure.fences.rule import Bid, Mark
from tenure.proof.history import Act, Applied
from tenure.testing.simulation.network import Answer

VAULT = "vault"
TILL = "till"


@dataclass(slots=True)
class Kept:
    """What is kept of one scope: its version, and the mark of its fence."""

    version: int = 0
    mark: Mark | None = None


class Destination:
    """Remembers versions by scope, behind a fence when it is `fenced`; and the first answer to each idempotency key."""

    def __init__(self, *, fenced: bool) -> None:
        self.log: list[Applied] = []
        self.now = 0.0
        self._fenced = fenced
        self._scopes: dict[str, Kept] = {}
        self._keys: dict[str, int] = {}
        self._writes = 0

    def kept(self, scope: str) -> Kept:
        """Give what is kept of a scope."""
        return self._scopes.setdefault(scope, Kept())

    def announce(self, bid: Bid, at: float) -> Answer:
        """Raise the fence of a scope."""
        return self._pass(bid, at, "raise")

    def read(self, scope: str) -> Answer:
        """Tell the version of a scope."""
        return True, self.kept(scope).version

    def apply(self, bid: Bid, before: int, at: float) -> Answer:
        """Write a new version, computed from version `before`."""
        return self._pass(bid, at, "apply", before=before)

    def pay(self, key: str, bid: Bid, at: float) -> Answer:
        """Do what the key names, once; a repeat gets the first answer."""
        known = self._keys.get(key)
        act: Act = "repeat"
        if known is None:
            known, act = self._count(), "apply"
            self._keys[key] = known
        line = Applied(
            act=act,
            at=at,
            destination=TILL,
            job=bid.job,
            generation=bid.generation,
            scope=key,
            key=key,
            value=known,
        )
        self.log.append(line)
        return True, known

    def _pass(self, bid: Bid, at: float, act: Act, before: int | None = None) -> Answer:
        kept = self.kept(bid.scope)
        if self._fenced:
            try:
                kept.mark = rule.judge(kept.mark, bid)
            except TenureError as refusal:
                return False, refusal
        writes = before is not None
        if writes:
            kept.version = self._count()
        line = Applied(
            act=act,
            at=at,
            destination=VAULT,
            job=bid.job,
            generation=bid.generation,
            scope=bid.scope,
            sequence=bid.sequence if writes else None,
            before=before,
            after=kept.version if writes else None,
        )
        self.log.append(line)
        return True, kept.version

    def _count(self) -> int:
        self._writes += 1
        return self._writes
