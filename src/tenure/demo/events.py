"""What the play tells: events as they happen, and the summary at the end."""

from __future__ import annotations

import msgspec


class Event(msgspec.Struct, frozen=True):
    """One thing that happened: who, under which generation, tried what, and who answered what, `at` seconds in."""

    event: str
    at: float
    who: str
    generation: int
    tried: str
    answered_by: str
    answer: str


class Summary(msgspec.Struct, frozen=True):
    """What became of it all.

    `effects_applied` counts the writes that the destination made, `holds` is what it has in the end, and
    `damage_shown` says that this is the late worker's, and that its draft was there when the next one wrote.
    """

    destination: str
    store: str
    fence: bool
    generation_a: int
    generation_b: int
    stale_completion_refused: bool
    stale_write_refused: bool
    zombie_stopped_by_own_clock: bool
    damage_shown: bool
    effects_applied: int
    holds: str
    seconds: float

    @property
    def failed(self) -> list[str]:
        """Name what is not as it should be; without a fence it is the damage that should be seen."""
        should = {
            "generation_b is not above generation_a": self.generation_b > self.generation_a,
            "stale_completion_refused is false": self.stale_completion_refused,
            "zombie_stopped_by_own_clock is false": self.zombie_stopped_by_own_clock,
            "stale_write_refused is false": self.stale_write_refused or not self.fence,
            "damage_shown is false": self.damage_shown or self.fence,
        }
        return [what for what, holds in should.items() if not holds]

    @property
    def ok(self) -> bool:
        """Whether everything was as it should be."""
        return not self.failed
