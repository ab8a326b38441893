"""A worker process: ``python -m examples.payments.worker NAME``; $TENURE_STORE names the store, $PROVIDER the provider.

``tenure worker --app examples.payments.tasks:app`` would do the same; this one also ends with who started it, and tells
the nemesis when a payment is about to leave.
"""

from __future__ import annotations

import re
import sys
import time

import httpx

from examples.child import end_with_starter, tell_nemesis
from examples.payments.tasks import app, way

THREADS = 4
NETWORK = 0.02
"""Seconds between passing the gate and leaving this process: a local provider has no network that could be slow."""


def main() -> None:
    """Work until SIGTERM, or until whoever started this process is gone."""
    end_with_starter()
    way.leaving = be_struck
    app.worker(name=sys.argv[1], threads=THREADS, grace=5.0, retention=None).run()


def be_struck(request: httpx.Request) -> None:
    """Tell whose payment is about to leave, and leave the nemesis a moment."""
    found = re.search(r"/invoices/(\d+)/payments", request.url.path)
    if found is not None:
        tell_nemesis(f"invoice-{found[1]}")
        time.sleep(NETWORK)


if __name__ == "__main__":
    main()
