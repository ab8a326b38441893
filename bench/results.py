"""What a run of the benchmark found, as values and as a JSON file; medians and who is the fastest."""

from __future__ import annotations

import os
import platform
import statistics
from pathlib import Path

import msgspec

from bench.entrant import Entrant, Role, Store

RATE = "jobs/s"
ARRIVALS = "arrivals/s"
OF_START = "of the start"
OF_EMPTY = "of an empty table"


def more_is_better(figure: str) -> bool:
    """Whether the best is the highest; most figures count milliseconds, statements or per cent."""
    return figure in {RATE, ARRIVALS} or OF_START in figure or OF_EMPTY in figure


class Row(msgspec.Struct, kw_only=True):
    """One entrant at one question: the figures of every round, or the problem because of which there are none."""

    entrant: str
    role: Role
    jobs: int = 0
    figures: dict[str, list[float]] = {}
    problem: str = ""

    def median(self, figure: str) -> float | None:
        """Return the median over the rounds; None where nothing was measured."""
        values = self.figures.get(figure)
        return statistics.median(values) if values else None


class Answer(msgspec.Struct, kw_only=True):
    """One question on one store, with a row for everybody who was asked."""

    question: str
    store: Store
    sizes: str = "jobs a round"
    rows: list[Row]

    @property
    def figures(self) -> list[str]:
        """Return the names of the figures, in order of first use."""
        return list(dict.fromkeys(name for row in self.rows for name in row.figures))

    def row(self, entrant: str) -> Row | None:
        """Return the row of an entrant."""
        return next((row for row in self.rows if row.entrant == entrant), None)

    def best(self, figure: str, role: Role) -> Row | None:
        """Return the row with the best median among those of a role."""
        measured = [row for row in self.rows if row.role == role and row.median(figure) is not None]
        if not measured:
            return None
        return (max if more_is_better(figure) else min)(measured, key=lambda row: row.median(figure) or 0.0)


class About(msgspec.Struct, kw_only=True):
    """What stands beside an entrant's figures."""

    version: str | None
    settings: str
    weaker: str
    lease: str = ""
    handlers: tuple[str, ...]

    @classmethod
    def of(cls, entrant: Entrant) -> About:
        """Describe an entrant."""
        return cls(
            version=entrant.version(),
            settings=entrant.settings,
            weaker=entrant.weaker,
            lease=entrant.lease,
            handlers=entrant.handlers,
        )


class Results(msgspec.Struct, kw_only=True):
    """A whole run."""

    taken_at: str
    command: str
    rounds: int
    quick: bool
    minutes: float = 0.0
    machine: dict[str, str] = {}
    stores: dict[Store, str] = {}
    entrants: dict[str, About] = {}
    answers: list[Answer] = []

    def answer(self, question: str, store: Store) -> Answer | None:
        """Return what was found for a question on a store."""
        return next((one for one in self.answers if (one.question, one.store) == (question, store)), None)

    def write(self, path: Path) -> None:
        """Write the file."""
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read the file."""
        return msgspec.json.decode(path.read_bytes(), type=cls)


def machine() -> dict[str, str]:
    """Describe this machine."""
    return {
        "processor": f"{os.cpu_count()} cores, {_processor()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
