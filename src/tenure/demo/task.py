"""The one task of the play: everybody knows its name and its lease; what running it means is each worker's own part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenure.app import App
from tenure.task import Task
from tenure.worker.context import Job

LEASE = 1.0
"""Seconds that a lease lasts: the shortest there is, since seven of them are waited for."""

TAKEOVERS = 20
"""More lost workers than the play has; the default of 5 would give up on this job after the fifth, as on poison."""

PAGE = "price-list"
"""What the job publishes."""

Part = Callable[[Job, str], str]


def register(app: App, part: Part) -> Task[Any, Any, str]:
    """Register the task `publish`, played as `part` says."""

    @app.task(lease=LEASE, max_takeovers=TAKEOVERS)
    def publish(job: Job, page: str) -> str:
        return part(job, page)

    return publish


def page_text(who: str, generation: int) -> str:
    """Write the page, so that it shows by whom and under which generation it was written."""
    return f"written by {who} under generation {generation}"


def draft_text(who: str, generation: int) -> str:
    """Write a draft of the page, which can be told from the page."""
    return f"drafted by {who} under generation {generation}"
