"""The store contract as a test suite, written once; anybody's store can be proved with it under pytest.

Every part is a module of ordinary test functions that take a `bench`: a store under test, driven in one of four modes
(blocking or asynchronous; with connections of its own or inside the caller's open transaction). A store's author writes
one fixture, `subject`, makes the benches from it, and imports the parts, each into a test module of its own:

    # conftest.py
    @pytest.fixture
    def subject(): return Subject(MyStore(...), session=..., ...)   # fresh for every test

    bench = bench_fixture(*Mode)               # or *OWN, for a store that cannot join a caller's transaction
    own_bench = bench_fixture(*OWN)
    caller_bench = bench_fixture(*JOINED)
    crowd_bench = bench_fixture(*Mode)         # or those modes in which many may act at once

    # test_leases.py
    from tenure.testing.conformance.leases import *

Parts: `basics`, `leases`, `named`, `owners`, `endings`, `operators`, `upkeep`, `lifecycle` (generated from the
transition table), `callers` (the caller's transaction), `crash`, `crowd`, and `boundaries` for a store whose clock can
stand still, which takes its bench from a fixture named `still_bench`.
Nothing sleeps: the harness moves the store's clock.
"""

from __future__ import annotations

from tenure.testing.conformance.assertions import PARTS
from tenure.testing.conformance.bench import (
    JOINED,
    OWN,
    Bench,
    Mode,
    StoreUnderTest,
    Subject,
    Worker,
    bench_fixture,
    open_bench,
)

__all__ = [
    "JOINED",
    "OWN",
    "PARTS",
    "Bench",
    "Mode",
    "StoreUnderTest",
    "Subject",
    "Worker",
    "bench_fixture",
    "open_bench",
]
