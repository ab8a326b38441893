"""Whether the store that a command names is there: a mistyped path must not become a new, empty store.

Nor must tables be made in a database of another program: who only looks reads a SQLite file through its `reader`.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from tenure.app import App
from tenure.client import Client
from tenure.errors import BadSettings
from tenure.store.contract import Store


def is_missing(store: Store) -> bool:
    """Tell whether the store is a file that is not there yet; makes nothing."""
    return _missing_file(store) is not None


def refuse_missing(store: Store) -> None:
    """Raise BadSettings, with what to do, for a file that is not there; a missing folder is for the store to tell."""
    path = _missing_file(store)
    if path is not None and path.parent.is_dir():
        address = f"sqlite:///{quote(os.fsencode(path))}"  # which leaves nothing that a shell would read
        raise BadSettings(
            f"there is no store {path}: check the path, or make it with `tenure migrate --store {address}`; a worker"
            " makes it, too, and so does the first enqueue"
        )


def onlooker(app: App) -> Client:
    """Make a client for who only looks, which may do without the right to write to a SQLite file."""
    refuse_missing(app.store)
    reader = getattr(app.store, "reader", None)
    return app.client if reader is None else Client(reader(timeout=app.timeout), app.store.verbs)


def _missing_file(store: Store) -> Path | None:
    path = getattr(store, "path", None)
    if not isinstance(path, Path):
        return None
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return path
    except OSError as error:
        raise BadSettings(f"cannot look for the store {path}: {error.strerror}") from None
    return None
