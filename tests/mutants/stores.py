"""The guards of the memory store, and of what the SQL stores share."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, suite


def _memory(name: str, guard: str, file: str, old: str, new: str, *parts: str) -> Mutant:
    return Mutant(f"memory: {name}", guard, f"store/memory/{file}", old, new, suite("memory", *parts))


MEMORY = (
    _memory(
        "owner unchecked",
        "an owner's write names its owner (R5)",
        "moves.py",
        "if row is None or (row.owner, row.generation) != (owner, token.generation):",
        "if row is None or row.generation != token.generation:",
        "leases",
        "endings",
    ),
    _memory(
        "generation unchecked",
        "an owner's write names its generation (R5)",
        "moves.py",
        "if row is None or (row.owner, row.generation) != (owner, token.generation):",
        "if row is None or row.owner != owner:",
        "leases",
    ),
    _memory(
        "refused by nobody",
        "a refused write is told with the name of who held the generation (R46)",
        "moves.py",
        "    return max((entry.worker for entry in told if entry.worker is not None), default=None)\n",
        "    return None if told else None\n",
        "endings",
    ),
    _memory(
        "heavy listing",
        "a listing reads no message and no traceback (B30)",
        "jobs.py",
        "result=None, progress=None, failure=failure)",
        "result=None, progress=None)",
        "basics",
    ),
    _memory(
        "renewal shortens",
        "no renewal shortens a lease (R13)",
        "leases.py",
        "lease_until=max(until, row.lease_until or until)",
        "lease_until=until",
        "leases",
    ),
    _memory(
        "clock unchecked",
        "a move waits for what it needs of the clock",
        "moves.py",
        "return step if step is not None and _meets(row, step.need, now) else None",
        "return step",
        "leases",
    ),
    _memory(
        "floor ignored",
        "claims start above the floor (R3)",
        "moves.py",
        "return (row.generation if row.generation > floor else floor) + 1",
        "return row.generation + 1",
        "upkeep",
    ),
    _memory(
        "repeat taken for stale",
        "a repeated end is answered already (R7)",
        "leases.py",
        "_ended_by(row, token, ending.verb) or (",
        "False or (",
        "endings",
    ),
)

SHARED = (
    Mutant(
        "sql: stores in any order",
        "two enqueues of the same jobs cannot deadlock (B34)",
        "store/calls.py",
        "sorted(jobs, key=_key_and_id)",
        "jobs",
        ("tests/unit/test_calls.py",),
    ),
    Mutant(
        "sql: stores what is alike in any order",
        "two enqueues of the same jobs cannot deadlock (B34)",
        "store/calls.py",
        "sorted([rows.enqueue_each(job) for job in jobs])",
        "[rows.enqueue_each(job) for job in jobs]",
        ("tests/unit/test_calls.py",),
    ),
    Mutant(
        "sql: ends in any order",
        "two batches of ends cannot deadlock (B34)",
        "store/calls.py",
        "return sorted(endings, key=lambda end: end.token.job)",
        "return list(endings)",
        ("tests/unit/test_calls.py",),
    ),
    Mutant(
        "sql: repeat taken for stale",
        "a repeated end is answered already (R7)",
        "store/refusals.py",
        "    return met_by(end.token, Verdict.ALREADY if same else Verdict.STALE, met)",
        "    return met_by(end.token, Verdict.STALE, met)",
        suite("sqlite", "endings", "crash"),
    ),
    Mutant(
        "sql: stale taken for repeat",
        "another generation's end is stale (R5)",
        "store/refusals.py",
        "same = met is not None and met[2] == end.token.generation and met[5] in ends and met[1] != State.RUNNING",
        "same = met is not None and met[5] in ends and met[1] != State.RUNNING",
        suite("sqlite", "endings", "leases"),
    ),
    Mutant(
        "sql: confirmation ignored",
        "a run that completed its job itself has not failed (D1)",
        "store/refusals.py",
        "if end.confirms else {str(end.verb)}",
        "if False else {str(end.verb)}",
        suite("sqlite", "endings"),
    ),
    Mutant(
        "sql: anything confirms",
        "only a run that completed its job itself may confirm it (R7)",
        "store/refusals.py",
        "if end.confirms else {str(end.verb)}",
        "if True else {str(end.verb)}",
        suite("sqlite", "endings"),
    ),
    Mutant(
        "driver: lost answer forgotten",
        "a lost answer stays unknown (R30)",
        "store/driver.py",
        "raise (self._unknown or error)",
        "raise error",
        ("tests/unit/test_driver.py",),
    ),
    Mutant(
        "driver: lost answer of a claim repeated",
        "a claim is not repeated blindly (R28)",
        "store/driver.py",
        "return self._repeat_unknown and (",
        "return (",
        ("tests/unit/test_driver.py",),
    ),
    Mutant(
        "op: error not thrown in",
        "an error reaches the operation that asked",
        "protocol/op.py",
        "                request = op.throw(error)\n            else:\n                request = op.send(answer)\n"
        "    except StopIteration as stop:\n        result: T = stop.value\n        return result\n    finally:\n"
        "        op.close()\n\n\nasync def",
        "                raise\n            else:\n                request = op.send(answer)\n"
        "    except StopIteration as stop:\n        result: T = stop.value\n        return result\n    finally:\n"
        "        op.close()\n\n\nasync def",
        ("tests/unit/test_op.py",),
    ),
)
