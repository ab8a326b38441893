"""A worker in a process of its own: ``python -m tests.system.worker NAME SETTINGS``, the settings as JSON.

TENURE_STORE names the store. WALL_OFFSET, in seconds, sets the process's wall clock off the host's. ONLY names the
tasks of an older program, which knows no others. CRASH_AT names the point at which the process dies.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from typing import Any


def shift_the_wall_clock(seconds: float) -> None:
    """Let `time.time` be wrong from now on; to be called before anything else takes hold of it."""
    right, right_ns = time.time, time.time_ns
    time.time = lambda: right() + seconds
    time.time_ns = lambda: right_ns() + int(seconds * 1e9)


def main(name: str, settings: dict[str, Any]) -> None:
    """Work until told to stop."""
    logging.basicConfig(level=os.environ.get("LOG_LEVEL", "WARNING"))
    shift_the_wall_clock(float(os.environ.get("WALL_OFFSET", "0")))
    from tests.system import crashing
    from tests.system.apps import app
    from tests.system.journal import note

    only = os.environ.get("ONLY")
    if only is not None:
        app.tasks = {name: task for name, task in app.tasks.items() if name in only.split()}
    if crashing.VARIABLE in os.environ:
        crashing.lay(app)
    app.events.subscribe(
        lambda event: note(
            "event", kind=str(event.kind), job=event.job, generation=event.generation, detail=event.detail
        )
    )
    if "queues" in settings:
        settings["queues"] = tuple(settings["queues"])
    app.worker(name=name, **settings).run()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
