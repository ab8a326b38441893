"""A folder as a destination: each scope's value is one file, replaced under a `FileFence`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenure import Token
from tenure.fences.files import FileFence
from tenure.testing.fences import Destination


class FileDestination:
    """Values in files, through an instance of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fence = FileFence(folder)

    def raise_to(self, token: Token, scope: str) -> None:
        self.fence.raise_to(token, scope=scope)

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        self.fence.write(self._path(scope), value.encode(), token, sequence=sequence, scope=scope)

    def write_unfenced(self, scope: str, value: str) -> None:
        self._path(scope).write_text(value)

    def read(self, scope: str) -> str | None:
        path = self._path(scope)
        return path.read_text() if path.exists() else None

    def delete(self, scope: str) -> None:
        self._path(scope).unlink()

    def reset(self, scope: str, reason: str) -> None:
        self.fence.reset(scope, reason=reason)

    def resets(self, scope: str) -> list[str]:
        return [reset.reason for reset in self.fence.resets(scope)]

    @contextmanager
    def again(self) -> Iterator[Destination]:
        yield FileDestination(self.folder)

    def _path(self, scope: str) -> Path:
        return self.folder / f"value-{scope.encode().hex()[:200]}"
