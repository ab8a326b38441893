"""`RowFence`: rows of the user's own that carry their mark, so that one UPDATE is both the guard and the effect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from tenure.errors import Misuse
from tenure.fences.connections import Query, asynchronous, blocking
from tenure.fences.rule import Bid, Mark, announcement, writing
from tenure.fences.sql.operations import Operations
from tenure.protocol.lease import Token
from tenure.protocol.op import Op, arun, ask, run
from tenure.store.statements import Row

T = TypeVar("T")

MARKS: Final = ("fence_job", "fence_generation", "fence_sequence")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class RowFence:
    """Fences in the columns `fence_job`, `fence_generation` and `fence_sequence` of rows; `SQLFence.row` makes one.

    The columns may be NULL: then nothing was met. The fence lasts as long as the row, so rows must not be deleted.
    Guard and effect are one statement, so the connection may be in autocommit.
    """

    def __init__(self, operations: Operations, table: str, key: str) -> None:
        self._operations = operations
        self._table = table
        self._key = key
        self._names = {
            "table": ".".join(self._quoted("table", part) for part in _parts(table)),
            "key": self._quoted("key", key),
        }

    def raise_to(self, connection: Any, token: Token, key: Any) -> None:
        """Announce a new owner to one row before it reads it (R32), and commit; raises StaleToken or BadToken."""
        self._do(connection, self._update(announcement(token, self._scope(key)), key, {}))

    async def raise_to_async(self, connection: Any, token: Token, key: Any) -> None:
        """Announce a new owner to one row; the twin of `raise_to`."""
        await self._do_async(connection, self._update(announcement(token, self._scope(key)), key, {}))

    def update(
        self, connection: Any, token: Token, key: Any, values: Mapping[str, Any], *, sequence: int | None = None
    ) -> None:
        """Write `values`, by column, into the row under `key`.

        Raises StaleToken, OutOfSequence or BadToken, and Misuse where there is no such row; then nothing has changed.
        """
        self._do(connection, self._update(writing(token, self._scope(key), sequence), key, self._checked(values)))

    async def update_async(
        self, connection: Any, token: Token, key: Any, values: Mapping[str, Any], *, sequence: int | None = None
    ) -> None:
        """Write `values` into the row under `key`; the twin of `update`."""
        op = self._update(writing(token, self._scope(key), sequence), key, self._checked(values))
        await self._do_async(connection, op)

    def current(self, connection: Any, key: Any) -> Mark | None:
        """Read the mark of one row; None where nothing was met. Raises Misuse where there is no such row."""
        return self._do(connection, self._current(key))

    async def current_async(self, connection: Any, key: Any) -> Mark | None:
        """Read the mark of one row; the twin of `current`."""
        return await self._do_async(connection, self._current(key))

    # -- the operations

    def _update(self, bid: Bid, key: Any, values: Mapping[str, Any]) -> Op[None]:
        columns = "".join(f"{self._quoted('column', name)} = :value_{i}, " for i, name in enumerate(values))
        bound = {f"value_{i}": value for i, value in enumerate(values.values())}
        bound |= {"key": key, "leap": self._operations.leap, **self._operations.bidding(bid)}
        if not (yield from self._ask("update_row", bound, columns=columns)):
            self._operations.explain((yield from self._found("lock_row", key)), bid)

    def _current(self, key: Any) -> Op[Mark | None]:
        return self._operations.mark((yield from self._found("current_row", key)))

    def _found(self, name: str, key: Any) -> Op[list[Row]]:
        rows = yield from self._ask(name, {"key": key})
        if not rows:
            raise Misuse(f"{self._table} has no row whose {self._key} is {key!r}: insert it before it is fenced")
        return rows

    def _ask(self, name: str, values: Mapping[str, Any], *, columns: str = "") -> Op[list[Row]]:
        sql = self._operations.statement(name).format(**self._names, columns=columns)
        return (yield from ask(Query(sql, values)))

    def _do(self, connection: Any, op: Op[T]) -> T:
        return run(op, blocking(connection, self._operations.dialect))

    async def _do_async(self, connection: Any, op: Op[T]) -> T:
        return await arun(op, await asynchronous(connection, self._operations.dialect))

    # -- names

    def _scope(self, key: Any) -> str:
        return f"{self._table}/{key}"

    def _checked(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        if not values:
            raise Misuse("an update needs values to write; to announce an owner, call raise_to")
        own = sorted(name for name in values if str(name).lower() in MARKS)  # SQLite and MySQL know no case in names
        if own:
            raise Misuse(f"the fence writes {', '.join(own)} by itself")
        return values

    def _quoted(self, what: str, name: object) -> str:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise Misuse(f"{what} {name!r} is refused: a name is letters, digits and underscores, as it stands in SQL")
        quote = '"' if self._operations.dialect == "postgresql" else "`"
        return f"{quote}{name}{quote}"


def _parts(table: object) -> list[Any]:
    return table.split(".") if isinstance(table, str) else [table]
