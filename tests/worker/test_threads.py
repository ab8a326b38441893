"""Plain handlers in their threads: what fails besides a handler is told."""

from __future__ import annotations

import pytest

from tenure.protocol.job import Ending
from tenure.worker.run import Run
from tenure.worker.threads import ThreadExecutor
from tests.support.processes import wait_for
from tests.worker.bench import Clock, new_run


@pytest.mark.parametrize("kind", [RuntimeError, SystemExit])
def test_an_end_that_cannot_be_told_is_a_crash(kind: type[BaseException]) -> None:
    def finished(_run: Run, _ending: Ending | None) -> None:
        raise kind("no thread is to be had")

    crashes: list[BaseException] = []
    executor = ThreadExecutor(1, crashes.append)
    executor.open(finished)
    executor.start([new_run(Clock(), executor)])
    wait_for(lambda: crashes, 30.0, "the crash")
    assert isinstance(crashes[0], RuntimeError)
