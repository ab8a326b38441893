"""What a proxy does to the bytes that it moves: how each direction fares on all its connections, and what it counts."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, Literal

Toward = Literal["server", "client"]

BOTH: Final[tuple[Toward, Toward]] = ("server", "client")


@dataclass(frozen=True)
class Counts:
    """What went through a proxy so far: connections, and bytes delivered (not those kept back or swallowed)."""

    accepted: int = 0
    unreachable: int = 0
    cut: int = 0
    replies_dropped: int = 0
    overtaken: int = 0
    bytes_to_server: int = 0
    bytes_to_client: int = 0


@dataclass
class Stream:
    """How the bytes of one direction fare, on all connections; `allowance` is how many may pass before the cut."""

    delay: float = 0.0
    allowance: int | None = None
    flowing: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.flowing.set()

    def take(self, data: bytes) -> tuple[bytes, bool]:
        """Return what may pass of the data, charged to the allowance, and whether that was the last of it."""
        if self.allowance is None:
            return data, False
        passing = data[: self.allowance]
        self.allowance -= len(passing)
        if self.allowance:
            return passing, False
        self.allowance = None
        return passing, True


@dataclass(eq=False)
class Overtaken:
    """A piece on its way to the server, kept back until so many others have passed it."""

    others: int
    within: float
    passed: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> int:
        """Wait for the others, and tell how many came."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.over.wait(), self.within)
        return self.passed


@dataclass
class Faults:
    """What the controls set and the connections obey."""

    toward: dict[Toward, Stream] = field(default_factory=lambda: {toward: Stream() for toward in BOTH})
    drop_next_reply: bool = False
    overtake_next: Overtaken | None = None
    kept_back: set[Overtaken] = field(default_factory=set)
    counts: Counts = field(default_factory=Counts)

    def set_delay(self, seconds: float, toward: Toward | None) -> None:
        """Deliver so much later, in one direction or in both."""
        for stream in self._streams(toward):
            stream.delay = seconds

    def set_flowing(self, toward: Toward | None, *, flowing: bool) -> None:
        """Hold what is delivered in one direction or in both, or let it flow again."""
        for stream in self._streams(toward):
            if flowing:
                stream.flowing.set()
            else:
                stream.flowing.clear()
        if flowing and toward != "client":
            self.let_go()

    def set_allowance(self, count: int, toward: Toward) -> None:
        """Let so many bytes pass, and then cut."""
        self.toward[toward].allowance = count

    def arm_drop_reply(self) -> None:
        """Choose the next request as the one whose reply is dropped."""
        self.drop_next_reply = True

    def drop_reply_of_this(self) -> bool:
        """Tell whether the request under way is the one whose reply is to be dropped, and disarm."""
        armed, self.drop_next_reply = self.drop_next_reply, False
        return armed

    def arm_overtaking(self, others: int, within: float) -> None:
        """Choose the next request as the one to be overtaken."""
        self.overtake_next = Overtaken(others, within)

    async def keep_back_if_chosen(self) -> None:
        """Hold the piece under way until others have overtaken it, if it is the one that was chosen, and disarm."""
        chosen, self.overtake_next = self.overtake_next, None
        if chosen is None:
            return
        self.kept_back.add(chosen)
        try:
            self.count(overtaken=await chosen.wait())
        finally:
            self.kept_back.discard(chosen)

    def passed_others(self) -> None:
        """Count for those that are kept back that one has reached the server before them."""
        for piece in self.kept_back:
            piece.passed += 1
            if piece.passed == piece.others:
                piece.over.set()

    def let_go(self) -> None:
        """Keep nothing back any more."""
        self.overtake_next = None
        for piece in self.kept_back:
            piece.over.set()

    def behave(self) -> None:
        """Forget everything that was set."""
        self.drop_next_reply = False
        for stream in self.toward.values():
            stream.delay, stream.allowance = 0.0, None
        self.set_flowing(None, flowing=True)

    def _streams(self, toward: Toward | None) -> list[Stream]:
        return [self.toward[each] for each in (BOTH if toward is None else (toward,))]

    def count(self, **more: int) -> None:
        """Add to the counts."""
        self.counts = replace(self.counts, **{name: getattr(self.counts, name) + more[name] for name in more})
