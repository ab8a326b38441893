"""Jobs that complete twice, are counted wrongly, or never end."""

from __future__ import annotations

from tenure.proof.history import Calm
from tests.proof.lines import Bad, claim, entry, operated, owned, row

BAD = {
    "I4 twice": Bad(
        "I4",
        ("completed twice", "A under generation 5 at 1.500 s", "A under generation 5 at 1.700 s"),
        claim(5, 0.0),
        owned("complete", 5, 1.0),
        owned("complete", 5, 1.2),
        row("completed", 5),
    ),
    "I4 another result": Bad(
        "I4",
        ("A's completion under generation 5", "with the result 'y' instead of 'x'"),
        claim(5, 0.0),
        owned("complete", 5, 1.0, result="x"),
        row("completed", 5, result="y"),
    ),
    "I4 another generation": Bad(
        "I4",
        ("A's completion under generation 5 was accepted", "completed under generation 6"),
        claim(5, 0.0),
        owned("complete", 5, 1.0),
        owned("complete", 6, 2.0, outcome="already"),
        row("completed", 6),
    ),
    "I4 undone": Bad(
        "I4",
        ("A's completion under generation 5 was accepted at 1.500 s", "in the end the job is discarded"),
        claim(5, 0.0),
        owned("complete", 5, 1.0),
        row("discarded", 5),
    ),
    "I4 repeated, another answer": Bad(
        "I4",
        ("A repeated its completion under generation 5 and was answered 'y' at 2.500 s", "the result is 'x'"),
        claim(5, 0.0),
        owned("complete", 5, 1.0, result="x"),
        owned("complete", 5, 2.0, outcome="already", result="y"),
        row("completed", 5, result="x"),
    ),
    "I14 left behind": Bad(
        "I14",
        ("it is still available in the end", "more than 20 s after the faults had stopped"),
        Calm(at=10.0, within=20.0),
        claim(1, 0.0),
        owned("release", 1, 1.0),
        row("available", 1, at=31.0),
    ),
    "I14 too late": Bad(
        "I14",
        ("A completed it at 33.500 s", "3.000 s after the time in which it had to be over"),
        Calm(at=10.0, within=20.0),
        claim(1, 25.0),
        owned("complete", 1, 33.0),
        row("completed", 1, at=40.0),
    ),
    "I15 an attempt too many": Bad(
        "I15",
        ("the row counts 2 attempts in the end, and 1 by what was answered (failed runs)",),
        claim(1, 0.0),
        owned("fail", 1, 1.0),
        row("available", 1, attempts=2),
    ),
    "I15 an attempt of before": Bad(
        "I15",
        ("the row counts 2 attempts in the end, and 1 by what was answered (failed runs)",),
        claim(1, 0.0),
        owned("fail", 1, 1.0),
        operated("retry", 2.0),
        claim(2, 3.0),
        owned("retry", 2, 4.0),
        row("available", 2, attempts=2),
    ),
    "I15 a failure that only the history tells": Bad(
        "I15",
        ("the row counts 0 attempts in the end, and 1 by what was answered (failed runs)",),
        claim(1, 0.0),
        owned("fail", 1, 1.0, outcome="unknown"),
        entry("fail", None, 1.2, right=1),
        row("available", 1, attempts=0),
        history="abnormal",
    ),
    "I15 above the maximum": Bad(
        "I15",
        ("the row counts 2 attempts, more than its maximum of 1",),
        claim(1, 0.0),
        owned("fail", 1, 1.0),
        claim(2, 2.0),
        owned("fail", 2, 3.0),
        row("discarded", 2, attempts=2, max_attempts=1),
    ),
    "I15 used up and waiting": Bad(
        "I15",
        ("its maximum of 1 attempt is used up, and in the end it is available",),
        claim(1, 0.0),
        owned("fail", 1, 1.0),
        row("available", 1, attempts=1, max_attempts=1),
    ),
    "I15 a takeover not counted": Bad(
        "I15",
        ("the row counts 0 takeovers in the end, and 1 by what was answered (lost workers)",),
        claim(1, 0.0),
        claim(2, 31.0, "B", lost=1),
        row("running", 2, takeovers=0),
    ),
}
