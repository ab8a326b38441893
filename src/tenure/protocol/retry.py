"""When a failed attempt is tried again: a pure rule of the attempt's number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tenure.errors import BadSettings

LONGEST_DELAY = 100 * 366 * 86_400.0
"""The longest delay in seconds: what is longer is a mistake of units."""


def check_delay(what: str, seconds: Any) -> float:
    """Return `seconds` if a job can wait so long; raise BadSettings naming `what` otherwise."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or math.isnan(seconds) or not 0 <= seconds <= LONGEST_DELAY:
        raise BadSettings(f"{what} is {seconds!r}: a number of seconds from 0 to {LONGEST_DELAY:.0f}")
    return float(seconds)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Wait longer after each failed attempt: `first` seconds, then `factor` times the last, at most `most`.

    `jitter` is the part of each wait that is drawn by chance, so that jobs that failed together do not return together.
    """

    first: float = 5.0
    factor: float = 3.0
    most: float = 3600.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        """Refuse numbers that make no back-off."""
        for what in ("first", "most"):
            check_delay(f"the back-off's {what}", getattr(self, what))
        if not (0.0 <= self.first <= self.most and self.factor >= 1.0 and 0.0 <= self.jitter <= 1.0):
            raise BadSettings(
                f"back-off first={self.first:g}, factor={self.factor:g}, most={self.most:g}, jitter={self.jitter:g}:"
                " needs 0 <= first <= most, factor >= 1 and jitter from 0 to 1"
            )

    def delay(self, failures: int, chance: float) -> float:
        """Compute the seconds to wait after the `failures`-th failed attempt; `chance` is drawn from [0, 1)."""
        exponent = min(failures - 1, 64)
        whole = min(self.most, self.first * self.factor**exponent)
        return whole * (1.0 - self.jitter * chance)
