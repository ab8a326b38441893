"""What a mutant is, and how those of the stores name the parts of the conformance suite."""

from __future__ import annotations

from dataclasses import dataclass

_FILES = {"leases": ("leases", "named", "owners")}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard removed: `old` in `file` (below src/tenure) becomes `new`; pytest gets `tests`."""

    name: str
    guard: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def suite(store: str, *parts: str) -> tuple[str, ...]:
    """Name the parts of the conformance suite for one store, on a blocking connection of its own."""
    files = tuple(f"tests/conformance/test_{file}.py" for part in parts for file in _FILES.get(part, (part,)))
    return (*files, "-k", f"[sync-{store}")
