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
from contextlib import ExitStack
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
_one = threading.RLock()  # one fork at a time, so that what it has closed is its own


def watch(member: Forkable) -> None:
    """Have `member` told of forks, for as long as it lives or until it is forgotten."""
    with brief:
        _members.add(member)


def forget(member: Forkable) -> None:
    """Tell `member` of no further fork; one that is under way is told to its end."""
    with brief:
        _members.discard(member)


def under_way() -> bool:
    """Whether a fork waits for transactions to end, or copies the process right now."""
    return bool(_forking)


def _before() -> None:
    _forking.add(threading.get_ident())
    _one.acquire()
    brief.acquire()
    while fresh := [member for member in _members if member not in _closed]:
        brief.release()  # transactions under way need it to end
        try:
            with ExitStack() as stack:
                for member in fresh:
                    _closed.append(member)
                    stack.callback(member.before_fork)
        finally:
            brief.acquire()


def _after() -> None:
    brief.release()
    _forking.discard(threading.get_ident())
    with ExitStack() as stack:
        stack.callback(_one.release)
        while _closed:
            stack.callback(_closed.pop().after_fork)


def _after_in_child() -> None:
    _forking.clear()
    _after()


os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
