"""The guards of the line before a SQLite file's write lock."""

from __future__ import annotations

from tests.mutants.mutant import Mutant


def _line(name: str, guard: str, file: str, old: str, new: str, *, test: str) -> Mutant:
    tests = ("tests/sqlite/test_turnstile.py", "-k", test)
    return Mutant(f"sqlite line: {name}", guard, f"store/sqlite/{file}", old, new, tests)


LINE = (
    _line(
        "nobody waits in it",
        "a thread that commits without pause lets others in",
        "connect.py",
        "self._place = self._place or self._turnstile.enter(self._timeout)",
        "self._place = Place()",
        test="renewal_is_next",
    ),
    _line(
        "last come, first served",
        "threads take the lock in the order they came",
        "turnstile.py",
        "self._line.popleft()",
        "self._line.pop()",
        test="in_the_order",
    ),
    _line(
        "one a store",
        "every store of a process on one file shares the line",
        "turnstile.py",
        "key = (os.getpid(), file.st_dev, file.st_ino)",
        "key = (os.getpid(), file.st_dev, id(path))",
        test="every_name or renewal_is_next",
    ),
    _line(
        "given up, still in it",
        "who gives up leaves the line",
        "turnstile.py",
        "                self._line.remove(place)\n",
        "                pass\n",
        test="gives_up",
    ),
    _line(
        "interrupted, still inside",
        "an interrupted thread leaves the line",
        "turnstile.py",
        "        except BaseException:\n            self.leave(place)\n            raise\n",
        "        except BaseException:\n            raise\n",
        test="interrupted",
    ),
    _line(
        "refused, still inside",
        "a transaction that ended lets the next in",
        "connect.py",
        "                self.leave()\n",
        "                pass\n",
        test="given_up or gives_up",
    ),
    _line(
        "place given up on asking again",
        "an operation that asks again keeps its place",
        "connect.py",
        "self._place = self._place or self._turnstile.enter(self._timeout)",
        "self._place = self._turnstile.enter(self._timeout)",
        test="asks_again",
    ),
    _line(
        "lost place waited for",
        "a lost place does not stop the line",
        "turnstile.py",
        "                self._unless_stalled()\n",
        "",
        test="lost_place",
    ),
    _line(
        "callers stand in it",
        "a caller's transaction does not wait for who waits for its lock",
        "join.py",
        "        # Not through the turnstile:",
        "        from tenure.store.sqlite.turnstile import turnstile_of\n"
        "        turnstile_of(self._path).enter(60.0)\n        #",
        test="callers_transaction",
    ),
    _line(
        "readers stand in it",
        "what only reads takes no lock",
        "connect.py",
        "            if not all(STATEMENTS[call.name].reads for call in batch.calls):\n",
        "            if True:\n",
        test="only_reads",
    ),
    _line(
        "no gap",
        "a busy process leaves a gap to others",
        "turnstile.py",
        "            self._leave_gap()\n",
        "",
        test="gap",
    ),
    _line(
        "gap whatever was left",
        "time between transactions is a gap already",
        "turnstile.py",
        "max(0.0, self._owed - paid)",
        "self._owed",
        test="gap",
    ),
    _line(
        "gap without bound",
        "a gap is short",
        "turnstile.py",
        "+ held * _SHARE, _MOST_OWED)",
        "+ held * _SHARE, held)",
        test="gap",
    ),
    _line(
        "fork waits for who is inside",
        "a fork waits for transactions only",
        "connect.py",
        "if forks.under_way() or time.monotonic() >= until:",
        "if time.monotonic() >= until:",
        test="fork_waits",
    ),
    _line(
        "shared with a child",
        "a forked child has a line of its own",
        "turnstile.py",
        "key = (os.getpid(), file.st_dev, file.st_ino)",
        "key = (0, file.st_dev, file.st_ino)",
        test="line_of_its_own",
    ),
    _line(
        "short lock copied while taken",
        "a forked child finds no lock taken",
        "forks.py",
        "    brief.acquire()\n    while",
        "    while",
        test="short_lock",
    ),
    _line(
        "fork never over in the child",
        "a fork that is over hurries nobody",
        "forks.py",
        "    _forking.clear()\n",
        "",
        test="fork_that_is_over",
    ),
    _line(
        "fork never over in the parent",
        "a fork that is over hurries nobody",
        "forks.py",
        "    _forking.discard(threading.get_ident())\n",
        "",
        test="fork_that_is_over",
    ),
    _line(
        "closed to a signal's handler",
        "the handler of a signal may use the store",
        "forks.py",
        "brief = threading.RLock()",
        "brief = threading.Lock()",
        test="signals_handler",
    ),
)
