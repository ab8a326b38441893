"""The founding example, played for real in processes of its own, as `tenure demo` plays it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tenure.demo import play
from tenure.demo.events import Event
from tenure.demo.telling import JsonTeller, table
from tenure.errors import BadSettings
from tests.demo.conftest import COMMAND, PATIENCE, Plays


def test_a_late_worker_changes_nothing_where_there_is_a_fence(plays: Plays, store: str) -> None:
    play = plays("sql", fence=True)
    summary = play.summary
    assert (play.status, play.errors, summary["ok"]) == (0, "", True)
    assert (summary["destination"], summary["store"]) == ("sql", store)
    assert summary["stale_completion_refused"]
    assert summary["stale_write_refused"]
    assert summary["zombie_stopped_by_own_clock"]
    assert summary["generation_a"] >= 7
    assert summary["generation_b"] > summary["generation_a"]
    assert summary["effects_applied"] == 1
    assert summary["holds"] == f"written by B under generation {summary['generation_b']}"
    killed = [event["who"] for event in play.events if event["event"] == "killed"]
    assert killed == ["W1", "W2", "W3", "W4", "W5", "W6"]
    assert play.events[-1]["event"] == "late write"


def test_without_a_fence_the_damage_is_seen(plays: Plays) -> None:
    play = plays("sql", fence=False)
    summary = play.summary
    assert (play.status, play.errors, summary["ok"]) == (0, "", True)
    assert summary["stale_completion_refused"]  # the store is fenced in any case
    assert not summary["stale_write_refused"]
    assert summary["damage_shown"]
    assert summary["effects_applied"] == 3
    assert summary["holds"] == f"written by A under generation {summary['generation_a']}"
    assert play.events[-1]["answer"] == "applied: B's page is overwritten"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_breaks_it_off_and_ends_every_process(number: signal.Signals) -> None:
    # Whoever runs these tests in the background may have had SIGINT ignored; a shell's foreground does not.
    with subprocess.Popen(
        COMMAND,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 -- no other thread runs here
    ) as director:
        assert director.stdout is not None
        for line in director.stdout:
            if json.loads(line).get("event") == "killed":
                break
        children = children_of(director.pid)
        assert len(children) >= 2
        director.send_signal(number)
        last = director.stdout.readlines()[-1]
        assert director.wait(PATIENCE) == 130
    assert json.loads(last) == {"summary": {"ok": False, "problem": "interrupted"}}
    assert [pid for pid in children if Path(f"/proc/{pid}").exists()] == []


def test_breaking_it_off_ends_also_a_process_that_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[int] = []
    before = set(children_of(os.getpid()))

    def break_off(_: JsonTeller, event: Event) -> None:
        if event.event == "stopped":
            children.extend(set(children_of(os.getpid())) - before)
            raise KeyboardInterrupt

    monkeypatch.setattr(JsonTeller, "event", break_off)
    assert play(json=True) == 130
    assert len(children) >= 2
    assert [pid for pid in children if Path(f"/proc/{pid}").exists()] == []


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_store_that_lives_in_one_process_is_refused() -> None:
    with pytest.raises(BadSettings, match="several processes, and memory://"):
        play("memory://")


def test_neighbours_to_whom_the_same_happened_share_a_line_of_the_table() -> None:
    events = [Event("killed", 0.0, f"W{n}", n, "run it", "", "killed") for n in (1, 2, 3)]
    events.append(Event("claimed", 1.0, "A", 4, "claim it", "store", "granted"))
    assert table(events).splitlines()[2:] == [
        "W1 to W3  1 to 3      run it                 killed",
        "A         4           claim it  store        granted",
    ]
