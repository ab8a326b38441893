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
_ASKED = {"id": ("job",), "id, generation": ("job", "generation")}
"""What a statement returns that was asked for, by the names under which it is asked for."""


class Layout:
    """A statement for calls whose rows have the same columns."""

    def __init__(self, statement: Statement, columns: tuple[str, ...]) -> None:
        # A column that the statement does not use has no place in it.
        used = [name for name in columns if name in statement.parameters]
        self._names = [name for name in statement.parameters if name not in used]
        self._lists = {self._names.index(name) for name in _LIST.findall(statement.sql)}
        self._used = None if len(used) == len(columns) else itemgetter(*(columns.index(name) for name in used))
        self.sql = _numbered(statement.sql, [*self._names, *used])
        # Returning the names that were asked for only tells that a row matched; its count tells that quicker.
        self.uncounted, _, returned = self.sql.partition(_RETURNING)
        asked = _ASKED.get(returned, ())
        self.echoes = len(asked)
        self.echo = asked if set(asked) <= set(self._names) else ()
        self.many = self._for_many(statement.sql, used) if self.echoes else {}

    def _for_many(self, sql: str, used: list[str]) -> dict[int, str]:
        head, row, tail = _row_in(sql.partition(_RETURNING)[0])
        counts = {}
        for count in _MANY if row else ():
            rows = [_renamed(row, {name: f"{name}_{i}" for name in used}) for i in range(count)]
            names = [f"{name}_{i}" for i in range(count) for name in used]
            counts[count] = _numbered(head + ", ".join(rows) + tail, [*self._names, *names])
        return counts

    def shared(self, parameters: Mapping[str, Any]) -> list[Any]:
        """Lay out what is the same for every row; a name that is missing is not looked at."""
        values = list(map(parameters.get, self._names))
        for place in self._lists:
            if values[place] is not None:
                values[place] = msgspec.json.encode(values[place]).decode()
        return values

    def rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Lay out the rows of a call."""
        return rows if self._used is None else [self._used(row) for row in rows]

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
    places = {name: place for place, name in enumerate(names, 1)}
    return _PLACE.sub(lambda place: f"?{places[place[1]]}", rewrite_parameters(sql, "<{}>"))


STATEMENTS = {name: Compiled(statement) for name, statement in load_statements("tenure.store.sqlite").items()}
