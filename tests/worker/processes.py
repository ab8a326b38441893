"""What tests of child processes share: bounded looks at jobs and at processes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tenure import App, JobRecord, State
from tests.support.processes import wait_for

PATIENCE = 40.0  # seconds: the machine may be busy
OVER = {State.COMPLETED, State.CANCELLED, State.DISCARDED}


def children() -> set[int]:
    """List the processes that this one started and did not reap."""
    own = str(os.getpid())
    return {int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat") if status(stat)[1] == own}


def status(stat: Path) -> list[str]:
    """Return the state of a process and what follows it; before it stands the name, in brackets."""
    try:
        return stat.read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ["gone", ""]


def when(app: App, job: str, is_so: Callable[[JobRecord], bool]) -> JobRecord:
    """Wait until the job's record is as described."""
    record: JobRecord | None = None

    def look() -> bool:
        nonlocal record
        record = app.client.get(job)
        return is_so(record)

    wait_for(look, PATIENCE, f"job {job}, which is {app.client.get(job)}")
    assert record is not None
    return record


def over(app: App, job: str) -> JobRecord:
    return when(app, job, lambda record: record.state in OVER)


def waits(app: App, job: str) -> JobRecord:
    return when(app, job, lambda record: record.ended is not None and record.state is State.AVAILABLE)


def result(app: App, job: str) -> Any:
    record = over(app, job)
    assert record.result is not None, record
    return msgspec.json.decode(record.result)


def gone(pid: int) -> bool:
    return status(Path(f"/proc/{pid}/stat"))[0] in {"gone", "Z"}


def written(file: Path) -> str:
    """Wait until something stands in the file."""
    return wait_for(lambda: file.read_text() if file.exists() else "", PATIENCE, f"{file.name} to be written")
