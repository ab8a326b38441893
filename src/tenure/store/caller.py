"""The caller's own connection: whatever wraps it, verbs run on the database driver's connection beneath."""

from __future__ import annotations

from inspect import ismethod
from typing import Any

_LONGEST_CHAIN = 5


def unwrapped(connection: object) -> object:
    """Return the database driver's connection beneath one of SQLAlchemy or Django; others come back as given.

    Both are recognised by where their classes live and never imported. A SQLAlchemy session's transaction begins here
    if it has not begun, just as it does for the session's own statements.
    """
    if not type(connection).__module__.startswith(("sqlalchemy.", "django.")):
        return connection
    if is_django(connection):
        wrapper: Any = connection
        wrapper.ensure_connection()
        return wrapper.connection
    for _ in range(_LONGEST_CHAIN):
        if not type(connection).__module__.startswith("sqlalchemy."):
            return connection
        # AsyncSession, AsyncConnection, a pooled connection; then Session (a method) and Connection (an attribute).
        for name in ("sync_session", "sync_connection", "driver_connection", "connection"):
            if hasattr(connection, name):
                found = getattr(connection, name)
                connection = found() if ismethod(found) else found
                break
    return connection


def is_django(connection: object) -> bool:
    """Tell whether this is ``django.db.connection``, or one of ``django.db.connections``."""
    return type(connection).__module__.startswith(("django.db.backends.", "django.utils.connection"))
