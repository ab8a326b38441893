"""`tenure prove`: what makes its verdict worth something. A run that looks away, or disturbs nothing, shows nothing."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

WHOLE = "tests/proof/test_prove.py"
PARTS = "tests/proof/test_prove_parts.py"
TOLD = "tests/proof/test_prove_told.py"
FAULTS = "tests/proof/test_prove_faults.py"


def _looked_at(file: str, words: str) -> tuple[str, ...]:
    return (file, "-k", words)


_JUDGED: tuple[Mutant, ...] = (
    Mutant(
        "prove: exit code",
        "a broken promise ends with 1",
        "cli/prove.py",
        "return Exit.DONE if proof.judgement.good else Exit.REFUSED",
        "return Exit.DONE",
        _looked_at(WHOLE, "overtaken_is_found_out"),
    ),
    Mutant(
        "prove: lost lines",
        "an acknowledged write that is not there any more is missed",
        "proof/prove/gathering.py",
        'if name not in kept and call.outcome == "ok":',
        "if False:",
        _looked_at(TOLD, "replaced"),
    ),
    Mutant(
        "prove: must fail",
        "a lease that is used as a lock has to be seen to fail",
        "proof/prove/plan.py",
        'return ("I7",) if self.workload == "mutex" else ()',
        "return ()",
        _looked_at(WHOLE, "used_as_a_lock"),
    ),
    Mutant(
        "prove: nothing met",
        "a run in which nothing came late does not say that it held",
        "proof/prove/outcome.py",
        "return _HELD if self.refused_writes or fates else _NOTHING_MET",
        "return _HELD",
        _looked_at(TOLD, "concluded"),
    ),
    Mutant(
        "prove: whose fault",
        "what broke in the store is not laid at the destination's door",
        "proof/prove/outcome.py",
        "if (elsewhere and unfinished is None) or",
        "if",
        _looked_at(TOLD, "concluded"),
    ),
    Mutant(
        "prove: one step",
        "the reference destination compares and writes in one step",
        "proof/prove/places.py",
        "        with self._lock:\n",
        "        if True:\n",
        _looked_at(PARTS, "comes_between"),
    ),
    Mutant(
        "prove: asked first",
        "a call is written down before it is sent, and stays a question without an answer",
        "proof/prove/recorded.py",
        'noted: dict[str, Callable[..., Any]] = {\n            "turn": self._turn,\n',
        "noted: dict[str, Callable[..., Any]] = {\n",
        _looked_at(PARTS, "before_it_is_sent"),
    ),
)

_DONE: tuple[Mutant, ...] = (
    Mutant(
        "prove: first write",
        "a run in which no worker comes to write is no run",
        "proof/prove/runner.py",
        "            if not fleet.moments.empty():\n                return\n",
        "            return\n",
        _looked_at(WHOLE, "nothing_can_be_written"),
    ),
    Mutant(
        "prove: dead worker",
        "a worker that ends by itself ends the run",
        "proof/prove/fleet.py",
        "elif code is not None and not member.gone:",
        "elif False:",
        _looked_at(WHOLE, "ends_by_itself"),
    ),
    Mutant(
        "prove: still moving",
        "a stopped worker stands still before anything else is done",
        "proof/prove/fleet.py",
        "while os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WNOHANG) is None:",
        "while False:",
        _looked_at(WHOLE, "stands_still"),
    ),
    Mutant(
        "prove: stopped with the lock",
        "no worker is stopped while it holds the lock of the file",
        "proof/prove/nemesis.py",
        "while self._locks and not self._over.is_set() and not self._store_answers():",
        "while False:",
        _looked_at(FAULTS, "with_the_lock"),
    ),
    Mutant(
        "prove: failed fault",
        "a fault that goes wrong ends the run",
        "proof/prove/nemesis.py",
        "            self._error = self._error or error\n",
        "            self._over.set()\n",
        _looked_at(FAULTS, "goes_wrong"),
    ),
    Mutant(
        "prove: clock left",
        "in the end the clock is as it was",
        "proof/prove/nemesis.py",
        "if self._at.managed is not None and self._ahead:",
        "if False:",
        _looked_at(FAULTS, "undone"),
    ),
    Mutant(
        "prove: clock not believed",
        "a clock that the server does not follow is told",
        "proof/prove/managed.py",
        "        if abs(wrong) > _PATIENCE:\n",
        "        if False:\n",
        _looked_at(FAULTS, "not_believed"),
    ),
    Mutant(
        "prove: calm after a jump",
        "what was granted while the clock was ahead is waited for",
        "proof/prove/plan.py",
        'self.lease * (1 + JUMP * ("jump" in self.faults)) + QUIET',
        "self.lease + QUIET",
        _looked_at(FAULTS, "is_waited_for"),
    ),
    Mutant(
        "prove: no room",
        "a full file system has no room",
        "proof/prove/volume.py",
        "size={(room.f_blocks - room.f_bfree) * room.f_frsize}",
        "size={room.f_blocks * room.f_frsize}",
        _looked_at(FAULTS, "is_full_for_as_long"),
    ),
    Mutant(
        "prove: fallen server",
        "a server that did not survive a full disk is started again",
        "proof/prove/managed.py",
        "                if not self._server.running:\n",
        "                if self._server.running:\n",
        _looked_at(FAULTS, "did_not_survive"),
    ),
    Mutant(
        "prove: somebody else's disk",
        "only a store that the run started is broken",
        "proof/prove/plan.py",
        'if "disk" in self.faults and self.store is not None:',
        "if False:",
        _looked_at(WHOLE, "a_mistake_is_told"),
    ),
    Mutant(
        "prove: overtaken",
        "a request is kept back until others have overtaken it",
        "testing/streams.py",
        "            self.count(overtaken=await chosen.wait())\n",
        "            pass\n",
        _looked_at(FAULTS, "overtaken"),
    ),
    Mutant(
        "prove: network left",
        "in the end the network behaves",
        "testing/streams.py",
        "stream.delay, stream.allowance = 0.0, None",
        "pass",
        _looked_at("tests/unit/test_proxy.py", "behaves"),
    ),
    Mutant(
        "prove: overtaken writes",
        "copies of writes come after the next",
        "proof/prove/worker.py",
        "            self._under_way[run] = again\n",
        "            pass\n",
        _looked_at(WHOLE, "overtaken_is_found_out"),
    ),
    Mutant(
        "prove: orphans",
        "a run in a process apart ends with whoever started it",
        "proof/prove/apart.py",
        "    sys.stdin.read()\n    os.kill(os.getpid(), signal.SIGKILL)\n",
        "    sys.stdin.read()\n",
        _looked_at(FAULTS, "ends_with_whoever"),
    ),
)

PROVE = (*_JUDGED, *_DONE)
