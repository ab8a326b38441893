"""`tenure queues`, `workers`, `migrate`, `prune`, `recover`, `version` and `demo`."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tenure import App, __version__
from tenure.protocol.job import WorkerRecord
from tests.cli.conftest import Run


def report(app: App, name: str) -> None:
    worker = WorkerRecord(f"owner of {name}", name, "host", 7, ("a", "b"), 3, datetime.now(UTC), 0.0, 0)
    app.store.connect(timeout=5).do(app.store.verbs.report, worker)


def test_queues_are_counted(app: App, store: str, tenure: Run) -> None:
    assert tenure("queues").stdout == f"no job waits or runs in {store}\n"
    app.tasks["charge"].enqueue(order=1)
    app.tasks["charge"].options(delay=60).enqueue(order=1)
    app.claim("lamp", owner="A")
    bare = {"queue": "", "due": 0, "scheduled": 0, "running": 1, "expired": 0}
    default = {"queue": "default", "due": 1, "scheduled": 1, "running": 0, "expired": 0}
    assert [json.loads(line) for line in tenure("queues", "--json").stdout.splitlines()] == [bare, default]
    assert "(bare leases)" in tenure("queues").stdout


def test_workers_are_listed_and_probed(app: App, store: str, tenure: Run) -> None:
    assert tenure("workers").stdout == f"no worker has reported to {store}\n"
    assert tenure("workers", "--name", "A").stdout == f"no worker named A has reported to {store}\n"
    lonely = tenure("workers", "--alive-within", "30")
    assert (lonely.exit_code, lonely.stdout) == (1, "")
    assert lonely.stderr == "tenure: no worker has reported within 30 s\n"
    report(app, "A")
    report(app, "B")
    assert [json.loads(line)["name"] for line in tenure("workers", "--json").stdout.splitlines()] == ["A", "B"]
    assert tenure("workers", "--alive-within", "30s", "--name", "A").exit_code == 0
    other = tenure("workers", "--alive-within", "30s", "--name", "C", "--json")
    assert (other.exit_code, other.stdout) == (1, "")
    told = {"error": "Unhealthy", "message": "no worker named C has reported within 30 s", "exit": 1}
    assert json.loads(other.stderr) == told


def test_a_worker_that_fell_silent_is_unhealthy(app: App, tenure: Run) -> None:
    app.store.shift_clock(-60)  # type: ignore[attr-defined]  # the SQLite store's harness
    report(app, "A")
    assert tenure("workers", "--alive-within", "30s").exit_code == 1
    assert tenure("workers", "--alive-within", "2m").exit_code == 0


def test_migrate_names_what_it_applies(tenure: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENURE_STORE", "sqlite:///fresh.db")
    pending = [json.loads(line) for line in tenure("migrate", "--sql", "--json").stdout.splitlines()]
    assert "CREATE TABLE tenure_jobs" in pending[0]["sql"]
    assert tenure("migrate", "--sql").stdout.startswith(f"-- {pending[0]['name']}\n")
    assert tenure("migrate").stdout == "".join(f"applied {migration['name']}\n" for migration in pending)
    assert tenure("migrate").stdout.endswith("fresh.db is up to date\n")
    assert tenure("migrate", "--sql").stdout.startswith("-- ")
    assert tenure("migrate", "--json").stdout == ""


def test_prune_removes_what_ended_long_ago(app: App, tenure: Run) -> None:
    app.store.shift_clock(-3600)  # type: ignore[attr-defined]  # the SQLite store's harness
    job = app.tasks["charge"].enqueue(order=1).id
    app.client.cancel([job])
    assert tenure("prune", "--older-than", "2h").stdout == "removed 0 jobs that ended more than 2 h ago\n"
    assert json.loads(tenure("prune", "--older-than", "30m", "--json").stdout) == {"removed": 1, "cursor": None}
    assert tenure("jobs", "list", "--json").stdout == ""
    assert tenure("prune").exit_code == 2


def test_recover_raises_the_floor_and_explains(app: App, tenure: Run) -> None:
    before = json.loads(tenure("recover", "--json").stdout)
    told = tenure("recover").stdout
    assert "every claim from now on gets a generation above it" in told
    assert app.claim("lamp", owner="A").generation > before["floor"]


def test_version(tenure: Run) -> None:
    assert json.loads(tenure("version", "--json").stdout)["version"] == __version__
    told = tenure("version").stdout
    assert told.startswith(f"Tenure {__version__} on Python 3.")
    asked = tenure("--version")
    assert (asked.exit_code, asked.stdout, asked.stderr) == (0, told, "")


@pytest.mark.parametrize("fence", [True, False])
def test_demo_is_handed_its_options(tenure: Run, monkeypatch: pytest.MonkeyPatch, fence: bool) -> None:
    played: list[tuple[str | None, str, bool, bool]] = []

    def play(store: str | None = None, *, destination: str = "", fence: bool = True, json: bool = False) -> int:
        played.append((store, destination, fence, json))
        return 1

    monkeypatch.setattr("tenure.demo.main.play", play)
    assert tenure("demo", "--fence" if fence else "--no-fence", "--json", "--destination", "file").exit_code == 1
    assert played == [(None, "file", fence, True)]
