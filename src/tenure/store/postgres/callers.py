"""A transaction of the caller's own, looked at before it carries our verbs, or by the verbs themselves.

A look costs a round trip. So the verbs for an effect look in the statement that does their work (`@ours`): where it has
found its row, all is well. Where it finds nothing, the verb asks why, and before a request that does not look by itself
there is a look, which raises. Remembered is to which database a connection leads: the same for as long as it is open.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from tenure.errors import Misuse
from tenure.protocol.op import Op, ask
from tenure.store.postgres.admission import check_commit
from tenure.store.postgres.requests import looks_itself
from tenure.store.postgres.target import Target
from tenure.store.statements import Batch, Call, Row

_seen: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""Callers' connections, and the identity of the database to which each leads."""


def is_known(raw: Any, identity: str) -> bool:
    """Tell whether a caller's connection was seen to lead to the database of this identity."""
    return _seen.get(raw) == identity


class CallersTransaction:
    """What must be true of a caller's transaction before it carries a verb, on whatever kind of connection.

    `identity` is the store's: which database this is, and which table in it holds the jobs.
    """

    def __init__(self, raw: Any, target: Target, identity: str, shift_ms: int) -> None:
        self.target = target
        self._raw = raw
        self._identity = identity
        self._table = identity.rpartition(":")[2]
        self.common = {"shift_ms": shift_ms, "table": self._table}
        self._looked = False

    def answer(self, batch: Batch) -> Op[list[list[Row]]]:
        """Have a batch executed, after a look unless it looks by itself."""
        if not self._looked and not (is_known(self._raw, self._identity) and looks_itself(batch)):
            yield from self._look()
        return (yield from ask(batch))

    def _look(self) -> Op[None]:
        """Look, once in a session, whether the transaction may carry our verbs; raises Misuse or BadSettings.

        The commit that the caller will make must be durable (R42).
        """
        self._looked = True
        (((commit, table),),) = yield from ask(Batch((Call("look"),)))
        if isinstance(commit, bytes):
            raise Misuse("connection= has client_encoding SQL_ASCII, in which psycopg decodes no text: set it to UTF8")
        check_commit("the transaction of connection=", commit)
        if table == self._table and not is_known(self._raw, self._identity):
            (((_seen[self._raw],),),) = yield from ask(Batch((Call("identify"),)))
        if table != self._table or not is_known(self._raw, self._identity):
            raise Misuse(
                f"connection= leads to another database than {self.target.label}: nothing could commit together"
            )
