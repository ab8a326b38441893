"""Statements with numbered parameters, and how the values of a call are laid out for them.

What is the same for every row of a call comes first, then what its row brings. A statement that takes its row by VALUES
is also made for many rows at a time: to begin and end a statement costs as much as to store a job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from tenure.store.statements import Row, Statement, load_statements, rewrite_parameters

FEW = 10
"""Rows from which on many are carried out at a time."""

_MANY = (100, FEW, 1)  # rows at a time, the most that are left first; each number is a statement to be prepared
_CHANGES = re.compile(r"\b(INSERT|UPDATE|DELETE)\b")
_PLACE = re.compile(r"<(\w+)>")
_LIST = re.compile(r"\bjson_each\(:(\w+)\)")
_RETURNING = "RETURNING "
_ASKED = {"id": (("job",), ("id",)), "id, generation": (("job", "generation"),)}
"""What a statement returns that was asked for, by the names under which it may be asked for."""


class Layout:
    """A statement for calls whose rows have the same columns."""

    def __init__(self, statement: Statement, columns: tuple[str, ...]) -> None:
        # A column that the statement does not use has no place in it.
        self._columns = [name for name in columns if name in statement.parameters]
        self._names = [name for name in statement.parameters if name not in self._columns]
        self._lists = {self._names.index(name) for name in _LIST.findall(statement.sql)}
        places = [columns.index(name) for name in self._columns]
        self._used = None if len(places) == len(columns) else itemgetter(*places)
        self._sql = statement.sql
        self._forms: dict[tuple[str, ...], Form] = {}
        # Returning the names that were asked for only tells that a row matched; its count tells that quicker.
        asked = _ASKED.get(statement.sql.partition(_RETURNING)[2], ())
        self.echoes = len(asked[0]) if asked else 0
        self.echo = next((names for names in asked if set(names) <= set(self._names)), ())

    def bind(self, parameters: Mapping[str, Any], common: Mapping[str, Any]) -> tuple[Form, list[Any]]:
        """Lay out what is the same for every row, in a form of the statement that has places for it.

        What is NULL, or missing, stands in the form: `sqlite3` takes longer to bind one None than all numbers together.
        """
        names = self._names
        values = list(map(parameters.get, names, map(common.get, names)))
        for place in self._lists:
            if values[place] is not None:
                values[place] = msgspec.json.encode(values[place]).decode()
        if None not in values:
            return self._form(()), values
        nulls = tuple([name for name, value in zip(names, values, strict=True) if value is None])
        return self._form(nulls), [value for value in values if value is not None]

    def _form(self, nulls: tuple[str, ...]) -> Form:
        form = self._forms.get(nulls)
        if form is None:
            names = [name for name in self._names if name not in nulls]
            form = self._forms[nulls] = Form(
                self._sql, names, self._columns, in_many=bool(self.echoes and self._columns)
            )
        return form

    def rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Lay out the rows of a call."""
        return rows if self._used is None else [self._used(row) for row in rows]


class Form:
    """The SQL of a layout: for one row, for one row whose match is only counted, and for many rows at a time."""

    def __init__(self, sql: str, names: list[str], columns: list[str], *, in_many: bool) -> None:
        self.one = _numbered(sql, [*names, *columns])
        self.uncounted = self.one.partition(_RETURNING)[0]
        head, row, tail = _row_in(sql.partition(_RETURNING)[0])
        self.many: dict[int, str] = {}
        for count in _MANY if in_many and row and columns else ():
            rows = [_renamed(row, {name: f"{name}_{i}" for name in columns}) for i in range(count)]
            places = [*names, *(f"{name}_{i}" for i in range(count) for name in columns)]
            self.many[count] = _numbered(head + ", ".join(rows) + tail, places)

    def parts(self, rows: Sequence[Row]) -> Iterator[tuple[str, Sequence[Row]]]:
        """Share rows out among statements that carry many of them."""
        done = 0
        for count, sql in self.many.items():
            while len(rows) - done >= count:
                yield sql, rows[done : done + count]
                done += count


class Compiled:
    """A statement, laid out once for each kind of call that is made of it."""

    def __init__(self, statement: Statement) -> None:
        self._statement = statement
        self._layouts: dict[tuple[str, ...], Layout] = {}
        self.reads = not _CHANGES.search(statement.sql)
        self.looks = "boot" in statement.parameters

    def layout(self, columns: tuple[str, ...] = ()) -> Layout:
        """Return the layout for calls with rows of `columns`."""
        layout = self._layouts.get(columns)
        if layout is None:
            layout = self._layouts[columns] = Layout(self._statement, columns)
        return layout


def _row_in(sql: str) -> tuple[str, str, str]:
    """Split around the row, in its brackets, that stands after VALUES; without one there is only a head."""
    head, values, rest = sql.partition("VALUES (")
    depth = 1
    for end, letter in enumerate(rest, 1):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return head + values[:-1], values[-1] + rest[:end], rest[end:]
    return sql, "", ""


def _renamed(sql: str, names: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: f":{names.get(place[1], place[1])}", rewrite_parameters(sql, "<{}>"))


def _numbered(sql: str, names: Sequence[str]) -> str:
    """Give the parameters numbers in the order of these names; any other one is NULL."""
    numbers = {name: f"?{number}" for number, name in enumerate(names, 1)}
    return _PLACE.sub(lambda place: numbers.get(place[1], "NULL"), rewrite_parameters(sql, "<{}>"))


STATEMENTS = {name: Compiled(statement) for name, statement in load_statements("tenure.store.sqlite").items()}
