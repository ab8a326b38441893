"""Destinations for `tenure prove`, each a folder named by $PLACES: one that is careful, and one that only looks so."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tenure.errors import OutOfSequence, StaleToken
from tenure.fences import SQLFence
from tenure.protocol.lease import Token


class Careless:
    """Compares, and then writes in a second step."""

    def __init__(self) -> None:
        self.folder = Path(os.environ["PLACES"])

    def raise_to(self, token: Token, scope: str) -> None:
        kept = self._compared(token, scope)
        self._keep(scope, token.generation, kept["value"])

    def read(self, scope: str) -> str | None:
        value: str | None = self._kept(scope)["value"]
        return value

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        self._compared(token, scope)
        time.sleep(0.05)
        self._keep(scope, token.generation, value)

    def write_unfenced(self, scope: str, value: str) -> None:
        self._keep(scope, 0, value)

    def _compared(self, token: Token, scope: str) -> dict[str, Any]:
        kept = self._kept(scope)
        if kept["met"] > token.generation:
            raise StaleToken(token.job, token.generation, current=kept["met"])
        return kept

    def _kept(self, scope: str) -> dict[str, Any]:
        try:
            kept: dict[str, Any] = json.loads((self.folder / scope).read_text())
        except FileNotFoundError:
            return {"met": 0, "value": None}
        return kept

    def _keep(self, scope: str, met: int, value: str | None) -> None:
        with tempfile.NamedTemporaryFile("w", dir=self.folder, delete=False) as file:
            json.dump({"met": met, "value": value}, file)
        Path(file.name).replace(self.folder / scope)


class Careful:
    """A table in SQLite behind Tenure's own fence: comparison and write are one transaction."""

    def __init__(self) -> None:
        file = Path(os.environ["PLACES"], "careful.db")
        self.connection = sqlite3.connect(file, timeout=5.0, isolation_level=None)
        self.connection.execute("PRAGMA synchronous = OFF")
        self.connection.execute("CREATE TABLE IF NOT EXISTS kept (scope TEXT PRIMARY KEY, value TEXT)")
        self.fence = SQLFence("sqlite")
        self.fence.create(self.connection)

    def raise_to(self, token: Token, scope: str) -> None:
        self.fence.raise_to(self.connection, token, scope=scope)

    def read(self, scope: str) -> str | None:
        row = self.connection.execute("SELECT value FROM kept WHERE scope = ?", (scope,)).fetchone()
        return None if row is None else str(row[0])

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            self.fence.apply(self.connection, token, scope=scope, sequence=sequence)
            self.connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (scope, value))
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def write_unfenced(self, scope: str, value: str) -> None:
        self.connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (scope, value))


def refuse_late(token: Token, sequence: int, met: int, highest: int) -> None:
    """Refuse a write where its scope has met generation `met`, and under that the write `highest`."""
    if token.generation < met:
        raise StaleToken(token.job, token.generation, current=met)
    if token.generation == met and sequence <= highest:
        raise OutOfSequence(token.job, token.generation, sequence, highest=highest)


class Unordered(Careful):
    """Compares the generation, and not the number of the write under it."""

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            self.fence.apply(self.connection, token, scope=scope, sequence=self._next())
            self.connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (scope, value))
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    @staticmethod
    def _next() -> int:
        return time.monotonic_ns() // 1000


class Forgetful(Careful):
    """Passes the fence, acknowledges, and keeps nothing."""

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        super().write(token, scope, self.read(scope) or "[]", sequence)


class Failing(Careful):
    """Can be announced to and read, and fails at every write."""

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        raise ValueError("bad column")


class Broken(Careless):
    """Can be opened, and fails at whatever is asked of it."""

    def raise_to(self, token: Token, scope: str) -> None:
        raise OSError("there is nothing here")


class Later(Careless):
    """Makes coroutines, which nobody awaits."""

    async def write(self, token: Token, scope: str, value: str, sequence: int) -> None:  # type: ignore[override]
        super().write(token, scope, value, sequence)


NO_FACTORY = 3


def nothing() -> object:
    return object()


def away() -> Careless:
    raise ConnectionError("no server at all")


def of_shop(shop: str) -> Careless:
    raise AssertionError(shop)


async def later() -> Careless:
    return Careless()


def hanging() -> Careless:
    threading.Event().wait()
    return Careless()
