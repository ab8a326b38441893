"""`Destination`: what the suite asks of a fenced destination."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from tenure.protocol.lease import Token


class Destination(Protocol):
    """One value for each scope, written under a fence.

    What a fence refuses is raised as the fence raises it: StaleToken, OutOfSequence or BadToken.
    """

    def raise_to(self, token: Token, scope: str) -> None:
        """Announce the owner of `token` before it reads (R32)."""
        ...

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        """Pass the fence and make `value` the scope's value, in one atomic step (R31)."""
        ...

    def write_unfenced(self, scope: str, value: str) -> None:
        """Write around the fence, as a program without one would: the damage that the fence is there to prevent."""
        ...

    def read(self, scope: str) -> str | None:
        """Return the scope's value, None where there is none."""
        ...

    def delete(self, scope: str) -> None:
        """Remove the scope's value, as a clean-up would; its fence must stay (R35)."""
        ...

    def reset(self, scope: str, reason: str) -> None:
        """Put the scope's mark aside, as a person would after a bogus token (R38); Misuse without a reason in words."""
        ...

    def resets(self, scope: str) -> list[str]:
        """List the reasons of past resets, oldest first."""
        ...

    def again(self) -> AbstractContextManager[Destination]:
        """Open the same destination once more, through connections of its own, for one thread."""
        ...
