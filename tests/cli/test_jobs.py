"""`tenure jobs list` and `jobs show`."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from tenure import App, StaleToken, State
from tenure.protocol.job import Ending
from tenure.protocol.lifecycle import Verb
from tests.cli.conftest import Module, Run

LATE = "from tenure import App\napp = App(STORE)\napp.store.shift_clock(30 + 5 * 3600)\n"


@pytest.mark.parametrize(
    ("words", "filter_told"),
    [
        ((), ""),
        (("--queue", "q", "--task", "t"), " (queue q, task t)"),
        (("--state", "running"), " (state running)"),
        (("--phase", "scheduled", "--state", "available"), " (phase scheduled)"),
        (("--queue", "q", "--after", "x"), " (queue q, after x)"),
    ],
)
def test_an_empty_list_names_store_and_filter_and_is_nothing_in_json(
    store: str, tenure: Run, words: tuple[str, ...], filter_told: str
) -> None:
    assert tenure("jobs", "list", *words).stdout == f"no jobs in {store}{filter_told}\n"
    assert tenure("jobs", "list", *words, "--json").stdout == ""


def test_lists_newest_first_page_by_page(app: App, tenure: Run) -> None:
    ids = [app.tasks["charge"].enqueue(order=n).id for n in range(5)]
    first = tenure("jobs", "list", "--json", "--limit", "3")
    seen = [json.loads(line) for line in first.stdout.splitlines()]
    assert [job["id"] for job in seen] == ids[:1:-1]
    assert json.loads(first.stderr) == {"more_after": ids[2]}
    rest = tenure("jobs", "list", "--json", "--limit", "3", "--after", ids[2])
    assert [json.loads(line)["id"] for line in rest.stdout.splitlines()] == ids[1::-1]
    assert rest.stderr == ""
    oldest = tenure("jobs", "list", "--oldest-first", "--limit", "1", "--json")
    assert json.loads(oldest.stdout)["id"] == ids[0]


def test_a_list_has_the_fields_of_the_record_and_no_payload(app: App, tenure: Run) -> None:
    app.tasks["charge"].enqueue(order=1)
    (line,) = tenure("jobs", "list", "--json").stdout.splitlines()
    job = json.loads(line)
    assert job["task"] == "charge"
    assert (job["phase"], job["state"]) == ("available", "available")
    assert datetime.fromisoformat(job["enqueued_at"]).tzinfo is not None
    assert not {"arguments", "result", "progress"} & job.keys()


def test_filters_by_queue_task_state_and_phase(app: App, tenure: Run) -> None:
    charge = app.tasks["charge"]
    due = charge.options(queue="q").enqueue(order=1).id
    later = charge.options(queue="q", delay=60).enqueue(order=1).id
    charge.enqueue(order=1)

    def found(*words: str) -> set[str]:
        return {json.loads(line)["id"] for line in tenure("jobs", "list", "--json", *words).stdout.splitlines()}

    assert found("--queue", "q") == {due, later}
    assert found("--queue", "q", "--phase", "scheduled") == {later}
    assert found("--queue", "q", "--phase", "available") == {due}
    assert found("--queue", "q", "--state", "available") == {due, later}
    assert found("--task", "other") == set()
    assert found("--state", "running") == set()
    refused = tenure("jobs", "list", "--phase", "expired", "--state", "available")
    assert refused.exit_code == 2
    assert "no job is both" in refused.stderr


def test_an_expired_lease_is_never_shown_as_plain_running(app: App, module: Module, tenure: Run) -> None:
    app.claim("lamp", owner="A", duration=30)
    late = f"{module(LATE)}:app"
    assert tenure("jobs", "list", "--json", "--phase", "running").stdout.count("\n") == 1
    listed = tenure("jobs", "list", "--app", late)
    assert "expired" in listed.stdout
    assert "running" not in listed.stdout
    assert json.loads(tenure("jobs", "list", "--json", "--phase", "expired", "--app", late).stdout)["id"] == "lamp"
    shown = tenure("jobs", "show", "lamp", "--app", late)
    assert "generation 1 on A: expired, its lease ended 5 h ago" in shown.stdout


def test_show_tells_a_life_generation_by_generation(app: App, tenure: Run) -> None:
    job = app.tasks["charge"].enqueue(order=1).id
    first = app.claim(job, owner="A", duration=10)
    app.store.shift_clock(11)  # type: ignore[attr-defined]  # the SQLite store's harness
    second = app.claim(job, owner="B", duration=300)
    with pytest.raises(StaleToken):
        first.complete()
    told = tenure("jobs", "show", job).stdout
    life = [line.partition("  ")[2].partition("  ")[2].strip() for line in told.splitlines() if " UTC  " in line]
    assert life[:3] == [
        "enqueued in queue default",
        "generation 1 on A: lease ended, taken over",
        "generation 1 on A: stale complete refused",
    ]
    assert life[3] == "generation 2 on B: claimed, took over from generation 1 (A)"
    assert "generation 2 on B: running, its lease ends in" in life[4]
    second.complete('"fine"')
    assert "generation 2 on B: completed" in tenure("jobs", "show", job).stdout


def test_show_tells_what_an_operator_did_from_what_a_handler_did(app: App, tenure: Run) -> None:
    client, job = app.client, app.tasks["charge"].enqueue(order=1).id

    def ends(verb: Verb) -> None:
        hold = app.claim(job, owner="A")
        client.settle(hold.lease.owner, [Ending(hold.token, verb)])

    client.cancel([job])  # generation 0
    client.retry([job])
    ends(Verb.RETRY)
    client.discard([job])  # while it waits
    client.retry([job])
    ends(Verb.CANCEL)
    client.retry([job])
    app.claim(job, owner="B")  # generation 3
    client.cancel([job])
    client.retry([job])
    ends(Verb.DISCARD)  # generation 5
    told = tenure("jobs", "show", job).stdout
    life = [line.partition("  ")[2].partition("  ")[2].strip() for line in told.splitlines() if " UTC  " in line]
    assert life[1:-1] == [
        "generation 0: cancelled by an operator",
        "generation 0: retried by an operator",
        "generation 1 on A: retry asked for",
        "generation 1 on A: discarded by an operator",
        "generation 1: retried by an operator",
        "generation 2 on A: cancelled",
        "generation 2: retried by an operator",
        "generation 3 on B: cancelled by an operator",
        "generation 4: retried by an operator",
        "generation 5 on A: discarded",
    ]


def test_show_tells_that_an_operator_retried_a_poison_job(app: App, tenure: Run) -> None:
    job = app.tasks["charge"].options(max_takeovers=1).enqueue(order=1).id
    app.claim(job, owner="A", duration=10)
    app.store.shift_clock(11)  # type: ignore[attr-defined]  # the SQLite store's harness
    assert app.claim(job, owner="B").claimed.state is State.DISCARDED
    app.client.retry([job])
    assert "generation 2: retried by an operator" in tenure("jobs", "show", job).stdout


def test_show_tells_failures_by_type_and_place(app: App, tenure: Run) -> None:
    job = app.tasks["charge"].enqueue(order=1).id
    app.claim(job, owner="A").fail("no card")
    app.claim(job, owner="A").fail("no card")
    told = tenure("jobs", "show", job).stdout
    assert told.count("generation 1 on A: failed: no card") == 1
    assert "discarded: no card" in told
    assert "2 of 2" in told


def test_failed_attempts_are_told_as_failed(app: App, tenure: Run) -> None:
    """An attempt that succeeded is none of them, so a completed job shows 0."""
    job = app.tasks["charge"].enqueue(order=1).id
    app.claim(job, owner="A").complete()
    heads, cells = tenure("jobs", "list").stdout.splitlines()
    assert cells[heads.index("FAILED") :].startswith("0 of 2  ")
    assert "ATTEMPTS" not in heads
    assert re.search(r"│ failed +0 of 2 ", tenure("jobs", "show", job).stdout)
    assert json.loads(tenure("jobs", "list", "--json").stdout)["attempts"] == 0


def test_show_in_json_is_one_document(app: App, tenure: Run) -> None:
    job = app.tasks["charge"].options(run_at=datetime.now(UTC) + timedelta(hours=1)).enqueue(order=9007199254740993)
    shown = tenure("jobs", "show", job.id, "--json")
    (line,) = shown.stdout.splitlines()
    told = json.loads(line)
    assert told["arguments"] == "•••"
    assert (told["result"], told["history"], told["phase"]) == (None, [], "scheduled")
    revealed = json.loads(tenure("jobs", "show", job.id, "--json", "--reveal").stdout)
    assert revealed["arguments"] == {"order": 9007199254740993}


def test_show_knows_no_such_job(tenure: Run) -> None:
    shown = tenure("jobs", "show", "nobody")
    assert shown.exit_code == 3
    assert shown.stderr == "tenure: there is no job 'nobody' in this store\n"
