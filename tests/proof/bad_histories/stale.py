"""Refusals that are not true."""

from __future__ import annotations

from tests.proof.lines import RUN, Bad, applied, claim, fenced, operated, owned

BAD = {
    "I13 for no reason": Bad(
        "I13",
        ("A's completion under generation 1 was refused as stale at 1.500 s, though nothing had superseded it",),
        claim(1, 0.0),
        owned("complete", 1, 1.0, outcome="stale"),
    ),
    "I13 only later superseded": Bad(
        "I13",
        ("A's progress under generation 1 was refused as stale at 1.500 s",),
        claim(1, 0.0),
        owned("progress", 1, 1.0, outcome="stale"),
        operated("release", 2.0),
    ),
    "I13 only later taken over": Bad(
        "I13",
        ("A's progress under generation 1 was refused as stale at 1.500 s",),
        claim(1, 0.0),
        owned("progress", 1, 1.0, outcome="stale"),
        claim(2, 31.0, "B", lost=1),
    ),
    "I13 an end that never happened": Bad(
        "I13",
        ("A's progress under generation 1 was refused as stale at 2.500 s",),
        claim(1, 0.0),
        owned("release", 1, 1.0, outcome="unknown"),
        owned("progress", 1, 2.0, outcome="stale"),
        *RUN,
        history="full",
    ),
    "I13 a renewal in time": Bad(
        "I13",
        ("A's renewal under generation 1 was refused as stale at 29.500 s",),
        claim(1, 0.0),
        owned("renew", 1, 29.0, outcome="stale"),
    ),
    "I13 for an older one": Bad(
        "I13",
        ("A's progress under generation 2 was refused as stale", "for an older generation, 1"),
        claim(2, 0.0),
        owned("release", 2, 1.0),
        owned("progress", 2, 2.0, outcome="stale", current=1),
    ),
    "I13 accepted again": Bad(
        "I13",
        ("A's progress under generation 1 was accepted at 3.500 s", "refused as stale at 1.500 s"),
        claim(1, 0.0),
        owned("progress", 1, 1.0, outcome="stale"),
        operated("release", 1.2, outcome="unknown"),
        owned("progress", 1, 3.0),
    ),
    "I13 renewed after its end": Bad(
        "I13",
        ("A's renewal under generation 1 was accepted at 33.500 s", "refused as stale at 31.500 s"),
        claim(1, 0.0),
        owned("renew", 1, 31.0, outcome="stale"),
        owned("renew", 1, 33.0),
    ),
    "I13 at the destination": Bad(
        "I13",
        ("scope s", "A's write 1 under generation 1 was refused as stale", "had met nothing newer"),
        fenced("apply", 1, 1.0, outcome="stale"),
        applied("raise", 1, at=0.0),
        applied("raise", 2, at=9.0),
    ),
    "I13 at the destination, beside a store that may lose": Bad(
        "I13",
        ("scope s", "A's write 1 under generation 1 was refused as stale", "had met nothing newer"),
        fenced("apply", 1, 1.0, outcome="stale"),
        applied("raise", 1, at=0.0),
        durable=False,
    ),
    "I13 accepted again at the destination": Bad(
        "I13",
        ("scope s", "A's write 2 under generation 1 was accepted at 3.500 s", "refused as stale at 1.500 s"),
        fenced("apply", 1, 1.0, outcome="stale"),
        fenced("raise", 2, 1.2, "B", outcome="unknown"),
        fenced("apply", 1, 3.0, sequence=2),
        applied("apply", 1, 2),
    ),
}
