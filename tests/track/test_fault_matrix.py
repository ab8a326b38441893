"""The page of faults is what its source and the collected tests say, and its machinery cannot be fooled."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.track.fault import ANYWHERE, PLACES, STORES, Fault
from tests.track.faults import AT_DESTINATIONS, FAULTS
from tests.track.matrix import DASH, PAGE, Collected, collect, named_files, page, places, row, table
from tests.track.named import missing

HERE = "tests/track/test_fault_matrix.py::test_a_row_says_where_it_was_tried"


@pytest.fixture(scope="module")
def collected() -> Collected:
    return collect(named_files((*FAULTS, *AT_DESTINATIONS)))


def test_the_page_is_current(collected: Collected) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(collected), "run: python -m tests.track.matrix"


def test_the_tests_of_the_page_exist() -> None:
    assert list(missing(PAGE.read_text(encoding="utf-8"))) == []


def test_every_store_and_destination_was_tried(collected: Collected) -> None:
    """A table in which everything is "not tested" would be current too."""
    for faults, columns in ((FAULTS, STORES), (AT_DESTINATIONS, PLACES)):
        tried = dict.fromkeys(columns, 0)
        for fault in faults:
            for column, tests in places(fault, columns, collected).items():
                tried[column] += bool(tests)
        assert min(tried.values()) >= 6, tried


def test_no_fault_stands_there_twice() -> None:
    names = [fault.name for fault in (*FAULTS, *AT_DESTINATIONS)]
    assert len(set(names)) == len(names)


# -- the machinery

FAULT = Fault("a test", "by hand", {"memory": "S", "sqlite": "L", "postgres": "U"}, (HERE,))
COLLECTED = {HERE: frozenset({"sync", "sqlite", "postgresql"})}


def test_a_row_says_where_it_was_tried() -> None:
    assert list(row(FAULT, STORES, COLLECTED)) == ["not tested", "L", "U", DASH]
    lines = list(table("Title", [FAULT], {"sqlite": "SQLite"}, COLLECTED))
    assert lines[2:5] == ["| what goes wrong | SQLite |", "|---|---|", "| a test | L |"]


def test_one_letter_is_for_all() -> None:
    assert list(row(replace(FAULT, cells="F"), STORES, COLLECTED)) == ["not tested", "F", "F", "not tested"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"tests": ("tests/track/test_fault_matrix.py::test_x",)}, "pytest does not collect"),
        ({"tests": ("memory: tests/track/test_fault_matrix.py::test_x",)}, "pytest does not collect"),
        ({"cells": {"sqlite": "S"}}, "tests play it in the column postgres"),
        ({"cells": "Q"}, "'Q' is none of S, L, U, F, X"),
    ],
)
def test_what_contradicts_itself_is_refused(changes: dict[str, object], told: str) -> None:
    with pytest.raises(LookupError, match=re.escape(told)):
        list(row(replace(FAULT, **changes), STORES, COLLECTED))  # type: ignore[arg-type] # any mixture


def test_a_test_without_a_column_is_refused() -> None:
    with pytest.raises(LookupError, match="no column is known for"):
        places(FAULT, STORES, {HERE: frozenset()})


def test_a_column_that_is_said_counts() -> None:
    said = replace(FAULT, tests=(f"memory: {HERE}",))
    assert list(row(said, STORES, {HERE: frozenset()})) == ["S", "not tested", "not tested", DASH]


@pytest.mark.parametrize(
    ("node", "column"),
    [
        ("tests/worker/test_lease.py::test_x", ANYWHERE),
        ("tests/sqlite/test_file.py::test_x", "sqlite"),
        ("tests/postgres/test_faults.py::test_x", "postgres"),
        ("tests/conformance/test_memory.py::test_x", "memory"),
    ],
)
def test_a_folder_may_say_where(node: str, column: str) -> None:
    fault = replace(FAULT, tests=(node,))
    assert places(fault, STORES, {node: frozenset({"stored"})})[column] == [node]


def test_a_part_of_a_suite_is_where_it_is_run(collected: Collected) -> None:
    fault = next(fault for fault in AT_DESTINATIONS if "removed" in fault.name)
    assert all(places(fault, PLACES, collected).values())


def test_what_cannot_be_collected_is_told() -> None:
    with pytest.raises(LookupError, match="no such file|not found"):
        collect(["tests/track/test_no_such_file.py"])
