"""Holders who believe for too long."""

from __future__ import annotations

from tests.proof.lines import Bad, claim, owned

BAD = {
    "I7 two believers": Bad(
        "I7",
        ("A believed in generation 1 until 35.000 s", "B had taken over with generation 2 at 31.500 s", "3.500 s"),
        claim(1, 0.0, deadline=35.0),
        claim(2, 31.0, "B", lost=1),
    ),
    "I16 a late effect": Bad(
        "I16",
        ("A started an effect under generation 1 at 29.000 s", "1.000 s after it had stopped believing"),
        claim(1, 0.0),
        owned("effect", 1, 29.0, deadline=28.0),
    ),
    "I16 a late effect, by the claim's deadline": Bad(
        "I16",
        ("A started an effect under generation 1 at 29.000 s", "1.000 s after it had stopped believing"),
        claim(1, 0.0),
        owned("effect", 1, 29.0),
    ),
    "I16 a belief beyond the lease": Bad(
        "I16",
        ("A started an effect under generation 1", "believing 3.000 s longer than any lease that it was given"),
        claim(1, 0.0),
        owned("effect", 1, 29.0, deadline=33.0),
    ),
    "I16 no lease at all": Bad(
        "I16",
        ("A started an effect under generation 1", "never been given to anybody by then"),
        owned("effect", 1, 29.0),
    ),
}
