"""What the play asks of a destination: a place where it is kept, and the page there as a worker reaches it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from tenure.demo.children import PATIENCE, Cast
from tenure.demo.task import PAGE
from tenure.errors import StaleToken
from tenure.protocol.lease import Effect, Token

HOST = "127.0.0.1"
TIMEOUT = 2 * PATIENCE
"""Seconds that a client waits for an answer: longer than anything in the play may take."""

Sent = Callable[[], None]
"""Called when a write has left its process; where there is no network, right before the step that makes it."""


def unheard() -> None:
    """Be what is called where nobody has to hear of it."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What a destination is set up with: who starts its processes, a folder, and the store of the play."""

    cast: Cast
    folder: Path
    store: str
    fence: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where a destination is: its address, with a ``port`` where there is a network before it; and how it is called."""

    address: dict[str, str]
    described: str

    @property
    def port(self) -> int | None:
        """The port on which a server listens, None where there is no network."""
        return int(self.address["port"]) if "port" in self.address else None


class Way(msgspec.Struct, frozen=True):
    """A way to a page, as a process is told of it: on its standard input, since there are passwords in it.

    Writes go to the port `slow` if there is one, where a proxy may hold them back; everything else goes straight.
    """

    destination: str
    address: dict[str, str]
    fence: bool
    slow: int | None = None
    page: str = PAGE

    @property
    def port(self) -> int:
        """The port to which writes go."""
        return int(self.address["port"]) if self.slow is None else self.slow


class Page(Protocol):
    """A page at a destination, through the client library that a job would use; the page is the fence's scope."""

    @property
    def answer(self) -> str:
        """What the destination itself said to the last write, such as a status; empty where it has no such words."""
        ...

    def raise_to(self, token: Token) -> None:
        """Announce a new owner; raises StaleToken. Does nothing without a fence."""
        ...

    def read(self) -> str:
        """Read it; empty where it was never written."""
        ...

    def write(self, token: Effect, text: str) -> None:
        """Write it under a token; raises StaleToken. Without a fence the token is of no use."""
        ...


class Destination(Protocol):
    """A kind of destination: a module of this package."""

    def place(self, stage: Stage) -> AbstractContextManager[Place]:
        """Set it up for the length of a block."""
        ...

    def page(self, way: Way, sent: Sent) -> AbstractContextManager[Page]:
        """Open a page there."""
        ...


def refusal(page: Page, stale: StaleToken) -> str:
    """Say in the destination's own words, as far as it has any, why it refused the last write."""
    return ": ".join(filter(None, (page.answer, f"generation {stale.current} has been here")))
