"""The page of guarantees keeps its word: every promise and every limit has a name of its own and says what shows it.

Each rule is a function that returns its findings, so that the end of this file can show that it bites.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.track.named import NAMED, ROOT, missing

PAGE = ROOT / "docs" / "guarantees.md"

PROMISE = re.compile(r"^\| `([^`|]*)` \| ([^|]+) \| ([^|]*) \|$", re.MULTILINE)
LIMIT = re.compile(r"^`([^`\n]*)`\n: (.+(?:\n  .+)*)", re.MULTILINE)
NAME = re.compile(r"[a-z]+(?:-[a-z0-9]+)*")
UNSHOWN = "Not shown by a test: "

HEAD = "| name | promise | held by |"


def promises(text: str) -> dict[str, str]:
    """Return what holds each promise, by the name of the promise."""
    return {name: held for name, _, held in PROMISE.findall(text)}


def limits(text: str) -> dict[str, str]:
    """Return each limit with what shows it, by its name."""
    return dict(LIMIT.findall(text))


def promises_without_a_test(text: str) -> Iterator[str]:
    """Ask each promise to name a test."""
    for name, held in promises(text).items():
        if not NAMED.search(held):
            yield f"{name} names no test"


def limits_without_a_word(text: str) -> Iterator[str]:
    """Ask each limit to name a test, or to say why there is none."""
    for name, said in limits(text).items():
        if not NAMED.search(said) and not said.partition(UNSHOWN)[2].strip():
            yield f"{name} names no test, and does not say why"


def bad_names(text: str) -> Iterator[str]:
    """Ask for names in small letters, each given once."""
    names = [found[0] for found in (*PROMISE.findall(text), *LIMIT.findall(text))]
    for name in sorted(set(names)):
        if names.count(name) > 1:
            yield f"{name} stands there {names.count(name)} times"
        if not NAME.fullmatch(name):
            yield f"{name!r} is no name: small letters, digits and hyphens"


def nameless(text: str) -> Iterator[str]:
    """Ask every row of a table of promises, and every limit, to have the form in which the other rules see it."""
    promising = False
    for line in text.splitlines():
        promising = line == HEAD or (promising and line.startswith("|"))
        if promising and line != HEAD and not line.startswith("|---") and not PROMISE.fullmatch(line):
            yield f"this row has not the form of a promise: {line[:60]}"
    told = {f": {said}" for said in limits(text).values()}
    for found in re.findall(r"^: .+(?:\n  .+)*", text, re.MULTILINE):
        if found not in told:
            yield f"this limit has no name before it: {found[:60]}"


RULES = [promises_without_a_test, limits_without_a_word, bad_names, nameless, missing]


@pytest.mark.parametrize("rule", RULES)
def test_the_page_keeps(rule: Any) -> None:
    findings = list(rule(PAGE.read_text(encoding="utf-8")))
    assert not findings, "\n" + "\n".join(findings)


def test_the_page_promises_and_limits() -> None:
    """A page that the rules could not read would keep them all."""
    text = PAGE.read_text(encoding="utf-8")
    assert len(promises(text)) >= 50
    assert len(limits(text)) >= 27
    assert text.count(HEAD) == 4
    section = text.partition("## Limits, one by one\n")[2]
    assert not re.sub(LIMIT, "", section).strip()  # nothing stands there that is no limit


# -- the rules bite

HERE = "`tests/unit/test_guarantees.py::test_the_page_keeps`"
TABLE = f"{HEAD}\n|---|---|---|\n"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (promises_without_a_test, f"{TABLE}| `a` | A promise. |  |"),
        (promises_without_a_test, f"{TABLE}| `a` | A promise. | `test_the_page_keeps` |"),
        (limits_without_a_word, "`a`\n: A limit.\n  Shown by nothing."),
        (limits_without_a_word, "`a`\n: A limit.\n  Not shown by a test: "),
        (bad_names, f"{TABLE}| `a` | A promise. | {HERE} |\n| `a` | Another. | {HERE} |"),
        (bad_names, f"{TABLE}| `a` | A promise. | {HERE} |\n\n`a`\n: A limit."),
        (bad_names, f"{TABLE}| `G 1` | A promise. | {HERE} |"),
        (nameless, f"{TABLE}| A promise. | {HERE} |"),
        (nameless, f"{TABLE}| a | A promise. | {HERE} |"),
        (nameless, "A limit\n: without a name."),
        (missing, "`tests/unit/test_no_such_file.py`"),
        (missing, "`tests/unit/test_no_such_file.py::test_x`"),
        (missing, "`tests/unit/test_guarantees.py::test_no_such_test`"),
        (missing, "`tests/unit/test_guarantees.py::promises`"),
        (missing, "`tests/track/named.py`"),
        (missing, "`src/tenure/testing/conformance/assertions.py`"),
        (missing, "`spec/no_such_file.py`"),
    ],
)
def test_a_rule_finds_a_bad_page(rule: Any, text: str) -> None:
    assert len(list(rule(text))) == 1


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_accepts_a_good_page(rule: Any) -> None:
    shown = "`src/tenure/testing/conformance/leases.py::test_r9_a_claim_never_exceeds_its_limit`, `spec/Fence.tla`"
    limits_there = f"`b-2`\n: A limit\n  in two lines. Shown by {shown}.\n\n`c`\n: More.\n  Not shown by a test: why."
    assert list(rule(f"{TABLE}| `a` | A promise. | {HERE} |\n\n{limits_there}\n")) == []


def test_a_suite_that_nobody_runs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.track.named.runners", lambda _: ())
    text = "`src/tenure/testing/conformance/leases.py::test_r9_a_claim_never_exceeds_its_limit`"
    assert list(missing(text)) == ["no file of tests runs src/tenure/testing/conformance/leases.py"]


def test_a_test_in_a_class_is_found() -> None:
    text = "`tests/kit/test_fenced_effects.py::TestInTheStoresOwnDatabase::test_time_is_moved_ahead`"
    assert list(missing(text)) == []
    assert len(list(missing(text.replace("_moved_", "_lost_")))) == 1
