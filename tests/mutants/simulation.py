"""The guards of the protocol, each taken away in turn: the simulation has to report it within two thousand histories.

python -m tests.mutants.simulation                all of them
python -m tests.mutants.simulation fence floor    those whose name contains one of the words
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mutant import Mutant

HISTORIES = 2000
LIMIT = 600.0  # seconds for one mutant
ROOT = Path(__file__).parent.parent.parent
TESTS = ("tests/simulation/test_histories.py",)

MEMORY = (
    Mutant(
        "simulation: completion under any generation",
        "an owner's write needs the row's generation (R5)",
        "store/memory/moves.py",
        "if row is None or (row.owner, row.generation) != (owner, token.generation):",
        "if row is None or (verb is not Verb.COMPLETE and (row.owner, row.generation) != (owner, token.generation)):",
        TESTS,
    ),
    Mutant(
        "simulation: completion under an older generation of the same owner",
        "an owner's write needs the row's generation (R5)",
        "store/memory/moves.py",
        "if row is None or (row.owner, row.generation) != (owner, token.generation):",
        "if row is None or row.owner != owner:",
        TESTS,
    ),
    Mutant(
        "simulation: renewal of an ended lease",
        "only a lease that has not ended can be kept (R6)",
        "protocol/lifecycle.py",
        "Move(_OWNER, Verb.RENEW, _R, _R, Need.LEASE_LIVE)",
        "Move(_OWNER, Verb.RENEW, _R, _R)",
        TESTS,
    ),
    Mutant(
        "simulation: claim of a job that is owned",
        "a job is taken over only when its lease has ended (R1)",
        "protocol/lifecycle.py",
        "Move(_CLAIMER, Verb.TAKEOVER, _R, _R, Need.LEASE_ENDED,",
        "Move(_CLAIMER, Verb.TAKEOVER, _R, _R, Need.NOTHING,",
        TESTS,
    ),
    Mutant(
        "simulation: claim keeps the generation",
        "a claim raises the generation (R1)",
        "protocol/lifecycle.py",
        "Move(_CLAIMER, Verb.CLAIM, _A, _R, Need.DUE, raises=True)",
        "Move(_CLAIMER, Verb.CLAIM, _A, _R, Need.DUE)",
        TESTS,
    ),
    Mutant(
        "simulation: takeover keeps the generation",
        "a takeover raises the generation (R1)",
        "protocol/lifecycle.py",
        "Need.LEASE_ENDED, raises=True, counts=Counter.TAKEOVERS)",
        "Need.LEASE_ENDED, counts=Counter.TAKEOVERS)",
        TESTS,
    ),
    Mutant(
        "simulation: taking a job away keeps the generation",
        "taking a job away makes its owner's token stale at once (R2)",
        "protocol/lifecycle.py",
        "Move(_OPERATOR, Verb.RELEASE, _R, _A, raises=True)",
        "Move(_OPERATOR, Verb.RELEASE, _R, _A)",
        TESTS,
    ),
    Mutant(
        "simulation: floor ignored",
        "claims start above the floor (R3, R41)",
        "store/memory/moves.py",
        "return (row.generation if row.generation > floor else floor) + 1",
        "return row.generation + 1",
        TESTS,
    ),
    Mutant(
        "simulation: prune forgets the generation",
        "an id that comes back begins above its last generation (R3)",
        "store/memory/upkeep.py",
        "            world.raise_floor(row.generation)\n",
        "            pass\n",
        TESTS,
    ),
    Mutant(
        "simulation: release needs no right",
        "what was lost is not given back (R5)",
        "store/memory/moves.py",
        "if row is None or (row.owner, row.generation) != (owner, token.generation):",
        "if row is None or (verb is not Verb.RELEASE and (row.owner, row.generation) != (owner, token.generation)):",
        TESTS,
    ),
)
"""Guards of the memory store."""

SQLITE = (
    Mutant(
        "simulation: SQLite ends a run under any generation",
        "an owner's write needs the row's generation (R5)",
        "store/sqlite/statements.sql",
        "ELSE :reason END\nWHERE id = :job AND owner = :owner AND generation = :gen",
        "ELSE :reason END\nWHERE id = :job AND owner = :owner AND :generation = :gen",
        TESTS,
    ),
    Mutant(
        "simulation: SQLite renews an ended lease",
        "only a lease that has not ended can be kept (R6)",
        "store/sqlite/statements.sql",
        "AND generation = :generation AND lease_until > :boot_ms",
        "AND generation = :generation",
        TESTS,
    ),
    Mutant(
        "simulation: SQLite claims a job that is owned",
        "a job is taken over only when its lease has ended (R1)",
        "store/sqlite/statements.sql",
        "json_each(:tasks)) AND lease_until <= :boot_ms AND",
        "json_each(:tasks)) AND",
        TESTS,
    ),
    Mutant(
        "simulation: SQLite ignores the floor",
        "claims start above the floor (R3, R41)",
        "store/sqlite/statements.sql",
        "    generation = max(generation, (SELECT floor FROM tenure_store)) + 1,",
        "    generation = generation + 1,",
        TESTS,
    ),
)
"""Guards of the SQLite store."""

DESTINATIONS = (
    Mutant(
        "simulation: fence does not compare",
        "a fence refuses older generations (R31)",
        "fences/rule.py",
        "    if bid.generation < met:\n",
        "    if False:\n",
        TESTS,
    ),
    Mutant(
        "simulation: fence knows no order of writes",
        "a fence refuses repeats and swaps of one owner (R33)",
        "fences/rule.py",
        "    if bid.sequence <= mark.sequence:\n",
        "    if False:\n",
        TESTS,
    ),
    Mutant(
        "simulation: no raise before the read",
        "a new owner raises the fence before it reads (R32)",
        "worker/fencing.py",
        "            fence.raise_to(job.token)\n",
        "            pass\n",
        TESTS,
    ),
)
"""Guards of destinations."""

WORKER = (
    Mutant(
        "simulation: belief in claims from the answer",
        "belief counts from before the request (R13)",
        "worker/feeder.py",
        "            self._dispatch(batches, sent_at)",
        "            self._dispatch(batches, self._clock())",
        TESTS,
    ),
    Mutant(
        "simulation: belief in renewals from the answer",
        "belief counts from before the request (R13)",
        "worker/keeper.py",
        "lease.renewed(sent_at)",
        "lease.renewed(self._clock())",
        TESTS,
    ),
    Mutant(
        "simulation: gives back what was left behind",
        "a run that nothing settles is left to its lease, and is no claim whose answer was lost",
        "worker/run.py",
        "            self._left.add(run.lease.token)\n",
        "",
        TESTS,
    ),
    Mutant(
        "simulation: unknown renewal extends",
        "an unknown renewal extends nothing (R20)",
        "worker/keeper.py",
        "            self._unhealthy(str(error))\n            return\n",
        "            self._unhealthy(str(error))\n            answers = []\n",
        TESTS,
    ),
    Mutant(
        "simulation: stale renewal believed",
        "a holder is told of its loss",
        "worker/keeper.py",
        "                self._lose(lease, lost_reason(answer))",
        "                lease.renewed(sent_at)",
        TESTS,
    ),
    Mutant(
        "simulation: a loss settles",
        "a run whose lease was lost settles nothing",
        "worker/warden.py",
        "            if not run.end():\n                return\n",
        "            if run.ended:\n                return\n",
        TESTS,
    ),
    Mutant(
        "simulation: gate looks at no clock",
        "no effect starts once the lease cannot be trusted (R19)",
        "hold.py",
        "        reason = self.lost_reason if lost else None\n",
        "        reason = None\n",
        TESTS,
    ),
    Mutant(
        "simulation: reconciliation skipped",
        "a claim whose answer was lost is given back (R28)",
        "worker/feeder.py",
        "self._uncertain = self._uncertain or isinstance(error, OutcomeUnknown)",
        "self._uncertain = False",
        TESTS,
    ),
    Mutant(
        "simulation: ends dropped with a lost answer",
        "an end whose answer was lost is settled again",
        "worker/feeder.py",
        "            self._finished.extendleft(reversed(endings))\n",
        "",
        TESTS,
    ),
    Mutant(
        "simulation: nothing taken over",
        "a job whose worker is lost is taken over",
        "worker/lane.py",
        "takeovers=self.behind, heads",
        "takeovers=False, heads",
        TESTS,
    ),
)
"""Guards of the worker."""

SIMULATION: tuple[Mutant, ...] = (*MEMORY, *SQLITE, *DESTINATIONS, *WORKER)

_BROKEN = re.compile(r"^BROKEN: history (\d+)\n  (.+)", re.MULTILINE)
_MISSING = re.compile(r"^NOT REACHED: (.+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Found:
    """What the simulation said: after how many histories, and what it found; 0 histories for nothing."""

    histories: int
    what: str
    seconds: float


def find(mutant: Mutant, histories: int = HISTORIES) -> Found:
    """Play histories with a mutant in a copy of the package until something breaks."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tenure-mutant-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        mutate(copy / "tenure" / mutant.file, mutant)
        store = "sqlite" if mutant in SQLITE else "memory"
        command = [sys.executable, "-m", "tenure.testing.simulation", f"--store={store}", f"--histories={histories}"]
        environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [*command, "--first"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    seconds = time.monotonic() - began
    if done.returncode == 0:
        return Found(0, "", seconds)
    broken = _BROKEN.search(done.stdout)
    if broken is not None:
        return Found(int(broken.group(1)), broken.group(2), seconds)
    missing = _MISSING.search(done.stdout)
    if missing is None:
        raise SystemExit(f"{mutant.name}: the simulation failed\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return Found(histories, f"not reached: {missing.group(1)}", seconds)


def mutate(file: Path, mutant: Mutant) -> None:
    """Replace the guard; a text that is not there any more, or stands there twice, is a mistake in the table."""
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.name}: {mutant.old!r} stands {text.count(mutant.old)} times in {mutant.file}")
    file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


def main(words: list[str]) -> int:
    """Try the mutants whose name contains one of `words`, or all; exit status 1 when one is not found."""
    chosen = [mutant for mutant in SIMULATION if not words or any(word in mutant.name for word in words)]
    missed = 0
    for mutant in chosen:
        found = find(mutant)
        missed += not found.histories
        verdict = f"history {found.histories:5}: {found.what}" if found.histories else "NOT FOUND"
        sys.stdout.write(f"{mutant.name:60} {found.seconds:5.1f} s  {verdict}\n")
        sys.stdout.flush()
    return 1 if missed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
