"""The lease as its holder sees it: a window of trust that only ever ends early.

A lease is an end that the *store* stamped, by the store's clock. Its holder cannot read that clock, so it believes for
a shorter time, counted by its own: from the moment *before* the request was sent, never from the answer (R13). The
store stamped the end after it received the request, so a belief that starts before sending ends before the store's
lease does, whatever the network did in between. The local clock may run a little slow against the store's (`DRIFT`),
and effects need a moment to reach their destination (the margin); both are taken off.

Only durations cross the wire; a timestamp of the store is never compared with a local one (R15). The local clock counts
from boot, includes suspends and is never stepped (R14). Errors in one direction only cost availability: a holder
whose clock runs fast stops early. The other direction is what the fencing token is for: leases make work efficient,
the generation makes it correct.
"""

from __future__ import annotations

from msgspec import Struct

from tenure.errors import BadSettings

DRIFT = 0.002
"""The rate error between two hosts' clocks that belief allows for, as a fraction (a quartz clock keeps 0.0001)."""

MARGIN = 0.05
"""The part of a lease that is kept back for an effect on its way to its destination."""

SHORTEST = 1.0
"""The shortest lease in seconds that a task may ask for; below it ordinary scheduling delays look like lost leases."""

LONGEST = 86_400.0
"""The longest lease in seconds; longer work keeps a short lease by renewing it (R16)."""

BEATS = 3
"""Renewals per lease: two may fail before the third loses it (R17)."""


class Token(Struct, frozen=True, gc=False):
    """The fencing token: which job, and how many times its right has changed hands. Job code passes it on."""

    job: str
    generation: int

    def __str__(self) -> str:
        """Show the token as ``job:generation``."""
        return f"{self.job}:{self.generation}"


class Effect(Token, frozen=True, gc=False):
    """A token with the number of one write under it: what `effect()` yields and what a fence compares (R33)."""

    sequence: int = 1


def trusted_until(sent_at: float, duration: float) -> float:
    """Compute the end of a holder's belief on its own clock, in seconds (R13).

    `sent_at` is the holder's boot clock just before it sent the claim or renewal; `duration` is the lease in seconds.
    """
    return sent_at + duration * (1.0 - DRIFT - MARGIN)


def beat_interval(shortest: float) -> float:
    """Compute the seconds between two renewals for the shortest lease held (R17: at most a third of it)."""
    return shortest / BEATS


def check_duration(what: str, seconds: float) -> float:
    """Return `seconds` if it can be a lease; raise BadSettings naming `what` and the bounds otherwise (R16, R17)."""
    if not SHORTEST <= seconds <= LONGEST:
        raise BadSettings(f"{what} is {seconds:g} s: a lease lasts {SHORTEST:g} to {LONGEST:g} s")
    return float(seconds)


def check_keepable(what: str, lease: float, request_timeout: float) -> None:
    """Raise BadSettings when a lease cannot be kept by renewals that may take `request_timeout` seconds (R17).

    A renewal that is sent one beat after the last must be answered, or have failed, while there is still belief left.
    """
    left = lease * (1.0 - DRIFT - MARGIN) - beat_interval(lease)
    if request_timeout >= left:
        raise BadSettings(
            f"{what} has a lease of {lease:g} s, renewed every {beat_interval(lease):.3g} s, leaving {left:.3g} s for"
            f" one renewal; a request to the store may take {request_timeout:g} s. Use a lease of at least"
            f" {request_timeout / (1.0 - DRIFT - MARGIN - 1.0 / BEATS):.3g} s, or a shorter request timeout"
        )
