"""The judge: each check and each rule of its reader taken away. A judge that cannot find is worse than none."""

from __future__ import annotations

from tests.mutants.judge_lives import LIVES
from tests.mutants.judge_logs import LOGS
from tests.mutants.judge_rights import JUDGED, RIGHTS
from tests.mutants.mutant import Mutant

READ = ("tests/proof/test_history.py",)
PLAIN = ("tests/proof/test_plain.py",)
WROTE = ("tests/proof/test_recorder.py",)

_READING: tuple[Mutant, ...] = (
    Mutant(
        "judge: must fail",
        "what must break and does not speaks against a run",
        "proof/judge/__init__.py",
        "verdict = Verdict.MUST_FAIL if violations else Verdict.IDLE",
        "verdict = Verdict.MUST_FAIL",
        JUDGED,
    ),
    Mutant(
        "judge: idle is bad",
        "idle is not good",
        "proof/judge/verdict.py",
        "{Verdict.BROKEN, Verdict.IDLE}",
        "{Verdict.BROKEN}",
        JUDGED,
    ),
    Mutant(
        "judge: nothing checked",
        "what was not checked is not kept",
        "proof/judge/__init__.py",
        "    elif not checks:\n",
        "    elif because:\n",
        JUDGED,
    ),
    Mutant(
        "judge: unknown invariants",
        "a run names invariants that there are",
        "proof/judge/__init__.py",
        "    if unknown:\n",
        "    if False:\n",
        JUDGED,
    ),
    Mutant(
        "judge: needs",
        "a line tells what it has to",
        "proof/judge/__init__.py",
        "        check_call(call)\n",
        "        pass\n",
        READ,
    ),
    Mutant(
        "judge: settled by a repeat",
        "a repeat tells that the first was done",
        "proof/judge/settled.py",
        'return "ok" not in answers',
        "return False",
        JUDGED,
    ),
    Mutant(
        "judge: settled by the history",
        "the store's history settles",
        "proof/judge/settled.py",
        "    if any(not is_operators(entry) for entry in case.told.get(right, ())):\n",
        "    if False:\n",
        JUDGED,
    ),
    Mutant(
        "judge: settled by silence",
        "a full history settles by its silence",
        "proof/judge/settled.py",
        '    return meta.history == "full"\n',
        "    return False\n",
        JUDGED,
    ),
    Mutant(
        "judge: settled by the row",
        "the row settles",
        "proof/judge/settled.py",
        "else _by_the_row(case, call)",
        "else False",
        JUDGED,
    ),
    Mutant(
        "judge: settled once",
        "of repeated calls one did it",
        "proof/judge/settled.py",
        "in reversed(case.unknown)}",
        "in case.unknown}",
        JUDGED,
    ),
    Mutant(
        "judge: settled claims",
        "a claim without an answer is found",
        "proof/judge/settled.py",
        "        _settle_claims(evidence, case)\n",
        "",
        JUDGED,
    ),
    Mutant(
        "judge: lost answers linger",
        "a lost call may arrive at any time",
        "proof/judge/evidence.py",
        '    return inf if call.answered is None or call.outcome == "unknown" else call.answered',
        '    return call.sent if call.answered is None or call.outcome == "unknown" else call.answered',
        JUDGED,
    ),
    Mutant(
        "judge: reader: version",
        "another version is refused",
        "proof/history.py",
        "    if head.version != VERSION:\n",
        "    if False:\n",
        READ,
    ),
    Mutant(
        "judge: reader: one run",
        "two runs are not one",
        "proof/history.py",
        "        if len(metas) != 1:\n",
        "        if not metas:\n",
        READ,
    ),
    Mutant(
        "judge: reader: first line",
        "a first line stands first",
        "proof/history.py",
        "if isinstance(line, Meta | Part) and number > 1:",
        "if False:",
        READ,
    ),
    Mutant(
        "judge: reader: unknown fields",
        "an unknown field is a mistake",
        "proof/history.py",
        " forbid_unknown_fields=True,",
        "",
        READ,
    ),
    Mutant(
        "judge: reader: torn",
        "a torn last line is left out",
        "proof/history.py",
        '        return "truncated" in str(error)\n',
        "        return False\n",
        READ,
    ),
    Mutant(
        "judge: reader: answers",
        "of an answered call the answer is kept",
        "proof/history.py",
        "if call.answered is not None or (call.process, call.number) not in known]",
        "]",
        READ,
    ),
    Mutant(
        "judge: reader: processes",
        "numbers are a process's own",
        "proof/history.py",
        "    known = {(call.process, call.number) for",
        "    known = {(process, call.number) for process in {call.process for call in calls} for",
        READ,
    ),
    Mutant(
        "judge: reader: other errors",
        "whatever a line holds, it is a mistake in the file",
        "proof/history.py",
        "(msgspec.MsgspecError, RecursionError) as error:\n            raise",
        "msgspec.MsgspecError as error:\n            raise",
        READ,
    ),
    Mutant(
        "judge: recorder: asked",
        "a question is written before it is sent",
        "proof/recorder.py",
        "        self.write(line)\n        return line\n\n    def answered",
        "        return line\n\n    def answered",
        WROTE,
    ),
    Mutant(
        "judge: recorder: short writes",
        "a line that does not fit is told",
        "proof/recorder.py",
        "        if os.write(self._fd, data) != len(data):\n",
        "        if os.write(self._fd, data) < 0:\n",
        WROTE,
    ),
    Mutant(
        "judge: recorder: own files",
        "each start writes a file of its own",
        "proof/recorder.py",
        " | os.O_EXCL",
        "",
        WROTE,
    ),
)

_PLAIN: tuple[Mutant, ...] = tuple(
    Mutant(
        f"judge: plain: {name}",
        "no life is taken for plain that an invariant minds",
        "proof/judge/plain.py",
        old,
        new,
        PLAIN,
    )
    for name, old, new in (
        ("refusals", "case.refusals or ", ""),
        ("one claim", "case.claims[0] if len(case.claims) == 1 else None", "case.claims[0] if case.claims else None"),
        ("one completion", 'calls.count("complete") != 1', 'calls.count("complete") < 1'),
        ("the same holder", '"outcome", "generation", "owner", "process"', '"outcome", "generation"'),
        ("the completion is the last", " or write.sent > end.answered", ""),
        ("calm", "end.sent > evidence.first_calm", "False"),
        ("deadlines", "effect.sent <= effect.deadline <= ends", "effect.sent <= effect.deadline"),
        ("late effects", "effect.sent <= effect.deadline <= ends", "effect.deadline <= ends"),
        (
            "the result",
            "_COMPLETED, end.generation, end.result, 0, 0)",
            "_COMPLETED, end.generation, row.result, 0, 0)",
        ),
        ("who claimed", " or taken.owner != claim.owner", ""),
        ("ended leases", " or entry.at >= until", ""),
        (
            "counters",
            "(_RUNNING, generation, generation, 0, 0)",
            "(_RUNNING, generation, generation, *_stands(entry)[3:])",
        ),
    )
)

JUDGE: tuple[Mutant, ...] = (*RIGHTS, *LIVES, *LOGS, *_READING, *_PLAIN)
