"""The app and its one task: the pattern that a job with an effect elsewhere should follow."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from examples.child import tell_nemesis
from examples.stdlib_index.index import read_entry
from examples.stdlib_index.results import Results, results_of_thread
from tenure import App, Job, StaleToken

LEASE = 1.5
"""Seconds; short, so that a run of the example can wait for many of them to end."""

NETWORK = 0.02
"""Seconds between passing the gate and reaching the destination: a local database has no network that could be slow."""

app = App()


@app.task(lease=LEASE, max_takeovers=None)
def index_module(job: Job, module: str, path: str) -> str:
    """Put one module into the table, exactly once, whatever happens to the workers that try."""
    results = results_of_thread(os.environ["RESULTS"])
    with refusals_noted(results, job):
        # First announce the new owner: from here on no earlier one can change what is read below.
        with results.transaction():
            results.fence.raise_to(results, job.token)
        if results.has(module):
            return "an earlier owner had written it before it was lost"

        entry = read_entry(module, Path(path))

        # Then pass the gate, which asks this process's own clock whether there is still time, and write: the fence
        # compares generations in the very transaction that adds the row.
        with job.effect() as token:
            tell_nemesis(job.id)
            time.sleep(NETWORK)
            with results.transaction():
                results.fence.apply(results, token)
                results.add(entry, token)
    return f"{entry.lines} lines"


@contextmanager
def refusals_noted(results: Results, job: Job) -> Iterator[None]:
    """Keep a record of what the fence refused, for the report at the end of the run."""
    try:
        yield
    except StaleToken as stale:
        results.note_refusal(job.token, stale.current)
        raise
