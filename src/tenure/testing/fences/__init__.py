"""The rule of fences as a test suite: point it at a destination, and see under pytest whether late writes get in.

A destination's author says in one class how a write reaches it (`Destination`), gives one fixture, and imports the
parts, each into a test module of its own:

    # conftest.py
    @pytest.fixture
    def destination(): yield MyDestination(...)          # empty for every test

    # test_my_destination.py
    from tenure.testing.fences.rule import *             # stale, repeated, malformed and foreign tokens; reset
    from tenure.testing.fences.crowd import *            # eight writers at once

Every part writes through the destination's own code, reads back what is there, and shows the damage that the same write
does when it goes around the fence: a test in which the fence cannot be missed proves nothing.

A destination is honest when it carries out `tenure.fences.rule` in one atomic step: read a token with `announcement` or
`writing`, let `judge` compare it with the mark and raise what is to be raised, keep what `judge` returns together with
the value, and read the reason of a reset with `check_reason`. The crowd finds a gap between compare and write only by
chance; ``tenure prove --destination`` also stops a worker in the gap.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tenure.testing.fences.rule", "tenure.testing.fences.crowd")

from tenure.testing.fences.destination import Destination  # noqa: E402 -- pytest must be told first

__all__ = ["Destination"]
