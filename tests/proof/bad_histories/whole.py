"""Calls that happened by half, and answers that are not what happened."""

from __future__ import annotations

from tests.proof.lines import RUN, Bad, applied, claim, ended, entry, fenced, operated, owned, row

BAD = {
    "I12 by half: another result": Bad(
        "I12",
        (
            "A's completion under generation 1, at 1.000 s (sent, its answer was lost)",
            "by half",
            "'y', and 'x' was sent",
        ),
        claim(1, 0.0),
        owned("complete", 1, 1.0, outcome="unknown", result="x"),
        row("completed", 1, result="y"),
    ),
    "I12 by half: a result alone": Bad(
        "I12",
        ("A's completion under generation 1", "by half: its result is there and the job is running"),
        claim(1, 0.0),
        owned("complete", 1, 1.0, outcome="unknown", result="x"),
        row("running", 1, result="x"),
    ),
    "I12 twice": Bad(
        "I12",
        ("A's fail under generation 1", "happened 2 times"),
        claim(1, 0.0),
        owned("fail", 1, 1.0, outcome="unknown"),
        entry("fail", None, 1.2, right=1),
        entry("fail", None, 1.4, right=1),
        row("available", 1),
        history="abnormal",
    ),
    "I12 failed and done": Bad(
        "I12",
        ("a snooze by A under generation 1", "A was answered at 1.500 s that nothing was done"),
        claim(1, 0.0),
        owned("snooze", 1, 1.0, outcome="fail"),
        *RUN,
        ended("snooze", 1, 1.2, "available"),
        history="full",
    ),
    "I12 nobody ended it": Bad(
        "I12",
        ("a snooze by A under generation 1, which nobody asked for",),
        claim(1, 0.0),
        *RUN,
        ended("snooze", 1, 1.2, "available"),
        history="full",
    ),
    "I12 nobody claimed it": Bad(
        "I12", ("a claim by A under generation 1, which nobody asked for",), *RUN, history="full"
    ),
    "I12 nobody operated": Bad(
        "I12",
        ("a cancel under generation 1, which nobody asked for",),
        claim(1, 0.0),
        *RUN,
        entry("cancel", 2, 1.2, "cancelled", right=1),
        history="full",
    ),
    "I12 accepted and not done": Bad(
        "I12",
        ("A's snooze under generation 1 was accepted at 1.500 s, but the store's history does not tell of it",),
        claim(1, 0.0),
        owned("snooze", 1, 1.0),
        *RUN,
        history="full",
    ),
    "I12 operated and not done": Bad(
        "I12",
        ("1 release of operators were accepted, but the store's history tells of 0",),
        claim(1, 0.0),
        operated("release", 1.0),
        *RUN,
        history="full",
    ),
    "I12 nobody completed it": Bad(
        "I12",
        ("in the end it is completed under generation 1, which nobody asked for",),
        claim(1, 0.0),
        row("completed", 1),
    ),
    "I12 nobody runs it": Bad(
        "I12",
        ("in the end it is running under generation 2, which nobody asked for",),
        claim(1, 0.0),
        row("running", 2),
    ),
    "I12 refused and applied": Bad(
        "I12",
        (
            "scope s",
            "write 1 of generation 1 is in the destination's log",
            "A was answered at 1.500 s that it was refused",
        ),
        fenced("apply", 1, 1.0, outcome="fail"),
        applied("apply", 1, 1),
    ),
    "I12 nobody wrote": Bad(
        "I12",
        ("write 2 of generation 1 is in the destination's log, and nobody sent it",),
        fenced("apply", 1, 1.0),
        applied("apply", 1, 1),
        applied("apply", 1, 2),
    ),
    "I12 accepted and not applied": Bad(
        "I12",
        ("A's write 2 under generation 1 was accepted", "the destination's log does not tell of it"),
        fenced("apply", 1, 1.0),
        fenced("apply", 1, 2.0, sequence=2),
        applied("apply", 1, 1),
    ),
}
