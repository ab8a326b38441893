"""The page of bugs names, for each, a test that exists; the tests themselves are run like all others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.track.named import NAMED, ROOT, missing

PAGE = ROOT / "docs" / "track-record.md"
HEAD = "| what was wrong | seen by | reproduced by | fixed in |"
FIXED = re.compile(r"(?:`[0-9a-f]{7}`(?:, )?)+|this version|version \d+\.\d+\.\d+")


def rows(text: str) -> list[list[str]]:
    """Take the rows of all tables apart."""
    lines = [line for line in text.splitlines() if line.startswith("|") and line != HEAD]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("|---")]


def incomplete_rows(text: str) -> Iterator[str]:
    """Ask each row for its four cells: a bug, what showed it, a test by its name, and where it was fixed."""
    for row in rows(text):
        if len(row) != 4 or not all(row):
            yield f"the row of {row[0][:50]!r} has not four full cells"
        elif not [test for _, test in NAMED.findall(row[2]) if test]:
            yield f"the row of {row[0][:50]!r} names no test"
        elif not FIXED.fullmatch(row[3]):
            yield f"{row[3]!r} is no commit and no version"


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
        (incomplete_rows, f"{HEAD}\n|---|---|---|---|\n| A bug. | a test | {HERE} |"),
        (incomplete_rows, f"{HEAD}\n|---|---|---|---|\n| A bug. |  | {HERE} | `0123abc` |"),
        (incomplete_rows, f"{HEAD}\n|---|---|---|---|\n| A bug. | a test | `make test` | `0123abc` |"),
        (incomplete_rows, f"{HEAD}\n|---|---|---|---|\n| A bug. | a test | {HERE} | soon |"),
        (repeated_rows, f"| A bug. | a test | {HERE} | `0123abc` |\n| A bug. | a test | {HERE} | `0123abc` |"),
        (missing, "`tests/track/test_track_record.py::test_no_such_test`"),
    ],
)
def test_a_rule_finds_a_bad_page(rule: Any, text: str) -> None:
    assert len(list(rule(text))) == 1


@pytest.mark.parametrize("fixed", ["`0123abc`", "`0123abc`, `4567def`", "this version", "version 0.2.0"])
def test_a_good_page_is_accepted(fixed: str) -> None:
    text = f"{HEAD}\n|---|---|---|---|\n| A bug. | a test | {HERE} | {fixed} |"
    assert [finding for rule in RULES for finding in rule(text)] == []
