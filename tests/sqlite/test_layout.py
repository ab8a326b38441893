"""How the values of a call find their places in a statement."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

import pytest

from tenure.store.sqlite.layout import Layout
from tenure.store.statements import Statement

COLUMNS = ("a", "b", "c")


def layout(sql: str, *parameters: str, columns: tuple[str, ...] = ()) -> Layout:
    return Layout(Statement("under test", sql, parameters), columns)


def answer(asked: Layout, parameters: Mapping[str, Any], common: Mapping[str, Any]) -> list[Any]:
    form, values = asked.bind(parameters, common)
    return sqlite3.connect(":memory:").execute(form.one, values).fetchall()


@pytest.mark.parametrize("a", [1, None])
@pytest.mark.parametrize("b", [2, None])
@pytest.mark.parametrize("c", [3, None])
def test_each_value_finds_its_place_whichever_are_null(a: int | None, b: int | None, c: int | None) -> None:
    asked = layout("SELECT :c, :a, :b, :a", "c", "a", "b")
    assert answer(asked, {"a": a, "b": b, "c": c}, {}) == [(c, a, b, a)]


def test_no_null_is_bound() -> None:
    asked = layout("SELECT :a, :b", "a", "b")
    form, values = asked.bind({"a": None, "b": 2}, {})
    assert (form.one, values) == ("SELECT NULL, ?1", [2])


def test_one_form_serves_all_calls_with_the_same_nulls() -> None:
    asked = layout("SELECT :a, :b", "a", "b")
    first, again, other = (asked.bind({"a": a, "b": b}, {})[0] for a, b in ((None, 1), (None, 2), (1, None)))
    assert first is again
    assert first is not other


def test_what_a_call_says_counts_before_what_is_common() -> None:
    asked = layout("SELECT :a, :b, :c", *COLUMNS)
    assert answer(asked, {"a": 1, "b": None}, {"a": 7, "b": 8, "c": 9}) == [(1, None, 9)]


def test_a_list_is_handed_over_as_json_and_a_missing_one_is_null() -> None:
    asked = layout("SELECT group_concat(value) FROM json_each(:a)", "a")
    assert answer(asked, {"a": ("x", "y")}, {}) == [("x,y",)]
    assert answer(asked, {}, {}) == [(None,)]


def test_rows_follow_what_they_have_in_common() -> None:
    asked = layout("INSERT INTO t VALUES (:b, :a, :c) RETURNING id", *COLUMNS, columns=("b",))
    form, values = asked.bind({"a": None, "c": 3}, {})
    assert form.uncounted == "INSERT INTO t VALUES (?2, NULL, ?1) "
    assert form.many[10].startswith("INSERT INTO t VALUES (?2, NULL, ?1), (?3, NULL, ?1)")
    assert values == [3]


@pytest.mark.parametrize(("name", "echo"), [("job", ("job",)), ("id", ("id",)), ("other", ())])
def test_only_what_was_asked_for_is_answered_from_the_call(name: str, echo: tuple[str, ...]) -> None:
    assert layout(f"UPDATE t SET x = 1 WHERE id = :{name} RETURNING id", name).echo == echo
