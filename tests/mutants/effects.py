"""The guards of a handler's effects: the gate, the guarded transaction, the key of a step, fences raised in time."""

from __future__ import annotations

from tests.mutants.joins import JOINS
from tests.mutants.mutant import Mutant, suite

_D1 = "tests/fences/test_same_database.py"
_EFFECTS = "tests/worker/test_effects.py"
_CONTEXT = "tests/worker/test_context.py"


def _job(name: str, guard: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(f"effect: {name}", guard, file, old, new, tests or (_EFFECTS,))


EFFECTS = (
    _job(
        "a locked job is waited for",
        "a transaction that is left open holds up no other job (B34)",
        "worker/feeder.py",
        "        except TenureError as error:\n            self._careful = True\n",
        "        except TenureError as error:\n",
        "tests/worker/test_feeder_outage.py",
    ),
    _job(
        "a locked job is taken for free",
        "a careful turn leaves out what another transaction has locked (B34)",
        "store/postgres/statements.sql",
        "generation = token.generation\n    FOR NO KEY UPDATE SKIP LOCKED\n) AS mine\n\n-- name: explain",
        "generation = token.generation\n) AS mine\n\n-- name: explain",
        _D1,
        "-k",
        "left_open",
    ),
    _job(
        "guard without a lock on postgres",
        "no claim slips in between the guard and the commit (D1)",
        "store/postgres/statements.sql",
        "AND @ours\nFOR NO KEY UPDATE\n",
        "AND @ours\n",
        _D1,
        "-k",
        "slips and postgres",
    ),
    _job(
        "guard with a lock too weak on postgres",
        "no claim slips in between the guard and the commit (D1)",
        "store/postgres/statements.sql",
        "AND @ours\nFOR NO KEY UPDATE\n",
        "AND @ours\nFOR KEY SHARE\n",
        _D1,
        "-k",
        "slips and postgres",
    ),
    _job(
        "guard without a lock on sqlite",
        "a transaction that has only read is locked by its guard (D1)",
        "store/sqlite/join.py",
        'connection.execute("DELETE FROM tenure_jobs WHERE 0")',
        "pass",
        _D1,
        "-k",
        "only_read",
    ),
    _job(
        "guard of any generation",
        "a guard names the generation (R5)",
        "store/sqlite/statements.sql",
        "SELECT id FROM tenure_jobs WHERE id = :job AND owner = :owner AND generation = :generation",
        "SELECT id FROM tenure_jobs WHERE id = :job AND owner = :owner",
        *suite("sqlite", "callers")[:1],
    ),
    _job(
        "guard of any owner",
        "a guard names the owner (R5)",
        "store/sqlite/statements.sql",
        "SELECT id FROM tenure_jobs WHERE id = :job AND owner = :owner AND generation = :generation",
        "SELECT id FROM tenure_jobs WHERE id = :job AND generation = :generation",
        *suite("sqlite", "callers")[:1],
    ),
    _job(
        "uncommitted completion taken for one",
        "a completion that did not commit is a failed attempt (D1)",
        "worker/run.py",
        "        if self.job.completes:\n            return self.raised(",
        "        if False:\n            return self.raised(",
        _D1,
        "-k",
        "did_not_commit and sqlite",
    ),
    _job(
        "committed completion taken for a failure",
        "an error after the commit does not undo it (D1)",
        "worker/run.py",
        "return replace(ending, confirms=True) if self.job.completes else ending",
        "return ending",
        _D1,
        "-k",
        "commit and sqlite",
    ),
    _job(
        "effects without numbers",
        "effects of a run are numbered (R33)",
        "hold.py",
        "return Effect(self.token.job, self.generation, next(self._numbers))",
        "return Effect(self.token.job, self.generation, 1)",
    ),
    _job(
        "gate that does not count the effect's time",
        "no effect starts for which the lease is too short (I16)",
        "hold.py",
        "        if left < seconds:",
        "        if left < 0:",
        _CONTEXT,
    ),
    _job(
        "key with the generation",
        "the key is the same for every run (R40)",
        "worker/context.py",
        'return _escaped(self.id) + ":" + ',
        'return _escaped(self.id) + f":{self.generation}:" + ',
    ),
    _job(
        "fences forgotten by plain handlers",
        "a declared fence is raised before the handler (R32)",
        "worker/fencing.py",
        "            job.check()\n            fence.raise_to(job.token)",
        "            job.check()",
    ),
    _job(
        "fences forgotten by async handlers",
        "a declared fence is raised before the handler (R32)",
        "worker/fencing.py",
        "            job.check()\n            await _raise(fence, job.token)",
        "            job.check()",
    ),
    _job(
        "store left behind its destination",
        "a store that was set back follows its destination (R41)",
        "worker/fencing.py",
        "                job.lift_floor(stale.current or 0)\n",
        "",
    ),
    _job(
        "store that follows nonsense",
        "a destination cannot lift the floor to the end of its digits (R38)",
        "worker/fencing.py",
        "0 < ahead <= FURTHEST",
        "0 < ahead",
    ),
    _job(
        "a taken-over run lifts the floor",
        "only who still owns the job may say that the store is behind (R41)",
        "worker/fencing.py",
        "            job.verify()\n",
        "",
    ),
    *JOINS,
)
