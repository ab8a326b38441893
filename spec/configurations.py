"""The configurations of the model: the guards that are on, what is checked, and what must come of it."""

from __future__ import annotations

from dataclasses import dataclass, field

Value = bool | int | str

FENCE = ("NoLostUpdate", "NothingAfterDone", "NoTokenTwice", "OnlyTheOwnerCompletes")
BELIEF = ("OneBeliever",)
ONCE = ("AppliedOnce", "OneRecord")

_BASE: dict[str, dict[str, Value]] = {
    "Fence": {
        "Workers": "{Ada, Bob}",
        "MaxClaims": 2,
        "MaxWrites": 1,
        "GUARD": True,
        "FENCE": True,
        "RAISE": True,
        "SEQUENCE": True,
        "ANSWERED": True,
        "SEAL": False,
        "FLOOR": True,
        "REPEATS": False,
        "LOSES": False,
        "OPERATES": False,
    },
    "Belief": {
        "Workers": "{Ada, Bob}",
        "Lease": 3,
        "Margin": 1,
        "MaxTime": 7,
        "MaxClaims": 3,
        "FROM_SEND": True,
        "STRICT": True,
        "SLOW": "{}",
        "EVERY": 4,
        "JUMPS": False,
    },
    "Once": {"Runs": "{1, 2, 3}", "REMEMBER": True, "KEY": '"job"', "GUARDED": True},
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """One run of the model checker; `breaks` names the invariant that must be violated, None when all must hold."""

    module: str
    about: str
    invariants: tuple[str, ...]
    changes: dict[str, Value] = field(default_factory=dict)
    breaks: str | None = None

    @property
    def constants(self) -> dict[str, Value]:
        """Every constant of the module, the changed ones included."""
        return {**_BASE[self.module], **self.changes}


def _holds(module: str, about: str, invariants: tuple[str, ...], **changes: Value) -> Configuration:
    return Configuration(module, about, invariants, changes)


def _breaks(module: str, about: str, invariant: str, **changes: Value) -> Configuration:
    return Configuration(module, about, (invariant,), changes, invariant)


CONFIGURATIONS = (
    _holds("Fence", "three workers, every guard on", FENCE, Workers="{Ada, Bob, Cleo}", MaxClaims=3),
    _holds(
        "Fence",
        "several writes, repeated messages, an operator who takes jobs away",
        FENCE,
        MaxClaims=3,
        MaxWrites=2,
        REPEATS=True,
        OPERATES=True,
    ),
    _holds(
        "Fence",
        "a store that loses its last claim, with the floor raised",
        FENCE,
        Workers="{Ada, Bob, Cleo}",
        MaxClaims=3,
        LOSES=True,
        OPERATES=True,
    ),
    _holds(
        "Fence",
        "completing without waiting for answers, but sealing first",
        ("NothingAfterDone",),
        MaxClaims=3,
        ANSWERED=False,
        SEAL=True,
        REPEATS=True,
    ),
    _breaks("Fence", "no fence at the destination", "NoLostUpdate", FENCE=False),
    _breaks("Fence", "a fence that no new owner raises before it reads", "NoLostUpdate", RAISE=False),
    _breaks(
        "Fence",
        "a fence without a sequence, on a network that repeats",
        "NoLostUpdate",
        SEQUENCE=False,
        MaxWrites=2,
        REPEATS=True,
    ),
    _breaks("Fence", "completing with a write still under way", "NothingAfterDone", ANSWERED=False),
    _breaks("Fence", "a completion that is not compared with the generation", "OnlyTheOwnerCompletes", GUARD=False),
    _breaks("Fence", "a store that loses its last claim, without a floor", "NoTokenTwice", LOSES=True, FLOOR=False),
    _breaks(
        "Fence",
        "the same, and what it does to the data",
        "NoLostUpdate",
        LOSES=True,
        FLOOR=False,
        SEQUENCE=False,
    ),
    _holds("Belief", "clocks at one rate", BELIEF),
    _holds("Belief", "a clock that is slow by less than the margin", BELIEF, SLOW="{Ada}"),
    _breaks("Belief", "counting from the answer", "OneBeliever", FROM_SEND=False),
    _breaks("Belief", "hoping that an unanswered renewal was granted", "OneBeliever", STRICT=False),
    _breaks("Belief", "a clock that is slower than the margin allows", "OneBeliever", SLOW="{Ada}", EVERY=2),
    _breaks("Belief", "a store whose clock jumps", "OneBeliever", JUMPS=True),
    _holds("Once", "a key of job and step, and the result remembered", ONCE),
    _holds("Once", "the key alone", ("AppliedOnce",), REMEMBER=False),
    _breaks("Once", "a key that contains the generation", "AppliedOnce", KEY='"generation"'),
    _breaks("Once", "the result remembered, but no key: the window", "AppliedOnce", KEY='"none"'),
    _breaks("Once", "a record that is written under any generation", "OneRecord", GUARDED=False),
)
