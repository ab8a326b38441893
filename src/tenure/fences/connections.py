"""The caller's own connection, whatever it is: the one place that knows how a statement runs on which.

A fence works inside the caller's transaction, so it runs on the caller's connection: that of a database driver, of
SQLAlchemy or of Django. Each is brought into one of two forms, `Blocking` or `Asynchronous`, which answer a `Query`.
Kinds are recognised by where their classes live; nothing of them is imported.

Errors of the client library pass through unchanged: the transaction is the caller's, and so is what to do about them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from inspect import isawaitable
from typing import Any, Final, cast

from tenure.errors import Misuse
from tenure.protocol.op import Request
from tenure.store.caller import unwrapped
from tenure.store.statements import Row, rewrite_parameters

KINDS: Final = (
    "a connection of sqlite3, psycopg, psycopg2, PyMySQL, mysqlclient, MySQL Connector/Python, asyncpg, aiosqlite,"
    " aiomysql or asyncmy; a connection or session of SQLAlchemy over one of them; or Django's connection"
)

Values = Mapping[str, Any] | Sequence[Any]

_NAMED, _FORMATTED, _NUMBERED = ":{}", "%({})s", "<{}>"
_PLACE: Final = re.compile(r"<(\w+)>")

_LEGACY: Final = -1  # sqlite3 begins a transaction by itself before a write
_IDLE: Final = 0  # libpq is not in a transaction
_IN_TRANSACTION: Final = 1  # the bit of MySQL's server status


@dataclass(frozen=True, slots=True)
class Query(Request[list[Row]]):
    """One statement, its parameters written ``:like_this``.

    It is answered with its rows; a statement that returns none, with one empty row for each row that it changed.
    """

    sql: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Blocking:
    """A blocking connection that answers queries.

    `holds` tells whether what runs on it now is kept back for a commit of the caller's; `holds_schema` tells the same
    of CREATE and ALTER.
    """

    given: Any
    form: str
    holds: bool
    holds_schema: bool
    execute: Callable[[str, Values], list[Row]]

    def __call__(self, request: Request[Any]) -> list[Row]:
        """Execute one query."""
        return self.execute(*_laid_out(cast("Query", request), self.form))

    def commit(self) -> None:
        """Commit what is kept back."""
        if self.holds:
            self.given.commit()


@dataclass(frozen=True, slots=True)
class Asynchronous:
    """The asynchronous twin of `Blocking`."""

    given: Any
    form: str
    holds: bool
    holds_schema: bool
    execute: Callable[[str, Values], Awaitable[list[Row]]]

    async def __call__(self, request: Request[Any]) -> list[Row]:
        """Execute one query."""
        return await self.execute(*_laid_out(cast("Query", request), self.form))

    async def commit(self) -> None:
        """Commit what is kept back."""
        if self.holds:
            await self.given.commit()


def blocking(connection: Any, dialect: str) -> Blocking:
    """Bring a blocking connection to a database of `dialect` into form; raises Misuse for every other."""
    if _lives_in(connection, "django"):
        _check_dialect(connection, connection.vendor, dialect)
        held = not connection.get_autocommit()
        _check_pipeline(connection, connection.connection)
        return Blocking(connection, _FORMATTED, held, held, partial(_on_cursor, connection.cursor))
    if not _lives_in(connection, "sqlalchemy") or hasattr(connection, "driver_connection"):
        raw = unwrapped(connection)
        driver = _driver(connection, raw, dialect, waits=False)
        return Blocking(
            connection, driver.form, driver.holds(raw), driver.holds_schema(raw), partial(driver.execute, raw)
        )
    if _lives_in(connection, "sqlalchemy.ext.asyncio"):
        raise _other_colour(connection, waits=True)
    core = connection if hasattr(connection, "exec_driver_sql") else _opened(connection)()
    if not core.in_transaction():
        core.begin()
    raw = unwrapped(core)
    driver = _driver(connection, raw, dialect, waits=False)
    return Blocking(connection, driver.form, driver.holds(raw), driver.holds_schema(raw), partial(_on_core, core))


async def asynchronous(connection: Any, dialect: str) -> Asynchronous:
    """Bring an asynchronous connection to a database of `dialect` into form; raises Misuse for every other."""
    if not _lives_in(connection, "sqlalchemy.ext.asyncio"):
        if _lives_in(connection, "sqlalchemy") or _lives_in(connection, "django"):
            raise _other_colour(connection, waits=False)
        driver = _driver(connection, connection, dialect, waits=True)
        execute = partial(driver.execute, connection)
        return Asynchronous(connection, driver.form, driver.holds(connection), driver.holds_schema(connection), execute)
    core = connection if hasattr(connection, "exec_driver_sql") else await _opened(connection)()
    if not core.in_transaction():
        await core.begin()
    raw = unwrapped(core)
    driver = _driver(connection, raw, dialect, waits=True)
    if _lives_in(raw, "asyncpg"):
        # SQLAlchemy begins there with the first statement that passes through it: ask what it will do.
        held = not core.sync_connection.connection.dbapi_connection.autocommit
        driver = replace(driver, holds=lambda _: held, holds_schema=lambda _: held)
    execute = partial(_on_async_core, core)
    return Asynchronous(connection, driver.form, driver.holds(raw), driver.holds_schema(raw), execute)


def is_known(connection: object) -> bool:
    """Tell whether this is a connection of a kind that a fence can use, rather than something that lends one."""
    homes = ("django", "sqlalchemy")
    return any(_lives_in(connection, home) for home in homes) or _found(connection) is not None


# -- recognising


def _lives_in(connection: Any, package: str) -> bool:
    return _is_of(type(connection), package)  # type: ignore[arg-type]  # a class can be hashed, whatever mypy says


@cache
def _is_of(kind: type, package: str) -> bool:
    return any(f"{base.__module__}.".startswith(f"{package}.") for base in kind.__mro__)


def _found(raw: Any) -> _Driver | None:
    return _driver_of(type(raw))  # type: ignore[arg-type]  # the same


@cache
def _driver_of(kind: type) -> _Driver | None:
    if _is_of(kind, "mysql.connector.aio"):
        return None
    names = (f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in kind.__mro__)
    return next((_DRIVERS[name] for name in names if name in _DRIVERS), None)


def _driver(given: object, raw: object, dialect: str, *, waits: bool) -> _Driver:
    driver = _found(raw)
    if driver is None:
        raise Misuse(f"{_kind(given)} is nothing that a SQL fence can work on: pass {KINDS}")
    if driver.waits is not waits:
        raise _other_colour(given, waits=driver.waits)
    _check_dialect(given, driver.dialect, dialect)
    _check_pipeline(given, raw)
    return driver


def _opened(connection: Any) -> Callable[[], Any]:
    """Find the method of a session of SQLAlchemy that gives its connection."""
    method = getattr(connection, "connection", None)
    if not callable(method):
        raise Misuse(f"{_kind(connection)} is neither a connection nor a session of SQLAlchemy: pass one of these")
    found: Callable[[], Any] = method
    return found


def _check_dialect(given: object, found: str, wanted: str) -> None:
    if found != wanted:
        raise Misuse(f"{_kind(given)} leads to {found}, and this fence speaks {wanted}: make a SQLFence({found!r})")


def _check_pipeline(given: object, raw: Any) -> None:
    # There a statement is sent with no look at its answer: a write that the fence lets through would seem refused.
    if _lives_in(raw, "psycopg") and raw.info.pipeline_status:
        raise Misuse(
            f"{_kind(given)} is in psycopg's pipeline mode, which hides rows: leave the pipeline, then call this"
        )


def _other_colour(given: object, *, waits: bool) -> Misuse:
    if waits:
        return Misuse(f"{_kind(given)} is asynchronous: call the method whose name ends in _async, and await it")
    return Misuse(f"{_kind(given)} is blocking: call the method whose name does not end in _async")


def _kind(given: object) -> str:
    return f"{type(given).__module__}.{type(given).__qualname__}"


# -- laying out and reading


def _laid_out(query: Query, form: str) -> tuple[str, Values]:
    sql, names = _written(query.sql, form)
    if form is _NUMBERED:
        return sql, tuple(query.parameters[name] for name in names)
    return sql, {name: query.parameters[name] for name in names}


@cache
def _written(sql: str, form: str) -> tuple[str, tuple[str, ...]]:
    """Write a statement's parameters in a form; returns their names too, in order of first use."""
    places = rewrite_parameters(sql, "<{}>")
    names = tuple(dict.fromkeys(_PLACE.findall(places)))
    number = {name: str(i) for i, name in enumerate(names, 1)}
    if form is _NUMBERED:
        return _PLACE.sub(lambda place: "$" + number[place.group(1)], places), names
    return rewrite_parameters(sql, form), names


def _rows(found: Iterable[Any]) -> list[Row]:
    return [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in found]


def _changed(count: int) -> list[Row]:
    return [()] * max(count, 0)


# -- executing


def _on_cursor(make: Callable[[], Any], sql: str, values: Values) -> list[Row]:
    cursor = make()
    try:
        cursor.execute(sql, values)
        return _rows(cursor.fetchall()) if cursor.description else _changed(cursor.rowcount)
    finally:
        cursor.close()


async def _on_async_cursor(make: Callable[[], Any], sql: str, values: Values) -> list[Row]:
    cursor = make()
    if isawaitable(cursor):
        cursor = await cursor
    try:
        await cursor.execute(sql, values)
        return _rows(await cursor.fetchall()) if cursor.description else _changed(cursor.rowcount)
    finally:
        await cursor.close()


def _on_core(core: Any, sql: str, values: Values) -> list[Row]:
    return _answer(core.exec_driver_sql(sql, values))


async def _on_async_core(core: Any, sql: str, values: Values) -> list[Row]:
    return _answer(await core.exec_driver_sql(sql, values))


def _answer(result: Any) -> list[Row]:
    return _rows(result.fetchall()) if result.returns_rows else _changed(result.rowcount)


async def _on_asyncpg(connection: Any, sql: str, values: Values) -> list[Row]:
    return _rows(await connection.fetch(sql, *values))


def _on_psycopg(connection: Any, sql: str, values: Values) -> list[Row]:
    plain = sys.modules["psycopg"].Cursor  # there is a connection, so the module is loaded
    return _on_cursor(partial(plain, connection, row_factory=_tuples), sql, values)


async def _on_async_psycopg(connection: Any, sql: str, values: Values) -> list[Row]:
    plain = sys.modules["psycopg"].AsyncCursor
    return await _on_async_cursor(partial(plain, connection, row_factory=_tuples), sql, values)


def _tuples(_cursor: object) -> type[tuple[Any, ...]]:
    return tuple


def _on_sqlite(connection: Any, sql: str, values: Values) -> list[Row]:
    cursor = connection.cursor()
    cursor.row_factory = None
    return _on_cursor(lambda: cursor, sql, values)


async def _on_aiosqlite(connection: Any, sql: str, values: Values) -> list[Row]:
    cursor = await connection.cursor()
    cursor.row_factory = None
    return await _on_async_cursor(lambda: cursor, sql, values)


def _on_dbapi(connection: Any, sql: str, values: Values) -> list[Row]:
    return _on_cursor(connection.cursor, sql, values)


async def _on_async_dbapi(connection: Any, sql: str, values: Values) -> list[Row]:
    return await _on_async_cursor(connection.cursor, sql, values)


# -- what is kept back for the caller's commit


def _sqlite_begun(connection: Any) -> bool:
    return bool(connection.in_transaction)


def _sqlite_holds(connection: Any) -> bool:
    if connection.in_transaction:
        return True
    return getattr(connection, "autocommit", _LEGACY) == _LEGACY and connection.isolation_level is not None


def _aiosqlite_begun(connection: Any) -> bool:
    return _sqlite_begun(connection._conn)  # noqa: SLF001 -- it shows too little of the connection inside


def _aiosqlite_holds(connection: Any) -> bool:
    return _sqlite_holds(connection._conn)  # noqa: SLF001 -- the same


def _libpq_holds(connection: Any) -> bool:
    return not connection.autocommit or int(connection.info.transaction_status) != _IDLE


def _asyncpg_holds(connection: Any) -> bool:
    return bool(connection.is_in_transaction())


def _mysql_holds(connection: Any) -> bool:
    # mysqlclient does not show the status: with it, autocommit counts as autocommit, transaction or not.
    return not connection.get_autocommit() or bool(getattr(connection, "server_status", 0) & _IN_TRANSACTION)


def _mysql_connector_holds(connection: Any) -> bool:
    return connection.in_transaction or not connection.autocommit


# -- the kinds


@dataclass(frozen=True, slots=True)
class _Driver:
    """What has to be known of one database driver; `holds` and `holds_schema` are those of `Blocking`."""

    dialect: str
    form: str
    execute: Callable[[Any, str, Values], Any]
    holds: Callable[[Any], bool]
    holds_schema: Callable[[Any], bool]
    waits: bool = False


# sqlite3 begins a transaction by itself before a write, but not before CREATE and ALTER.
_SQLITE = _Driver("sqlite", _NAMED, _on_sqlite, _sqlite_holds, _sqlite_begun)
_AIOSQLITE = _Driver("sqlite", _NAMED, _on_aiosqlite, _aiosqlite_holds, _aiosqlite_begun, waits=True)
_PSYCOPG = _Driver("postgresql", _FORMATTED, _on_psycopg, _libpq_holds, _libpq_holds)
_PSYCOPG2 = replace(_PSYCOPG, execute=_on_dbapi)
_ASYNC_PSYCOPG = replace(_PSYCOPG, execute=_on_async_psycopg, waits=True)
_ASYNCPG = _Driver("postgresql", _NUMBERED, _on_asyncpg, _asyncpg_holds, _asyncpg_holds, waits=True)
_MYSQL = _Driver("mysql", _FORMATTED, _on_dbapi, _mysql_holds, _mysql_holds)
_MYSQL_CONNECTOR = replace(_MYSQL, holds=_mysql_connector_holds, holds_schema=_mysql_connector_holds)
_ASYNC_MYSQL = replace(_MYSQL, execute=_on_async_dbapi, waits=True)

_DRIVERS: Final[Mapping[str, _Driver]] = {
    "sqlite3.Connection": _SQLITE,
    "aiosqlite.Connection": _AIOSQLITE,
    "psycopg.Connection": _PSYCOPG,
    "psycopg.AsyncConnection": _ASYNC_PSYCOPG,
    "psycopg2.connection": _PSYCOPG2,
    "asyncpg.Connection": _ASYNCPG,
    "asyncpg.PoolConnectionProxy": _ASYNCPG,
    "pymysql.Connection": _MYSQL,
    "MySQLdb.Connection": _MYSQL,
    "mysql.MySQLConnectionAbstract": _MYSQL_CONNECTOR,
    "mysql.PooledMySQLConnection": _MYSQL_CONNECTOR,
    "aiomysql.Connection": _ASYNC_MYSQL,
    "asyncmy.Connection": _ASYNC_MYSQL,
}
"""By the package in which a class lives, and its name."""
