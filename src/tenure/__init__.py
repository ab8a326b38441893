"""Tenure: durable jobs under expiring leases, fenced all the way to the destination of their effects.

    from tenure import App, Job

    app = App("sqlite:///shop.db")

    @app.task(queue="billing", lease=30, max_attempts=5, timeout=120)
    def charge(job: Job, order: int, cents: int) -> str: ...

    charge.enqueue(order=7, cents=1200)
    charge.options(priority=10, unique_key="order-7").enqueue(order=7, cents=1200)
    charge.enqueue_many([{"order": 8, "cents": 100}])

    with app.lease("nightly-report", duration=30) as lease: ...
    hold = app.claim("job-42", owner="A", duration=30)

The names below are the whole public interface; everything else may change. Each is imported when it is first asked for,
so that a process which only meets a fence loads no worker, and a test run without a job next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenure.app import App
    from tenure.errors import (
        BadArguments,
        BadResult,
        BadSettings,
        BadToken,
        LeaseHeld,
        LeaseLost,
        Misuse,
        NotAllowed,
        NotFound,
        OutcomeUnknown,
        OutOfSequence,
        Refused,
        StaleToken,
        TenureError,
        Unavailable,
    )
    from tenure.hold import Hold, Lease
    from tenure.named import NamedLease
    from tenure.protocol.ending import Cancel, Discard, Retry, Snooze
    from tenure.protocol.job import Enqueued, Filter, JobRecord
    from tenure.protocol.lease import Effect, Token
    from tenure.protocol.lifecycle import State
    from tenure.protocol.retry import Backoff
    from tenure.task import Task
    from tenure.worker.context import Job

__version__ = "0.1.0"

__all__ = [
    "App", "Backoff", "BadArguments", "BadResult", "BadSettings", "BadToken", "Cancel", "Discard", "Effect",
    "Enqueued", "Filter", "Hold", "Job", "JobRecord", "Lease", "LeaseHeld", "LeaseLost", "Misuse", "NamedLease",
    "NotAllowed", "NotFound", "OutOfSequence", "OutcomeUnknown", "Refused", "Retry", "Snooze", "StaleToken", "State",
    "Task", "TenureError", "Token", "Unavailable",
]  # fmt: skip

_HOMES = {
    "app": ("App",),
    "errors": (
        "BadArguments", "BadResult", "BadSettings", "BadToken", "LeaseHeld", "LeaseLost", "Misuse", "NotAllowed",
        "NotFound", "OutOfSequence", "OutcomeUnknown", "Refused", "StaleToken", "TenureError", "Unavailable",
    ),
    "hold": ("Hold", "Lease"),
    "named": ("NamedLease",),
    "protocol.ending": ("Cancel", "Discard", "Retry", "Snooze"),
    "protocol.job": ("Enqueued", "Filter", "JobRecord"),
    "protocol.lease": ("Effect", "Token"),
    "protocol.lifecycle": ("State",),
    "protocol.retry": ("Backoff",),
    "task": ("Task",),
    "worker.context": ("Job",),
}  # fmt: skip

if not TYPE_CHECKING:  # a checker that saw this would take any name for one of the package

    def __getattr__(name: str) -> object:
        """Import a public name from the module that is its home."""
        for home, names in _HOMES.items():
            if name in names:
                found = globals()[name] = getattr(import_module(f"tenure.{home}"), name)
                return found
        raise AttributeError(f"module 'tenure' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, asked for or not."""
    return sorted({*globals(), *__all__})
