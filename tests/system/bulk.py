"""Bulk calls of as many jobs as named, as ``python -m tests.system.bulk JOBS…``, and how much memory each took.

First, as many as the last of them with a wrong one at the end.
"""

from __future__ import annotations

import resource
import sys

from tenure import BadArguments
from tests.system.apps import app, quick


def peak() -> int:
    """Return the most memory that this process has had so far, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(sizes: list[int]) -> None:
    """Store them all, and tell."""
    app.timeout = 60.0
    try:
        quick.enqueue_many({"number": number if number < sizes[-1] - 1 else "last"} for number in range(sizes[-1]))
    except BadArguments as error:
        sys.stdout.write(f"{type(error).__name__} {error}\n")
    for size in sizes:
        before = peak()
        stored = quick.enqueue_many({"number": number} for number in range(size))
        assert [one.created for one in stored] == [True] * size
        sys.stdout.write(f"{size} {peak() - before}\n")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]])
