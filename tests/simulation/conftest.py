from __future__ import annotations

from collections.abc import Iterator

import pytest

from tenure.testing.simulation import STORES, Theatre


@pytest.fixture
def theatre() -> Iterator[Theatre]:
    with Theatre("memory").open() as theatre:
        yield theatre


@pytest.fixture(params=STORES)
def any_theatre(request: pytest.FixtureRequest) -> Iterator[Theatre]:
    with Theatre(request.param).open() as theatre:
        yield theatre
