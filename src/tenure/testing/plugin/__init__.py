"""The lease-loss kit as a pytest plugin: fixtures that play a job's life, and its losses, in the thread of a test.

    def test_a_late_worker_charges_nobody(tenure_kit, monkeypatch):
        effects = tenure_kit.effects()
        monkeypatch.setattr(bank, "charge", effects.wrap(lambda order, cents: "receipt"))
        tenure_kit.assert_no_effect_after_loss(charge, effects, order=7, cents=1200)

No thread is started, nothing sleeps and the clock stands still until the test moves it, so that a test that passed once
passes always. What the fixtures do stands in `tenure.testing.plugin.kit`, which is imported when a test first asks for
one of them: a project that uses none pays nothing for this plugin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tenure.app import App
    from tenure.store.contract import Store
    from tenure.testing.plugin.kit import Kit

__all__ = ["tenure_app", "tenure_inline", "tenure_kit", "tenure_own_app", "tenure_store"]


@pytest.fixture
def tenure_own_app() -> App:
    """Give the app whose tasks are tested; a project overrides this fixture with its own app."""
    from tenure.app import App

    return App("memory://")


@pytest.fixture
def tenure_store() -> Store | str | None:
    """Give the store to test on, None for memory; override it for handlers that need the store's own database.

    An address such as ``f"sqlite:///{tmp_path}/shop.db"``, or an open store whose clock can be moved.
    """
    return None


@pytest.fixture
def tenure_kit(tenure_own_app: App, tenure_store: Store | str | None) -> Iterator[Kit]:
    """Put the app on an empty store whose clock the test moves, for one test."""
    from tenure.testing.plugin.kit import Kit

    with Kit(tenure_own_app, tenure_store) as kit:
        yield kit


@pytest.fixture
def tenure_app(tenure_kit: Kit) -> App:
    """Give the app under test, on the kit's store."""
    return tenure_kit.app


@pytest.fixture
def tenure_inline(tenure_kit: Kit) -> Kit:
    """Let every enqueue of this test run what is due at once, before it returns."""
    tenure_kit.run_inline()
    return tenure_kit
