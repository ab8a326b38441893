"""A small shop whose destination is a list: what the handlers of these tests have their effects on."""

from __future__ import annotations

from tenure.fences.rule import Mark, announcement, judge, writing
from tenure.protocol.lease import Token

# What `assert_no_effect_after_loss` calls two of the moments at which a lease is lost.
BEFORE, ON_ITS_WAY = "  before the handler began", "  while effect 1 was on its way"


class Bank:
    """A destination that compares nothing."""

    def __init__(self) -> None:
        self.charged: list[int] = []

    def charge(self, order: int) -> str:
        self.charged.append(order)
        return f"receipt for {order}"

    async def charge_async(self, order: int) -> str:
        return self.charge(order)


class Ledger:
    """A destination with a fence: it keeps the rule of all fences, for one scope a job."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, int]] = []
        self.marks: dict[str, Mark] = {}

    def raise_to(self, token: Token) -> None:
        bid = announcement(token)
        self.marks[bid.scope] = judge(self.marks.get(bid.scope), bid)

    def write(self, order: int, token: Token) -> None:
        bid = writing(token)
        self.marks[bid.scope] = judge(self.marks.get(bid.scope), bid)
        self.lines.append((order, token.generation))
