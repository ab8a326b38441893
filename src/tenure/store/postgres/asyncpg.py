"""Verbs inside a caller's transaction on an asyncpg connection, which is recognised by its name and never imported.

asyncpg asks the server for the type of each parameter and wants a Python value of that type; ours are all texts. So
every parameter is declared a text, from which the cast that stands in the SQL makes what is needed.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, cast

from tenure.errors import Misuse
from tenure.protocol.op import Request, arun
from tenure.store.postgres.callers import CallersTransaction
from tenure.store.postgres.requests import lay_out
from tenure.store.postgres.translate import translate_code
from tenure.store.statements import Batch, Call, Row

_PLACE = re.compile(r"\$(\d+)")


def is_asyncpg(connection: object) -> bool:
    """Tell whether this is a connection of asyncpg, or one that its pool has lent."""
    return type(connection).__module__.partition(".")[0] == "asyncpg" and hasattr(connection, "is_in_transaction")


def in_asyncpg_transaction(raw: Any) -> Any:
    """Return the connection itself, behind what a pool lends, if it is in a transaction; raises Misuse."""
    raw = getattr(raw, "_con", raw)
    if raw.is_closed():
        raise Misuse("connection= is closed: open it, or leave connection= out")
    if not raw.is_in_transaction():
        raise Misuse("connection= is not in a transaction: begin one first, or leave connection= out")
    return raw


class AsyncpgJoined:
    """Answers the requests of verbs inside the caller's transaction."""

    def __init__(self, raw: Any, caller: CallersTransaction) -> None:
        self._raw = raw
        self._caller = caller

    async def __call__(self, request: Request[Any]) -> list[list[Row]]:
        """Execute a batch, call by call; what fails is not committed, so that its outcome is known."""
        try:
            return await arun(self._caller.answer(cast("Batch", request)), self._execute)
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "asyncpg":
                raise
            code = getattr(error, "sqlstate", None)
            raise translate_code(code, str(error), self._caller.target, changing=False) from error

    async def _execute(self, request: Request[Any]) -> list[list[Row]]:
        return [await self._call(call) for call in cast("Batch", request).calls]

    async def _call(self, call: Call) -> list[Row]:
        sql, values = lay_out(call, self._caller.common)
        return [tuple(record) for record in await self._raw.fetch(_with_texts(sql), *values)]


@cache
def _with_texts(sql: str) -> str:
    return _PLACE.sub(r"$\1::text", sql)
