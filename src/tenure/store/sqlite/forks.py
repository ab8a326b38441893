"""A fork finds no SQLite connection of ours open: a child would inherit SQLite's notes about locks, but not the locks.

SQLite notes for each process which locks it holds on a file, while the kernel's locks stay with the parent. A child
that opens the file beside an inherited connection therefore takes no lock, and the parent, when it leaves, removes the
write-ahead log under it: what the child commits then is lost. So before a fork everything that is open is closed, once
the transactions under way have ended, and is opened again by whoever needs it. Who waits for a lock meanwhile gives up,
so that a fork waits for no more than transactions.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """Something with connections to close before a fork."""

    def before_fork(self) -> None:
        """Close what is open, and keep others from opening."""
        ...

    def after_fork(self) -> None:
        """Let everything go on, in the parent and in the child."""
        ...


_members: WeakSet[Forkable] = WeakSet()
_closed: list[Forkable] = []
_forking: set[int] = set()  # the threads that fork
brief = threading.RLock()
"""Taken for moments only, and by nobody else while a fork copies the process: a child finds it free.

A thread that has it may take it again: the handler of a signal comes at any moment, and may use the store.
"""


def watch(member: Forkable) -> None:
    """Have `member` told of forks for as long as it lives."""
    _members.add(member)


def under_way() -> bool:
    """Whether a fork waits for transactions to end, or copies the process right now."""
    return bool(_forking)


def _before() -> None:
    _forking.add(threading.get_ident())
    for member in list(_members):
        member.before_fork()
        _closed.append(member)
    brief.acquire()


def _after() -> None:
    brief.release()
    _forking.discard(threading.get_ident())
    while _closed:
        _closed.pop().after_fork()


def _after_in_child() -> None:
    _forking.clear()
    _after()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
