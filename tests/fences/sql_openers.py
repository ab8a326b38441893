"""How each kind of connection is opened; `stack` closes it, and what it came from, at the end of a test."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, closing
from importlib import import_module
from typing import Any

import psycopg
import psycopg2
import pymysql
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from tests.fences.sql_ways import Database, Django

Held = Callable[[Database, ExitStack], Any]
Awaited = Callable[[Database, AsyncExitStack], Awaitable[Any]]


class Renamed(sqlite3.Connection):
    """A connection class of the application's own."""


def of_rows(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def sqlite_with(**settings: Any) -> Held:
    def opened(database: Database, stack: ExitStack) -> Any:
        connection = stack.enter_context(closing(sqlite3.connect(database.address, **settings)))
        connection.row_factory = of_rows
        return connection

    return opened


def psycopg_with(**settings: Any) -> Held:
    return lambda database, stack: stack.enter_context(psycopg.connect(database.address, **settings))


def psycopg2_one(database: Database, stack: ExitStack) -> Any:
    return stack.enter_context(closing(psycopg2.connect(database.address)))


def pymysql_with(**settings: Any) -> Held:
    return lambda database, stack: stack.enter_context(pymysql.connect(**database.parts, **settings))


def connector_with(**settings: Any) -> Held:
    connect = import_module("mysql.connector").connect
    return lambda database, stack: stack.enter_context(closing(connect(**database.parts, **settings)))


def pooled_connector(database: Database, stack: ExitStack) -> Any:
    pool = import_module("mysql.connector.pooling").MySQLConnectionPool(1, **database.parts)
    stack.callback(pool._remove_connections)
    return stack.enter_context(closing(pool.get_connection()))


def engine(database: Database, stack: ExitStack, driver: str, **settings: Any) -> sqlalchemy.Engine:
    made = sqlalchemy.create_engine(database.url(driver), **settings)
    stack.callback(made.dispose)
    return made


def core(driver: str, **settings: Any) -> Held:
    return lambda database, stack: stack.enter_context(engine(database, stack, driver, **settings).connect())


def core_that_begins(database: Database, stack: ExitStack) -> Any:
    """Take over from sqlite3 when a transaction begins, as SQLAlchemy's manual tells those who want it at once."""
    made = engine(database, stack, "pysqlite")
    sqlalchemy.event.listen(made, "connect", lambda connection, _: setattr(connection, "isolation_level", None))
    sqlalchemy.event.listen(made, "begin", lambda connection: connection.exec_driver_sql("BEGIN") and None)
    return stack.enter_context(made.connect())


def session(driver: str) -> Held:
    return lambda database, stack: stack.enter_context(Session(engine(database, stack, driver)))


def scoped(database: Database, stack: ExitStack) -> Any:
    made = scoped_session(sessionmaker(engine(database, stack, "psycopg")))
    stack.callback(made.remove)
    return made


def fairy(database: Database, stack: ExitStack) -> Any:
    return stack.enter_context(closing(engine(database, stack, "psycopg").raw_connection()))


async def aiosqlite_one(database: Database, stack: AsyncExitStack) -> Any:
    connection = await stack.enter_async_context(import_module("aiosqlite").connect(database.address))
    connection.row_factory = of_rows
    return connection


async def async_psycopg(database: Database, stack: AsyncExitStack) -> Any:
    opened = await psycopg.AsyncConnection.connect(database.address, row_factory=dict_row)
    return await stack.enter_async_context(opened)


async def asyncmy_one(database: Database, stack: AsyncExitStack) -> Any:
    return await stack.enter_async_context(import_module("asyncmy").connect(**database.parts))


def async_engine(database: Database, stack: AsyncExitStack, driver: str, **settings: Any) -> Any:
    made = create_async_engine(database.url(driver), **settings)
    stack.push_async_callback(made.dispose)
    return made


def async_core(driver: str) -> Awaited:
    return lambda database, stack: stack.enter_async_context(async_engine(database, stack, driver).connect())


def async_session(driver: str) -> Awaited:
    return lambda database, stack: stack.enter_async_context(AsyncSession(async_engine(database, stack, driver)))


async def async_scoped(database: Database, stack: AsyncExitStack) -> Any:
    made = async_scoped_session(async_sessionmaker(async_engine(database, stack, "asyncpg")), asyncio.current_task)
    stack.push_async_callback(made.remove)
    return made


def django_one(database: Database, stack: ExitStack) -> Any:
    connection = Django(database).connect()
    stack.callback(connection.close)
    return connection


AUTOCOMMIT = {"isolation_level": "AUTOCOMMIT"}


async def autocommit_asyncpg(database: Database, stack: AsyncExitStack) -> Any:
    connection = await import_module("asyncpg").connect(database.address)
    stack.push_async_callback(connection.close)
    return connection


async def autocommit_asyncmy(database: Database, stack: AsyncExitStack) -> Any:
    return await stack.enter_async_context(import_module("asyncmy").connect(**database.parts, autocommit=True))


async def autocommit_aiosqlite(database: Database, stack: AsyncExitStack) -> Any:
    connection = import_module("aiosqlite").connect(database.address, isolation_level=None)
    return await stack.enter_async_context(connection)


def async_autocommit(driver: str) -> Awaited:
    return lambda database, stack: stack.enter_async_context(
        async_engine(database, stack, driver, **AUTOCOMMIT).connect()
    )
