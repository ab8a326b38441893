"""The fixtures of the plugin, also where the package was not installed and its entry point is not known."""

from __future__ import annotations

from tenure.testing.plugin import tenure_app, tenure_inline, tenure_kit, tenure_own_app, tenure_store

__all__ = ["tenure_app", "tenure_inline", "tenure_kit", "tenure_own_app", "tenure_store"]
