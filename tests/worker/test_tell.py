"""What a worker's log says, word by word."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from tenure.protocol.job import Answer, Claimed, Ending, Failure, Verdict
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import Verb
from tenure.worker.tell import detail_of, stopping


@pytest.mark.parametrize(("running", "told"), [(0, "0 jobs"), (1, "1 job"), (2, "2 jobs")])
def test_a_stop_tells_how_many_jobs_run_and_how_to_hurry_it(running: int, told: str) -> None:
    assert stopping(running, 30.0) == f"{told} running, grace 30 s; again to stop now"


def test_a_failure_is_told_with_where_to_look() -> None:
    claimed = cast("Claimed", SimpleNamespace(id="j", attempts=0, max_attempts=5))
    ending = Ending(Token("j", 1), Verb.FAIL, failure=Failure("ValueError", "bad.py:6 in boom", "hidden"))
    answer = cast("Answer", SimpleNamespace(verdict=Verdict.DONE))
    assert detail_of(claimed, ending, answer) == "ValueError at bad.py:6 in boom; see tenure jobs show j --reveal"
