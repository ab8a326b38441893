"""The page of bugs names, for each, a test that exists; the tests themselves are run like all others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.track.named import NAMED, ROOT, missing

PAGE = ROOT / "docs" / "track-record.md"
HEAD = "| what was wrong | seen by | reproduced by |"


def rows(text: str) -> list[list[str]]:
    """Take the rows of all tables apart."""
    lines = [line for line in text.splitlines() if line.startswith("|") and line != HEAD]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("|---")]


def incomplete_rows(text: str) -> Iterator[str]:
    """Ask each row for its three cells: a bug, what showed it, and a test by its name."""
    for row in rows(text):
        if len(row) != 3 or not all(row):
            yield f"the row of {row[0][:50]!r} has not three full cells"
        elif not [test for _, test in NAMED.findall(row[2]) if test]:
            yield f"the row of {row[0][:50]!r} names no test"


def repeated_rows(text: str) -> Iterator[str]:
    """Ask for each bug once."""
    told = [row[0] for row in rows(text)]
    yield from (f"{bug[:50]!r} is told twice" for bug in sorted(set(told)) if told.count(bug) > 1)


RULES = [incomplete_rows, repeated_rows, missing]


@pytest.mark.parametrize("rule", RULES)
def test_the_page_keeps(rule: Any) -> None:
    findings = list(rule(PAGE.read_text(encoding="utf-8")))
    assert not findings, "\n" + "\n".join(findings)


def test_the_page_tells_of_bugs() -> None:
    assert len(rows(PAGE.read_text(encoding="utf-8"))) >= 40


def test_every_reproduction_of_this_folder_is_told_of() -> None:
    told = {test for file, test in NAMED.findall(PAGE.read_text(encoding="utf-8")) if file.startswith("tests/track/")}
    written = (ROOT / "tests/track/test_reproductions.py").read_text(encoding="utf-8")
    assert told == set(re.findall(r"^def (test_\w+)", written, re.MULTILINE))


# -- the rules bite

HERE = "`tests/track/test_track_record.py::test_the_page_keeps`"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (incomplete_rows, f"{HEAD}\n|---|---|---|\n| A bug. | {HERE} |"),
        (incomplete_rows, f"{HEAD}\n|---|---|---|\n| A bug. |  | {HERE} |"),
        (incomplete_rows, f"{HEAD}\n|---|---|---|\n| A bug. | a test | `make test` |"),
        (repeated_rows, f"| A bug. | a test | {HERE} |\n| A bug. | a test | {HERE} |"),
        (missing, "`tests/track/test_track_record.py::test_no_such_test`"),
    ],
)
def test_a_rule_finds_a_bad_page(rule: Any, text: str) -> None:
    assert len(list(rule(text))) == 1


def test_a_good_page_is_accepted() -> None:
    text = f"{HEAD}\n|---|---|---|\n| A bug. | a test | {HERE} |"
    assert [finding for rule in RULES for finding in rule(text)] == []
