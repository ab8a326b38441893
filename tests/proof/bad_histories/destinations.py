"""Destinations that let the wrong things pass."""

from __future__ import annotations

from tests.proof.lines import Bad, applied, claim, fenced, owned

BAD = {
    "I8 older after newer": Bad(
        "I8",
        ("scope s", "write 7 of generation 1 was applied after write 1 of generation 2 was applied"),
        applied("apply", 2, 1),
        applied("apply", 1, 7),
    ),
    "I8 older after the announcement": Bad(
        "I8",
        ("write 2 of generation 1 was applied after generation 2 was announced",),
        applied("apply", 1, 1),
        applied("raise", 2),
        applied("apply", 1, 2),
    ),
    "I8 an older announcement": Bad(
        "I8", ("generation 1 was announced after generation 2 was announced",), applied("raise", 2), applied("raise", 1)
    ),
    "I8 the same write again": Bad(
        "I8",
        ("write 1 of generation 1 was applied after write 1 of generation 1 was applied",),
        applied("apply", 1, 1),
        applied("apply", 1, 1),
    ),
    "I8 swapped": Bad(
        "I8",
        ("write 1 of generation 1 was applied after write 2 of generation 1 was applied",),
        applied("raise", 1),
        applied("apply", 1, 2),
        applied("apply", 1, 1),
    ),
    "I8 another job": Bad(
        "I8",
        ("job k wrote where the generations of job j are counted",),
        applied("apply", 1, 1),
        applied("apply", 9, 1, job="k"),
    ),
    "I8 no generation": Bad("I8", ("a write without a generation was applied",), applied("apply", None)),
    "I9 lost update": Bad(
        "I9",
        (
            "write 1 of generation 2 was computed from version 0 and replaced version 1",
            "that of write 1 of generation 1: what was written in between is lost",
        ),
        applied("apply", 1, 1, before=0, after=1),
        applied("apply", 2, 1, before=0, after=2),
    ),
    "I10 applied twice": Bad(
        "I10",
        ("key j/charge was applied twice: by write 1 of generation 1 and by write 1 of generation 2",),
        applied("apply", 1, 1, key="j/charge"),
        applied("apply", 2, 1, key="j/charge"),
    ),
    "I10 another answer": Bad(
        "I10",
        ("key j/charge was answered 13 when it was repeated", "12 at first"),
        applied("apply", 1, 1, key="j/charge", value=12),
        applied("repeat", 2, 1, key="j/charge", value=13),
    ),
    "I10 a repeat of nothing": Bad(
        "I10",
        ("key j/charge was answered as a repeat, and nothing was applied under it",),
        applied("repeat", 1, 1, key="j/charge"),
    ),
    "I10 a key that is still kept": Bad(
        "I10",
        ("key j/charge was applied twice",),
        applied("apply", 1, 1, key="j/charge", at=0.0),
        applied("apply", 2, 1, key="j/charge", at=59.0),
        retention=60.0,
    ),
    "I10 a step twice": Bad(
        "I10",
        ("the step charge was recorded twice", "by A at 1.500 s, and by A at 2.500 s"),
        claim(1, 0.0),
        owned("step", 1, 1.0, key="charge", result="a"),
        owned("step", 1, 2.0, key="charge", result="b"),
    ),
    "I10 a step, another answer": Bad(
        "I10",
        ("the step charge has the result 'a'", "A was answered 'b' at 2.500 s"),
        claim(1, 0.0),
        owned("step", 1, 1.0, key="charge", result="a"),
        owned("step", 1, 2.0, key="charge", result="b", outcome="already"),
    ),
    "I11 after the seal": Bad(
        "I11",
        ("write 2 of generation 1 was applied after generation 1 had sealed it",),
        applied("apply", 1, 1),
        applied("seal", 1),
        applied("apply", 1, 2),
    ),
    "I11 after the completion": Bad(
        "I11",
        ("write 1 of generation 1 of job j was applied at 3.500 s, 2.000 s after A had completed the job",),
        claim(1, 0.0),
        owned("complete", 1, 1.0),
        applied("apply", 1, 1, at=3.5),
    ),
    "I11 sent after the completion": Bad(
        "I11",
        ("write 1 of generation 1 of job j was applied at 3.000 s, 1.500 s after A had completed the job",),
        claim(1, 0.0),
        owned("complete", 1, 1.0),
        fenced("apply", 1, 3.0),
        applied("apply", 1, 1),
    ),
}
