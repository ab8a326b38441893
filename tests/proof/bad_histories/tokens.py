"""Tokens that do not rise, have two owners, or are lost."""

from __future__ import annotations

from tests.proof.lines import Bad, claim, ended, entry, lost_claim, owned, row, taken

BAD = {
    "I1 a generation comes again": Bad(
        "I1",
        ("job j", "B was given generation 1 at 2.500 s", "A had been given generation 2 at 0.500 s"),
        claim(2, 0.0),
        owned("release", 2, 1.0),
        claim(1, 2.0, "B"),
    ),
    "I1 a generation stays": Bad(
        "I1",
        ("the store's history", "claim by A with generation 2", "after one by A with generation 2"),
        lost_claim(0.0),
        lost_claim(0.1, "B"),
        taken("claim", 2, 0.2),
        ended("release", 2, 0.3, "available"),
        taken("claim", 2, 0.4, owner=None),
        owned("release", 2, 0.25, outcome="unknown"),
        history="full",
    ),
    "I2 two owners": Bad(
        "I2", ("generation 1 was given to A at 0.500 s and to B at 0.700 s",), claim(1, 0.0), claim(1, 0.2, "B")
    ),
    "I5 forgotten": Bad(
        "I5", ("A was given generation 6", "the store knows only generation 5"), claim(6, 0.0), row("available", 5)
    ),
    "I5 vanished": Bad("I5", ("A was given generation 6", "gone and nobody pruned it"), claim(6, 0.0), row(None)),
    "I5 not written down": Bad(
        "I5",
        ("A was given generation 1", "the store's history does not tell of it"),
        claim(1, 0.0),
        entry("enqueue", 0, -1.0, "available"),
        history="full",
    ),
}
