"""`Program`: what worker and leases need of an app. They know no more of it, so the app may stand above them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from tenure.protocol.job import Claimer
from tenure.store.contract import Store
from tenure.task import Task
from tenure.worker.context import Clients


class Program(Clients, Protocol):
    """A program's tasks and its store; `tenure.App` is one."""

    timeout: float
    address: str | None

    @property
    def tasks(self) -> Mapping[str, Task[Any, Any, Any]]:
        """The tasks by their names."""
        ...

    @property
    def store(self) -> Store:
        """The open store."""
        ...

    @property
    def claimer(self) -> Claimer:
        """Who this process is when it owns named things."""
        ...

    def use_store(self, store: str | Store) -> None:
        """Use another store from now on."""
        ...
