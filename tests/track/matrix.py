"""Write `docs/fault-matrix.md`: ``python -m tests.track.matrix``.

Which columns a fault was tried in is read from the names under which pytest collects the tests that are named for it:
from their parameters, such as ``[sync-sqlite]``, or from the folder or file of their own. A test that pytest does not
collect is an error, and so is one in a column for which the fault says nothing.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping

from tests.track.fault import ANYWHERE, CELLS, PLACES, STORES, Fault
from tests.track.faults import AT_DESTINATIONS, FAULTS
from tests.track.named import ROOT, runners

PAGE = ROOT / "docs" / "fault-matrix.md"

DASH = "\N{EN DASH}"

_WORDS = {"postgresql": "postgres"}
_FOLDERS = {"tests/postgres/": "postgres", "tests/sqlite/": "sqlite", "tests/worker/": ANYWHERE}
_FILES = {"tests/conformance/test_memory.py": "memory"}
_FENCES = re.compile(r"tests/fences/test_(sql|redis|http|s3|files)\w*\.py")

Collected = Mapping[str, frozenset[str]]
"""The parameters under which each test is collected, by ``file::test``."""


def collect(files: Iterable[str]) -> Collected:
    """Ask pytest for the tests in these files."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:randomly", *sorted(set(files))]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    if ran.returncode:
        raise LookupError(f"pytest could not collect the named tests:\n{ran.stdout}{ran.stderr}")
    found: dict[str, set[str]] = {}
    for line in ran.stdout.splitlines():
        if "::" in line:
            name, _, parameters = line.partition("[")
            found.setdefault(name, set()).update(parameters.rstrip("]").split("-"))
    return {name: frozenset(words) for name, words in found.items()}


def places(fault: Fault, columns: Mapping[str, str], collected: Collected) -> dict[str, list[str]]:
    """Sort the tests of a fault into columns; raises LookupError for a test that is not collected or has no column."""
    cells: dict[str, list[str]] = {column: [] for column in columns}
    for named in fault.tests:
        said, _, test = named.rpartition(": ")
        for node in _nodes(test):
            if node not in collected:
                raise LookupError(f"{fault.name}: pytest does not collect {node}")
            for column in [said] if said else _columns(node, collected[node], columns):
                cells[column].append(test)
    empty = [test for test in fault.tests if not any(test.rpartition(": ")[2] in tests for tests in cells.values())]
    if empty:
        raise LookupError(f"{fault.name}: no column is known for {', '.join(empty)}")
    return cells


def named_files(faults: Iterable[Fault]) -> set[str]:
    """Name the files that hold the tests of these faults."""
    return {
        node.partition("::")[0] for fault in faults for test in fault.tests for node in _nodes(test.rpartition(": ")[2])
    }


def page(collected: Collected) -> str:
    """Write the page."""
    lines = [
        "# Faults, and what comes of them",
        "",
        *_INTRODUCTION,
        "",
        *(f"- **{letter}** {meaning}" for letter, meaning in CELLS.items()),
        "",
        *table("Workers and stores", FAULTS, STORES, collected),
        *table("Destinations with a fence", AT_DESTINATIONS, PLACES, collected),
        "## The tests",
        "",
        "| what goes wrong | how | tests |",
        "|---|---|---|",
        *(
            f"| {fault.name} | {fault.how} | {', '.join(f'`{test}`' for test in _plain(fault)) or 'none'} |"
            for fault in (*FAULTS, *AT_DESTINATIONS)
        ),
    ]
    return "\n".join(lines) + "\n"


def table(title: str, faults: Iterable[Fault], columns: Mapping[str, str], collected: Collected) -> Iterator[str]:
    """Write one table: a letter where a test plays the fault, "not tested" where none does."""
    yield from (
        f"## {title}",
        "",
        f"| what goes wrong | {' | '.join(columns.values())} |",
        "|---|" + "---|" * len(columns),
    )
    for fault in faults:
        yield f"| {fault.name} | {' | '.join(row(fault, columns, collected))} |"
    yield ""


def row(fault: Fault, columns: Mapping[str, str], collected: Collected) -> Iterator[str]:
    """Write the cells of one fault; raises LookupError where tests and expectation contradict each other."""
    tested = places(fault, columns, collected)
    for column in columns:
        letter = fault.cells if isinstance(fault.cells, str) else fault.cells.get(column)
        if letter is None and tested[column]:
            raise LookupError(f"{fault.name}: tests play it in the column {column}, and nothing is expected there")
        if letter is not None and letter not in CELLS:
            raise LookupError(f"{fault.name}: {letter!r} is none of {', '.join(CELLS)}")
        yield DASH if letter is None else letter if tested[column] else "not tested"


def _nodes(test: str) -> list[str]:
    """Name the tests as pytest collects them: a part of a shipped suite is run by files of tests."""
    file, _, name = test.partition("::")
    return [f"{runner}::{name}" for runner in runners(file)] if file.startswith("src/") else [test]


def _columns(node: str, parameters: frozenset[str], columns: Mapping[str, str]) -> set[str]:
    """Tell in which columns a test plays its fault."""
    file = node.partition("::")[0]
    fences = _FENCES.fullmatch(file)
    if fences is not None:
        return {fences[1]} & set(columns)
    found = {_WORDS.get(word, word) for word in parameters} & set(columns)
    home = _FILES.get(file) or next((column for folder, column in _FOLDERS.items() if file.startswith(folder)), "")
    return found or {home} & set(columns)


def _plain(fault: Fault) -> list[str]:
    return [test.rpartition(": ")[2] for test in fault.tests]


_INTRODUCTION = (
    "This page is written by `python -m tests.track.matrix`; a test fails when it is out of date. Where a fault",
    "was tried is read from the tests: a letter stands only where pytest collects a test that plays the fault on",
    "that store, or at that destination. A dash means that the fault cannot happen there, or does not hang on",
    "the worker alone.",
)


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(page(collect(named_files((*FAULTS, *AT_DESTINATIONS)))), encoding="utf-8")


if __name__ == "__main__":
    main()
