"""The guards of what is settled beside a claim."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_SETTLER = ("tests/worker/test_settler.py",)

SETTLER = (
    Mutant(
        "feeder: leaves at the first failure",
        "a worker that stops tries once more to settle what the store has refused (R25)",
        "worker/feeder.py",
        "_LAST_TRIES = 2\n",
        "_LAST_TRIES = 1\n",
        ("tests/worker/test_feeder_outage.py",),
    ),
    Mutant(
        "feeder: waits for a lock at the end",
        "while a worker stops, one locked job holds up no other",
        "worker/feeder.py",
        "careful=self._careful or not self._claiming,",
        "careful=self._careful,",
        ("tests/worker/test_feeder_outage.py",),
    ),
    Mutant(
        "feeder: gives up what is locked",
        "a locked job is settled once it is free, while a worker stops",
        "worker/feeder.py",
        "while (self._busy or self._unsettled) and failed",
        "while self._unsettled and failed",
        ("tests/worker/test_feeder_outage.py",),
    ),
    Mutant(
        "feeder: gives back what was left behind",
        "what was left behind is no claim whose answer was lost: its lease runs out",
        "worker/run.py",
        "            self._left.add(run.lease.token)\n",
        "",
        ("tests/worker/test_feeder_outage.py", "tests/worker/test_warden.py"),
    ),
    Mutant(
        "warden: leaves nothing behind",
        "a run that nothing settles is left to its lease",
        "worker/warden.py",
        '            run.lease.lose(f"{run.stop.reason}, and it did not stop")\n            self._runs.leave(run)\n',
        '            run.lease.lose(f"{run.stop.reason}, and it did not stop")\n            self._runs.discard(run)\n',
        ("tests/worker/test_warden.py",),
    ),
    Mutant(
        "warden: a lost run is forgotten",
        "a run whose lease is lost is left to its lease",
        "worker/warden.py",
        "        if stop.verb is None:\n            self._runs.leave(run)\n",
        "        if stop.verb is None:\n            self._runs.discard(run)\n",
        ("tests/worker/test_warden.py",),
    ),
    Mutant(
        "settler: hands over what comes back",
        "only completions are settled beside the claim",
        "worker/feeder.py",
        "if run is not None and end.verb is Verb.COMPLETE]",
        "if run is not None]",
        _SETTLER,
    ),
    Mutant(
        "settler: a failed batch is forgotten",
        "what could not be settled beside is settled by the turn",
        "worker/feeder.py",
        "            self._finished.extendleft(reversed(failed))\n",
        "",
        _SETTLER,
    ),
    Mutant(
        "settler: a failed batch teaches nothing",
        "after a failure beside, the turn leaves out what another transaction has locked (B34)",
        "worker/feeder.py",
        "            self._careful = True\n            self._finished.extendleft(reversed(failed))\n",
        "            self._finished.extendleft(reversed(failed))\n",
        _SETTLER,
    ),
    Mutant(
        "settler: careless beside",
        "while a job is locked, nothing is settled without a look at the locks (B34)",
        "worker/feeder.py",
        "not self._settler.ready or self._careful or self._failures",
        "not self._settler.ready or self._failures",
        _SETTLER,
    ),
    Mutant(
        "settler: asks what is held too early",
        "nobody asks what is held while some of it is being settled (R28)",
        "worker/feeder.py",
        "if not self._uncertain or not self._is_alone:",
        "if not self._uncertain:",
        _SETTLER,
    ),
    Mutant(
        "settler: nobody waits for it",
        "a worker that stops waits for what is settled beside",
        "worker/feeder.py",
        "return bool(self._finished) or not self._is_alone",
        "return bool(self._finished)",
        _SETTLER,
    ),
    Mutant(
        "settler: takes batches without a thread",
        "a feeder that was not started settles all by itself",
        "worker/settler.py",
        "return self._started and not",
        "return not",
        _SETTLER,
    ),
    Mutant(
        "settler: settled and kept",
        "what was settled beside is renewed no more",
        "worker/feeder.py",
        "        self._keeper.drop(*[run.lease for run, _, _ in over])\n",
        "",
        _SETTLER,
    ),
)
