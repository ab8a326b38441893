"""Calls laid out for PostgreSQL: numbered parameters, every value as text, the columns of rows as array literals.

Text is what makes this quick and steady: a statement has the same parameter types whatever the values are, so that it
is prepared once, and a literal built by hand takes a quarter of the time that psycopg needs for a list. The casts stand
in the SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tenure.errors import Misuse
from tenure.store.statements import Batch, Call, Statement, load_statements, rewrite_parameters

Step = tuple[str, Sequence[str | None]]
"""One statement to send: its SQL and its parameters."""

_PLACE = re.compile(r"<(\w+)>")
_NUL = "\0"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A statement with numbered parameters.

    `reads` tells that it changes nothing, `looks` that it looks by itself whether a caller's transaction may carry it.
    """

    sql: str
    parameters: tuple[str, ...]
    reads: bool
    looks: bool


def compile_statement(statement: Statement) -> Compiled:
    """Give the parameters of a statement numbers in order of first use."""
    number = {name: str(i) for i, name in enumerate(statement.parameters, 1)}
    sql = _PLACE.sub(lambda place: "$" + number[place.group(1)], rewrite_parameters(statement.sql, "<{}>"))
    reads, looks = statement.sql.startswith("SELECT"), "table" in statement.parameters
    return Compiled(sql, statement.parameters, reads=reads, looks=looks)


STATEMENTS = {
    name: compile_statement(statement)
    for file in ("statements.sql", "admission.sql")
    for name, statement in load_statements("tenure.store.postgres", file).items()
}


def lay_out(call: Call, common: Mapping[str, Any]) -> Step:
    """Bind a call: `common` holds the values that every statement may use, such as the clock's shift."""
    compiled = STATEMENTS[call.name]
    values = {**common, **call.parameters}
    if call.rows is not None:
        columns = zip(*call.rows, strict=True) if call.rows else [()] * len(call.columns)
        values.update(zip(call.columns, columns, strict=True))
    bound = [values[name] for name in compiled.parameters]
    return compiled.sql, [value if value is None or type(value) is str else _text(value) for value in bound]


def only_reads(batch: Batch) -> bool:
    """Tell whether nothing in the batch changes anything."""
    return all(STATEMENTS[call.name].reads for call in batch.calls)


def looks_itself(batch: Batch) -> bool:
    """Tell whether a batch is one statement, which looks by itself before it finds anything."""
    return len(batch.calls) == 1 and STATEMENTS[batch.calls[0].name].looks


def array(values: Sequence[Any]) -> str:
    """Write an array literal (PostgreSQL documentation, 8.15.6); raises Misuse for a text with a NUL."""
    nulls = values.count(None)
    if nulls == len(values):
        return "{" + ",".join(["NULL"] * nulls) + "}"
    if nulls:
        return "{" + ",".join(["NULL" if value is None else _element(str(value)) for value in values]) + "}"
    joined = _NUL.join(map(str, values))
    if joined.count(_NUL) != len(values) - 1:
        raise Misuse("a text with a NUL character cannot be stored in PostgreSQL")
    return '{"' + _escaped(joined).replace(_NUL, '","') + '"}'


def _element(value: str) -> str:
    if _NUL in value:
        raise Misuse("a text with a NUL character cannot be stored in PostgreSQL")
    return '"' + _escaped(value) + '"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _text(value: Any) -> str:
    return array(value) if isinstance(value, tuple | list) else str(value)
