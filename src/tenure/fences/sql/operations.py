"""What a SQL fence asks of its database, as operations: written once for every connection, sync and async."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal, TypeVar, get_args

from tenure.errors import Misuse, Unavailable
from tenure.fences.connections import Query
from tenure.fences.rule import Bid, Mark, Reset, judge
from tenure.protocol.op import Op, ask
from tenure.store.migrate import pending
from tenure.store.statements import Row, load_statements

Dialect = Literal["postgresql", "sqlite", "mysql"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)

T = TypeVar("T")


class Operations:
    """The operations in one dialect."""

    def __init__(self, dialect: Dialect, leap: int) -> None:
        self.dialect = dialect
        self.leap = leap
        self._package = f"{__package__}.{dialect}"
        self._sql = {name: statement.sql for name, statement in load_statements(self._package).items()}

    def alone(self, op: Op[T]) -> Op[T]:
        """Put an operation into a transaction of its own, where the caller has none open."""
        yield from self._do("begin")
        try:
            result = yield from op
        except GeneratorExit:
            raise
        except BaseException:
            # A connection that cannot even undo is left with its error, which tells more than this one's.
            with suppress(Exception):
                yield from self._do("rollback")
            raise
        yield from self._do("commit")
        return result

    def fitting(self, op: Op[T], *, held: bool) -> Op[T]:
        """Leave an operation to the caller's transaction, or put it into one of its own."""
        return op if held else self.alone(op)

    def migrate(self) -> Op[None]:
        """Apply the migrations that are missing; several statements, for one transaction."""
        if "lock_migrations" in self._sql:
            yield from self._do("lock_migrations")
        if not (yield from self._do("has_migrations")):
            yield from self._do("make_migrations")
        applied = {int(number) for (number,) in (yield from self._do("migrations"))}
        for migration in pending(self._package, applied):
            yield from ask(Query(migration.sql, {}))
            yield from self._do("note_migration", number=migration.number)

    def admit(self, bid: Bid) -> Op[None]:
        """Let a bid through and keep its mark; raises as `judge` does, and then nothing has changed.

        One statement decides; what stands around it is harmless in whichever transaction it runs.
        """
        values = {"scope": self.name(bid.scope), "leap": self.leap, **self.bidding(bid)}
        if "touch" in self._sql:
            yield from self._do("touch", scope=values["scope"])
        if not (yield from self._do("admit", **values)):
            self.explain((yield from self._do("lock", scope=values["scope"])), bid)

    def current(self, scope: str) -> Op[Mark | None]:
        """Read a scope's mark."""
        return self.mark((yield from self._do("current", scope=self.name(scope))))

    def reset(self, scope: str, reason: str) -> Op[Mark | None]:
        """Put a scope's mark aside and note it; returns what it was. Several statements, for one transaction."""
        mark = self.mark((yield from self._do("lock", scope=self.name(scope))))
        if mark is not None:
            values = {"job": self.name(mark.job), "generation": mark.generation, "sequence": mark.sequence}
            yield from self._do("note_reset", scope=self.name(scope), reason=self.name(reason), **values)
            yield from self._do("clear", scope=self.name(scope))
        return mark

    def resets(self, scope: str) -> Op[list[Reset]]:
        """List what was put aside, oldest first."""
        rows = yield from self._do("resets", scope=self.name(scope))
        return [
            Reset(scope, Mark(_text(job), int(generation), int(sequence)), float(at), reason)
            for job, generation, sequence, at, reason in rows
        ]

    # -- what the operations on rows need as well

    def statement(self, name: str) -> str:
        """Give the SQL of a statement."""
        return self._sql[name]

    def bidding(self, bid: Bid) -> dict[str, Any]:
        """Give a bid's own parameters."""
        return {"job": self.name(bid.job), "generation": bid.generation, "sequence": bid.sequence}

    def name(self, text: str) -> str:
        """Write a name as this dialect's statements take it."""
        return text.encode().hex() if self.dialect == "mysql" else text

    def mark(self, rows: list[Row], job: str = "") -> Mark | None:
        """Read a mark; `job` stands for one that is not known, because the fence is older than that column."""
        # A connection may be set to read whole numbers as text.
        if not rows or not int(rows[0][1] or 0):
            return None
        found, generation, sequence = rows[0]
        return Mark(_text(found) or job, int(generation), int(sequence))

    def explain(self, rows: list[Row], bid: Bid) -> None:
        """Say why the database did not let a bid through; return where it changed nothing because nothing was new."""
        mark = self.mark(rows, bid.job)
        if judge(mark, bid, leap=self.leap) != mark:
            raise Unavailable(f"scope {bid.scope!r} was reset just now, and nothing was changed: try again")

    def _do(self, name: str, **values: Any) -> Op[list[Row]]:
        return (yield from ask(Query(self._sql[name], values)))


def check_dialect(dialect: str) -> Dialect:
    """Return a dialect that a fence speaks; raises Misuse."""
    for known in DIALECTS:
        if dialect == known:
            return known
    raise Misuse(f"a SQL fence speaks {', '.join(DIALECTS[:-1])} or {DIALECTS[-1]}, not {dialect!r}")


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else bytes(value).decode()
