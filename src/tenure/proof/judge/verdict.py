"""What a judge says: for each invariant how often it was checked, and what broke it, in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from tenure.proof.history import Line


class Verdict(StrEnum):
    """What became of one invariant in one run."""

    KEPT = "kept"
    BROKEN = "broken"
    MUST_FAIL = "broken, as it must be"
    IDLE = "not broken, as it must be"
    UNASSERTED = "not asserted"


_BAD = {Verdict.BROKEN, Verdict.IDLE}


@dataclass(frozen=True, slots=True)
class Violation:
    """One contradiction: a sentence for people, and the places of the lines on which it rests."""

    sentence: str
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Tell the sentence with its lines."""
        return f"{self.sentence} ({', '.join(self.lines)})" if self.lines else self.sentence


Check = Violation | None
"""One check of an invariant: what broke it, or None where it was kept."""


class Result(Struct, frozen=True):
    """What became of one invariant: the promise in words, and why it was not asserted where it was not."""

    invariant: str
    promise: str
    verdict: Verdict
    checked: int
    violations: tuple[Violation, ...] = ()
    because: str | None = None

    @property
    def good(self) -> bool:
        """Whether nothing speaks against the run here."""
        return self.verdict not in _BAD


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a whole run."""

    good: bool
    results: tuple[Result, ...]
    counts: dict[str, int]
    notes: tuple[str, ...]

    def __getitem__(self, invariant: str) -> Result:
        """Look up one invariant by its number, such as ``I9``."""
        return next(result for result in self.results if result.invariant == invariant)

    @property
    def violations(self) -> list[str]:
        """List everything that speaks against the run, each with the number of its invariant."""
        idle = [f"{one.invariant}: {one.because}" for one in self.results if one.verdict is Verdict.IDLE]
        broken = (one for one in self.results if one.verdict is Verdict.BROKEN)
        return idle + [f"{one.invariant}: {violation}" for one in broken for violation in one.violations]


def broken(sentence: str, *lines: Line | None) -> Violation:
    """Make a violation that rests on `lines`; lines without a place are not named."""
    places = dict.fromkeys(line.place for line in lines if line is not None and line.place)
    return Violation(sentence, tuple(places))
