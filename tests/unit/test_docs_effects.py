"""The page "What protects which effect" keeps its word: each row names a test that exists, and a page that exists.

Each rule is a function that returns its findings, so that the end of this file can show that it bites.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGE = DOCS / "effects.md"
COLUMNS = 6

NAMED = re.compile(r"`((?:tests|src)/[\w/]+\.py)(?:::(\w+))?`")
LED_TO = re.compile(r"\]\(([\w/]+\.md)")


def rows(text: str) -> list[list[str]]:
    """Take the rows of the table apart, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def missing_tests(text: str) -> Iterator[str]:
    """Look for each test that is named as ``file::test``."""
    for file, test in NAMED.findall(text):
        path = ROOT / file
        if not path.is_file():
            yield f"there is no file {file}"
        elif test and not re.search(rf"^(?:async )?def {test}\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            yield f"there is no test {test} in {file}"


def incomplete_rows(text: str) -> Iterator[str]:
    """Ask each row to fill every column, to lead to a page, and to name a test."""
    for row in rows(text):
        if len(row) != COLUMNS or not all(row):
            yield f"the row of {row[0]} has not {COLUMNS} full columns"
        elif not [test for _, test in NAMED.findall(row[-1]) if test]:
            yield f"the row of {row[0]} names no test"
        elif not all((DOCS / page).is_file() for page in LED_TO.findall(row[0]) or ["nowhere"]):
            yield f"the row of {row[0]} leads to no page"


def untold_pages(text: str) -> Iterator[str]:
    """Ask for a row that leads to each page about a fence."""
    told = {page for row in rows(text) for page in LED_TO.findall(row[0])}
    for page in sorted((DOCS / "fences").glob("*.md")):
        if f"fences/{page.name}" not in told:
            yield f"no row leads to fences/{page.name}"


@pytest.mark.parametrize("rule", [missing_tests, incomplete_rows, untold_pages])
def test_the_page_keeps(rule: Any) -> None:
    assert list(rule(PAGE.read_text(encoding="utf-8"))) == []


def test_the_page_has_a_row_for_every_kind_of_destination() -> None:
    assert len(rows(PAGE.read_text(encoding="utf-8"))) == 9


# -- the rules bite

THERE = "`tests/unit/test_docs_effects.py::test_the_page_keeps`"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (missing_tests, "`tests/unit/test_no_such_file.py::test_x`"),
        (missing_tests, "`tests/unit/test_docs_effects.py::test_no_such_test`"),
        (incomplete_rows, f"| h |\n|---|\n| [x](tasks.md) | a | b | c | | {THERE} |"),
        (incomplete_rows, f"| h |\n|---|\n| [x](tasks.md) | a | b | {THERE} |"),
        (incomplete_rows, "| h |\n|---|\n| [x](tasks.md) | a | b | c | d | `tests/unit/test_docs_effects.py` |"),
        (incomplete_rows, f"| h |\n|---|\n| [x](nowhere.md) | a | b | c | d | {THERE} |"),
        (incomplete_rows, f"| h |\n|---|\n| x | a | b | c | d | {THERE} |"),
    ],
)
def test_a_rule_finds_a_bad_page(rule: Any, text: str) -> None:
    assert len(list(rule(text))) == 1


def test_a_page_that_no_row_leads_to_is_found() -> None:
    assert "no row leads to fences/redis.md" in list(untold_pages("| h |\n|---|\n| [x](fences/sql.md) | a |"))


def test_a_good_row_is_accepted() -> None:
    row = f"| h |\n|---|\n| [x](tasks.md) | a | b | c | d | {THERE} |"
    assert list(incomplete_rows(row)) == list(missing_tests(row)) == []
