"""What is to be proved: for how long, on what, with which faults; mistakes are told before anything starts."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal, get_args

from tenure.errors import BadSettings
from tenure.protocol.lease import SHORTEST, check_duration

FaultName = Literal["pause", "kill", "rival", "cut", "delay", "duplicate", "reorder", "clock", "crash", "disk", "jump"]
FAULTS: tuple[FaultName, ...] = get_args(FaultName)

USUAL: tuple[FaultName, ...] = ("pause", "kill", "rival", "cut", "delay", "duplicate", "reorder")
"""The faults of a run for which none were named."""

_ALSO_CALLED = {"steal": "rival"}  # by those who look at it from the worker that loses its job

Workload = Literal["update", "mutex"]
Managed = Literal["sqlite", "postgres"]

QUIET = 10.0
"""Seconds after a lease within which every job has to be over once the faults have stopped: polls, retries, margin."""

JUMP = 2.5
"""Leases by which the clock of a store's server is ahead or behind, at most, where it jumps."""

_LEAST_WORKERS, _MOST_WORKERS = 2, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run. `destination` is ``module:factory`` of the user's own, None for the reference."""

    seconds: float = 60.0
    seed: int = 1
    workers: int = 4
    threads: int = 4
    lease: float = SHORTEST
    updates: int = 2
    faults: tuple[FaultName, ...] = USUAL
    workload: Workload = "update"
    fence: bool = True
    store: str | None = None
    managed: Managed | None = None
    destination: str | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no run."""
        check_duration("the lease", self.lease)
        for what, least in (("seconds", 1), ("workers", _LEAST_WORKERS), ("threads", 1), ("updates", 1)):
            given = getattr(self, what)
            if not least <= given < inf:
                raise BadSettings(f"{what} is {given:g}: at least {least}{'' if isfinite(given) else ', and finite'}")
        self._check_sizes()
        if self.store is not None and self.managed is not None:
            raise BadSettings("a store was named and one is to be managed: give one of them")
        self._check_faults()
        if self.workload == "mutex" and (self.destination is not None or not self.fence):
            raise BadSettings("the workload mutex writes to no destination: leave --destination and --no-fence out")

    def _check_sizes(self) -> None:
        """Refuse a run that this host cannot bear, and one in which no lease ends."""
        if self.workers > _MOST_WORKERS:
            raise BadSettings(
                f"workers is {self.workers}: at most {_MOST_WORKERS}, for all of them are processes on this host"
            )
        if self.lease > self.seconds:
            raise BadSettings(
                f"the lease is {self.lease:g} s, and the run takes {self.seconds:g} s: no worker would be late in it;"
                " let a run take several leases"
            )

    def _check_faults(self) -> None:
        """Refuse faults that this store cannot be given: a store is broken only where the run started it."""
        if "crash" in self.faults and self.managed != "postgres":
            raise BadSettings("crash kills the store's server: only one that is managed here, --managed postgres")
        if "disk" in self.faults and self.store is not None:
            raise BadSettings(
                "disk fills the file system of the store: only of one that is managed here, --managed sqlite or"
                " --managed postgres"
            )
        if "jump" in self.faults and self.managed != "postgres":
            raise BadSettings(
                "jump sets the clock of the store's server: only of one that is managed here, --managed postgres;"
                " leases in SQLite go by the boot clock of the host, which nobody can set"
            )

    @property
    def within(self) -> float:
        """Seconds within which every job has to be over once the faults have stopped.

        What was granted while a clock was ahead lasts so much longer once it has been set back.
        """
        return self.lease * (1 + JUMP * ("jump" in self.faults)) + QUIET

    @property
    def clocks_jump(self) -> bool:
        """Tell whether a lease may end at another moment than by the judge's clock."""
        return not {"clock", "jump"}.isdisjoint(self.faults)

    @property
    def must_fail(self) -> tuple[str, ...]:
        """The invariants that this run is made to break."""
        return ("I7",) if self.workload == "mutex" else ()


def read_faults(text: str) -> tuple[FaultName, ...]:
    """Read names between commas; raises BadSettings naming the first that is no fault, or where there is none."""
    said = [name.strip() for name in text.split(",") if name.strip()]
    if not said:
        raise BadSettings(f"no fault is named: leave --faults out for {', '.join(USUAL)}")
    names = [_ALSO_CALLED.get(name, name) for name in said]
    for name in names:
        if name not in FAULTS:
            raise BadSettings(f"there is no fault {name!r}; there are {', '.join(FAULTS)}")
    return tuple(fault for fault in FAULTS if fault in names)
