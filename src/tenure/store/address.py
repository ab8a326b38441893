"""Addresses: `open_store` turns a URL into a store; nobody else knows which engines there are."""

from __future__ import annotations

import os
import re
from importlib import import_module
from urllib.parse import unquote

from tenure.errors import BadSettings
from tenure.store.contract import Store

FORMS = "sqlite:///path/to/file.db, postgresql://user@host/database, or memory://"
_SCHEME = re.compile(r"^([a-z]+)(?:\+\w+)?://")


def open_store(address: str) -> Store:
    """Open the store at `address`; nothing is connected yet. Raises BadSettings for an address that names no store.

    Forms: ``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``postgresql://…`` (also ``postgres://``), ``memory://``.
    """
    found = _SCHEME.match(address)
    scheme = found.group(1) if found else ""
    if scheme == "sqlite":
        return _sqlite(address[len(found.group(0)) :] if found else "")
    if scheme in {"postgresql", "postgres"}:
        return _postgres(address)
    if scheme == "memory":
        from tenure.store.memory import MemoryStore

        return MemoryStore()
    begins = f"with {scheme}://" if scheme else "without a scheme"
    raise BadSettings(f"no store has an address that begins {begins}; use {FORMS}")


def default_address() -> str:
    """Read the address from the environment variable TENURE_STORE; raises BadSettings when it is not set."""
    address = os.environ.get("TENURE_STORE", "")
    if not address:
        raise BadSettings(f"no store was named: give its address, or set TENURE_STORE to one of {FORMS}")
    return address


def _sqlite(rest: str) -> Store:
    if not rest.startswith("/") or len(rest) == 1:
        raise BadSettings("a SQLite store is sqlite:///relative/path.db or sqlite:////absolute/path.db")
    from tenure.store.sqlite import SqliteStore

    path = unquote(rest[1:], errors="surrogateescape")  # the name of a file may be any bytes
    if "\0" in path:
        raise BadSettings("the path of a SQLite store holds a NUL, which no path can")
    return SqliteStore(path)


def _postgres(address: str) -> Store:
    try:
        module = import_module("tenure.store.postgres")
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("psycopg"):
            raise BadSettings("a PostgreSQL store needs psycopg: pip install 'tenure[postgres]'") from error
        raise
    store: Store = module.PostgresStore(address)
    return store
