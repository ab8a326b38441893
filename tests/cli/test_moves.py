"""`tenure jobs retry`, `cancel`, `discard` and `release`."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from tenure import App, LeaseLost, StaleToken, State
from tenure.cli import find
from tenure.client import Client
from tenure.errors import Unavailable
from tenure.protocol.job import Moved
from tests.cli.conftest import Run


@pytest.fixture
def jobs(app: App) -> list[str]:
    return [app.tasks["charge"].options(queue="q").enqueue(order=n).id for n in range(7)]


def states(app: App, ids: Sequence[str]) -> list[State]:
    return [app.client.get(id_).state for id_ in ids]


def test_moves_by_id_and_counts_each_answer(app: App, jobs: list[str], tenure: Run) -> None:
    cancelled = tenure("jobs", "cancel", *jobs[:2], "--reason", "not wanted")
    assert (cancelled.exit_code, cancelled.stdout) == (0, "2 cancelled\n")
    assert app.client.get(jobs[0]).reason == "not wanted"
    again = tenure("jobs", "cancel", jobs[0], jobs[2], "nobody")
    assert again.exit_code == 1
    assert again.stdout.splitlines() == [
        f"job {jobs[0]} is cancelled: cancel takes jobs that are available or running; for this one there is retry",
        "job nobody: there is no such job",
        "1 cancelled, 1 refused, 1 not found",
    ]
    assert tenure("jobs", "cancel", "nobody").exit_code == 3
    retried = tenure("jobs", "retry", *jobs[:2], "--json")
    assert [json.loads(line) for line in retried.stdout.splitlines()] == [
        {"id": id_, "moved": True, "state": "cancelled"} for id_ in jobs[:2]
    ]
    assert retried.stderr == ""


def test_a_running_job_is_taken_from_its_owner(app: App, jobs: list[str], tenure: Run) -> None:
    hold = app.claim(jobs[0], owner="A")
    assert tenure("jobs", "release", jobs[0]).exit_code == 0
    with pytest.raises(StaleToken):
        hold.complete()
    with pytest.raises(LeaseLost):
        hold.check()


def test_bulk_asks_first(app: App, jobs: list[str], tenure: Run) -> None:
    declined = tenure("jobs", "discard", "--queue", "q", typed="n\n")
    assert (declined.exit_code, declined.stdout) == (1, "nothing was done\n")
    assert declined.stderr == "discard 7 jobs (queue q, available or running)? [y/N] "
    assert set(states(app, jobs)) == {State.AVAILABLE}
    silent = tenure("jobs", "discard", "--queue", "q")
    assert silent.exit_code == 2
    assert "add --yes" in silent.stderr
    assert "add --yes" in tenure("jobs", "discard", "--queue", "q", "--json", typed="y\n").stderr
    assert tenure("jobs", "discard", "--queue", "q", typed="y\n").stdout == "7 discarded\n"
    assert set(states(app, jobs)) == {State.DISCARDED}


def test_bulk_walks_every_page_and_state(
    app: App, jobs: list[str], tenure: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find, "PAGE", 2)
    app.claim(jobs[3], owner="A")
    assert tenure("jobs", "cancel", "--all", "--yes").stdout == "7 cancelled\n"
    assert tenure("jobs", "retry", "--state", "cancelled", "--queue", "q", "-y").stdout == "7 retried\n"
    assert tenure("jobs", "cancel", "--phase", "scheduled", "-y").stdout == "0 cancelled\n"


def test_bare_leases_are_moved_by_id_only(app: App, jobs: list[str], tenure: Run) -> None:
    with app.lease("oven"):
        assert tenure("jobs", "discard", "--all", "--yes").stdout == "7 discarded\n"
    assert tenure("jobs", "cancel", "--state", "available", "--yes").stdout == "0 cancelled\n"
    with app.lease("oven") as lease:
        assert lease.generation == 2
    assert tenure("jobs", "cancel", "oven").stdout == "1 cancelled\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["cancel"], "nothing says which jobs to cancel"),
        (["cancel", "x", "--all"], "not both"),
        (["cancel", "x", "--queue", "q"], "not both"),
        (["cancel", "--state", "completed", "-y"], "it takes those that are available or running"),
        (["retry", "a\nb"], "without control characters"),
        (["release", "--queue", ""], "a queue's name '' is refused"),
    ],
)
def test_refuses_a_call_that_says_too_little_or_too_much(tenure: Run, words: list[str], told: str) -> None:
    refused = tenure("jobs", *words)
    assert refused.exit_code == 2
    assert told in refused.stderr


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (Unavailable("the store is away"), 4)])
@pytest.mark.usefixtures("jobs")
def test_work_that_is_broken_off_says_how_far_it_got(
    tenure: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    cancel = Client.cancel
    calls: list[int] = []

    def fail_at_third(client: Client, ids: Sequence[str], reason: str | None = None) -> list[Moved]:
        calls.append(len(ids))
        if len(calls) == 3:
            raise error
        return cancel(client, ids, reason)

    monkeypatch.setattr(find, "PAGE", 2)
    monkeypatch.setattr("tenure.cli.moves._ACTS", {"cancel": fail_at_third})
    stopped = tenure("jobs", "cancel", "--queue", "q", "--yes")
    assert stopped.exit_code == code
    assert stopped.stdout == ""
    assert stopped.stderr.startswith("so far: 4 cancelled; the rest was not touched")
