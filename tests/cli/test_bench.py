"""`tenure bench`: the figures of one's own store, or one line that says why there are none."""

from __future__ import annotations

import json

import pytest

from tenure import App, Filter, State
from tests.cli.conftest import Run

FEW = ("--jobs", "20", "--rounds", "1", "--pickups", "3")


def test_it_answers_every_question_and_leaves_other_jobs_alone(tenure: Run, app: App) -> None:
    ours = app.tasks["charge"].enqueue(order=7).id
    told = json.loads(tenure("bench", *FEW, "--json").stdout)
    assert (told.pop("jobs"), told.pop("rounds")) == (20, 1)
    assert set(told) == {"enqueue_one", "enqueue_many", "drain", "pickup_p50", "pickup_p99"}
    assert all(figure > 0 for figure in told.values())
    assert [job.id for job in app.client.find(Filter(state=State.AVAILABLE))] == [ours]


def test_people_read_rates_and_milliseconds(tenure: Run) -> None:
    _, *lines = tenure("bench", *FEW).stdout.splitlines()
    assert [line.split()[-1] for line in lines] == ["jobs/s", "jobs/s", "jobs/s", "ms", "ms"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--jobs", "0"), "jobs is 0: at least 1"),
        (("--pickups", "-1"), "pickups is -1: at least 1"),
        (("--store", "sqlite:///missing.db"), "there is no store"),
        (("--store", "memory://"), "another"),
    ],
)
def test_what_cannot_be_measured_is_told(tenure: Run, words: tuple[str, ...], told: str) -> None:
    ran = tenure("bench", *words)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert told in ran.stderr
