"""What a program must not do while a child process imports it to find its tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tenure.errors import Misuse

_loading: list[str] = []  # what this process is importing because its worker told it to


@contextmanager
def loading(module: str) -> Iterator[None]:
    """Import `module` inside, which only defines tasks then."""
    _loading.append(module)
    try:
        yield
    finally:
        _loading.pop()


def refuse_while_loading(deed: str) -> None:
    """Raise Misuse in a child process that is importing the program: each of its starts would do the deed again."""
    if _loading:
        raise Misuse(
            f"{_loading[-1]} {deed} when a child process imports it:"
            ' put what does that under `if __name__ == "__main__":`'
        )
