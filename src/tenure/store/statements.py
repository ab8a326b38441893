"""Statements: named SQL read from a `.sql` file, and the requests that carry them to a connection.

A statement begins with a line ``-- name: renew`` and ends at the next one; its parameters are written ``:like_this``
and only ever bound. The two SQL stores carry the same names with the same parameters and columns; where they must
differ, the comment above the statement says why. A fragment that several statements share stands once, under
``-- part: take``, and is put in where they say ``@take``.

A request that carries `rows` runs its statement for every row: PostgreSQL binds the columns as arrays, SQLite binds row
by row. Either way the answer is the rows returned by all of them together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from msgspec import Struct

from tenure.protocol.op import Request

Row = tuple[Any, ...]

_HEAD = re.compile(r"^-- (name|part): (\w+)\s*$", re.MULTILINE)
_USE = re.compile(r"@([a-z_]+)")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_COMMENT = re.compile(r"^\s*--.*$\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Statement:
    """One named statement and the names of its parameters in order of first use."""

    name: str
    sql: str
    parameters: tuple[str, ...]


class Call(Struct, frozen=True):
    """One statement to be executed: by name, with parameters, for each of `rows` when there are any.

    `columns` names the fields of `rows`, which are bound besides `parameters`.
    """

    name: str
    parameters: Mapping[str, Any] = {}
    columns: tuple[str, ...] = ()
    rows: Sequence[Row] | None = None


@dataclass(slots=True)
class Batch(Request[list[list[Row]]]):
    """Calls that reach the store in one round trip and take effect together; answered with the rows of each."""

    calls: tuple[Call, ...]


def load_statements(package: str, file: str = "statements.sql") -> dict[str, Statement]:
    """Read the named statements of `file` in `package`, with their parts put in."""
    pieces = _HEAD.split(resources.files(package).joinpath(file).read_text(encoding="utf-8"))[1:]
    heads = list(zip(pieces[0::3], pieces[1::3], pieces[2::3], strict=True))
    if len({(kind, name) for kind, name, _ in heads}) != len(heads):
        raise ValueError(f"{package}/{file}: a name stands there twice")
    parts = {name: _bare(body) for kind, name, body in heads if kind == "part"}
    bodies = {name: _put_in(_bare(body), parts) for kind, name, body in heads if kind == "name"}
    return {name: Statement(name, sql, tuple(dict.fromkeys(_PARAMETER.findall(sql)))) for name, sql in bodies.items()}


def _bare(body: str) -> str:
    return _COMMENT.sub("", body).strip()


def _put_in(sql: str, parts: Mapping[str, str]) -> str:
    while _USE.search(sql):
        sql = _USE.sub(lambda match: parts[match.group(1)], sql)
    return sql


def rewrite_parameters(sql: str, form: str) -> str:
    """Rewrite every ``:name`` of `sql` by `form`, such as ``%({})s``; casts (``::text``) stay as they are."""
    return _PARAMETER.sub(lambda match: form.format(match.group(1)), sql)
