"""A folder as the destination. There is no network before it: a write is held by stopping its process at the last step.

That step is to lock the scope, compare and rename, and without a fence just to rename. What it needs has been done by
then: the new page lies beside the old one, on the disk.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenure.demo.destinations.place import Place, Sent, Stage, Way
from tenure.fences.files import FileFence
from tenure.protocol.lease import Effect, Token


@contextmanager
def place(stage: Stage) -> Iterator[Place]:
    """Make a folder."""
    folder = stage.folder / "pages"
    folder.mkdir()
    yield Place({"folder": str(folder)}, "files in a folder")


@contextmanager
def page(way: Way, sent: Sent) -> Iterator[FilePage]:
    """Open a page in it."""
    yield FilePage(way, sent)


class FilePage:
    """A page in a file of its own."""

    answer = ""

    def __init__(self, way: Way, sent: Sent) -> None:
        folder = Path(way.address["folder"])
        self._path = folder / way.page
        self._scope = way.page
        self._sent = sent
        self._fence = FileFence(folder, step=self._step) if way.fence else None

    def raise_to(self, token: Token) -> None:
        """Announce a new owner; raises StaleToken."""
        if self._fence is not None:
            self._fence.raise_to(token, scope=self._scope)

    def read(self) -> str:
        """Read it."""
        return self._path.read_text() if self._path.exists() else ""

    def write(self, token: Effect, text: str) -> None:
        """Write it under a token; raises StaleToken."""
        if self._fence is not None:
            self._fence.write(self._path, text.encode(), token, scope=self._scope)
        else:
            self._replace(text)

    def _step(self, name: str) -> None:
        if name == "synced":
            self._sent()

    def _replace(self, text: str) -> None:
        aside = self._path.with_name(secrets.token_hex(8))
        with aside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        self._sent()
        aside.replace(self._path)
