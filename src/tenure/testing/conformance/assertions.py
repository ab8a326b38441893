"""Tells pytest which modules' assertions are to explain themselves; must be imported before any of them."""

from __future__ import annotations

import pytest

PARTS = (
    "basics",
    "leases",
    "named",
    "owners",
    "endings",
    "operators",
    "upkeep",
    "lifecycle",
    "callers",
    "crash",
    "crowd",
    "boundaries",
)
"""The modules that hold the cases."""

pytest.register_assert_rewrite(*(f"tenure.testing.conformance.{module}" for module in (*PARTS, "bench")))
