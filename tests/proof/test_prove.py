"""`tenure prove` as a whole: real workers, real faults, on real stores, for a few seconds each."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tenure.cli.root import app as command_line
from tenure.errors import Misuse
from tenure.proof.history import Call, read
from tenure.proof.prove import managed, runner
from tenure.proof.prove.fleet import Fleet
from tenure.proof.prove.worker import Orders
from tenure.testing.proxy import free_port
from tests.proof.rooms import no_room_of_its_own
from tests.support.processes import wait_for

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 5


def tenure(*words: str | int | Path) -> Result:
    return CliRunner().invoke(command_line, list(map(str, words)), prog_name="tenure")


def prove(
    *words: str | int | Path, code: int, by_chance: bool = False, saw: Callable[[dict[str, Any]], bool] = bool
) -> dict[str, Any]:
    """Run the proof, again with another seed until it `saw` what chance does not show in every run of a few seconds.

    Each run must end with `code`; `by_chance` says that this itself takes luck, as finding damage does.
    """
    for seed in range(1, ROUNDS + 1):
        told = tenure("prove", "--json", "--seed", seed, *words)
        assert by_chance or told.exit_code == code, told.output
        document: dict[str, Any] = json.loads(told.stdout)
        if told.exit_code == code and saw(document):
            document["verdicts"] = {one["invariant"]: one["verdict"] for one in document["invariants"]}
            return document
        for written in (word for word in words if isinstance(word, Path)):
            written.unlink(missing_ok=True)
    raise AssertionError(f"not seen in {ROUNDS} runs")


def taken_over(told: dict[str, Any]) -> bool:
    return bool(told["counts"]["takeovers"])


def refused(told: dict[str, Any]) -> bool:
    return bool(told["refused_writes"] and told["refused_by_store"] and told["counts"]["takeovers"])


def held(told: dict[str, Any]) -> bool:
    """Tell whether it concludes that nothing newer was replaced; by chance a late write comes first of all."""
    known = ("late workers changed nothing", "late workers replaced nothing newer: of their writes, ")
    return str(told["conclusion"]).startswith(known)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for `tests.proof.places`, and a path on which worker processes find that module."""
    folder = tmp_path / "places"
    folder.mkdir()
    monkeypatch.setenv("PLACES", str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return folder


def test_late_workers_change_nothing_on_sqlite(tmp_path: Path) -> None:
    history, report = tmp_path / "run.jsonl", tmp_path / "run.html"

    def saw_all(told: dict[str, Any]) -> bool:
        asserted = {one["invariant"] for one in told["invariants"] if one["verdict"] == "kept"}
        return (
            refused(told)
            and asserted >= {f"I{number}" for number in range(1, 18)} - {"I10"}
            and all(faults(history, what) for what in ("pause", "kill", "rival"))
        )

    told = prove("--seconds", 5, "--managed", "sqlite", "--history", history, "--report", report, code=0, saw=saw_all)
    assert told["good"] is True
    assert held(told)
    assert told["store"].startswith("sqlite:")
    assert told["stories"] == []
    judged = json.loads(tenure("judge", "--json", history).stdout)
    assert (judged["good"], judged["counts"]) == (True, told["counts"])
    assert report.read_text().startswith("<!doctype html>")


def test_late_workers_change_nothing_on_a_managed_postgres(tmp_path: Path) -> None:
    told = prove(
        "--seconds", 4, "--managed", "postgres", "--faults", "pause,kill,rival,cut,delay,crash", code=0, saw=taken_over
    )
    assert told["good"] is True
    assert told["store"].startswith("postgresql://127.0.0.1:")
    assert "tenure:" not in told["store"]


def test_without_the_fence_updates_are_lost_and_that_is_the_point() -> None:
    told = prove("--seconds", 3, "--managed", "sqlite", "--no-fence", "--faults", "pause", code=1, by_chance=True)
    assert told["verdicts"]["I9"] == "broken"
    assert told["verdicts"]["I3"] == "kept"
    assert told["conclusion"].startswith("updates were lost, and that is the point: without the comparison")
    assert told["workload"] == "update without a fence"


def test_a_lease_used_as_a_lock_is_seen_to_fail() -> None:
    told = prove(
        "--seconds", 3, "--managed", "sqlite", "--workload", "mutex", "--faults", "pause", code=0, by_chance=True
    )
    assert told["verdicts"]["I7"] == "broken, as it must be"
    assert told["conclusion"].startswith("a lease is no lock")


def test_a_destination_that_compares_and_then_writes_is_found_out(places: Path) -> None:
    told = prove(
        "--seconds", 5, "--managed", "sqlite", "--faults", "pause",
        "--destination", "tests.proof.places:Careless", code=1, by_chance=True,
    )  # fmt: skip
    assert told["verdicts"]["I9"] == "broken"
    assert told["verdicts"]["I3"] == "kept"
    assert told["conclusion"].startswith("the destination tests.proof.places:Careless let late writes through")
    lines = told["stories"][0]
    assert lines[0].startswith("What happened to job ")
    assert any("is stopped" in line for line in lines)
    assert any(line.startswith("So: worker-") and "although worker-" in line for line in lines)


def test_a_destination_that_keeps_nothing_is_found_out(places: Path) -> None:
    told = prove(
        "--seconds", 2, "--managed", "sqlite", "--faults", "duplicate",
        "--destination", "tests.proof.places:Forgetful", code=1,
    )  # fmt: skip
    assert told["verdicts"]["I12"] == "broken"
    assert told["verdicts"]["I3"] == told["verdicts"]["I14"] == "kept"
    assert told["conclusion"].startswith("the destination tests.proof.places:Forgetful loses what it accepted")


def test_a_destination_that_fails_is_told_with_what_it_said(places: Path) -> None:
    told = prove(
        "--seconds", 2, "--managed", "sqlite", "--faults", "pause",
        "--destination", "tests.proof.places:Failing", code=1,
    )  # fmt: skip
    assert told["verdicts"]["I14"] == "broken"
    assert told["conclusion"].endswith(
        "did not finish, since what was asked of the destination tests.proof.places:Failing failed: ValueError: bad"
        " column"
    )


def test_a_destination_with_a_fence_is_not(places: Path) -> None:
    told = prove(
        "--seconds", 3, "--managed", "sqlite", "--faults", "pause,duplicate",
        "--destination", "tests.proof.places:Careful", code=0, saw=lambda told: told["refused_writes"] > 0,
    )  # fmt: skip
    assert told["verdicts"]["I9"] == "kept"


def test_a_destination_that_takes_a_write_which_another_has_overtaken_is_found_out(places: Path) -> None:
    told = prove(
        "--seconds", 3, "--managed", "sqlite", "--faults", "reorder",
        "--destination", "tests.proof.places:Unordered", code=1, by_chance=True,
    )  # fmt: skip
    assert told["verdicts"]["I12"] == "broken"
    assert told["verdicts"]["I3"] == "kept"
    assert told["conclusion"].startswith("the destination tests.proof.places:Unordered let late writes through")
    assert told["stories"][0][-1].endswith("refuses one that came before, or that another has overtaken.")


def overtaken(told: dict[str, Any], history: Path) -> bool:
    return bool(refused(told) and faults(history, "reorder"))


def faults(history: Path, what: str) -> list[tuple[float, float]]:
    return [(fault.began, fault.ended or fault.began) for fault in read([history]).faults if fault.what == what]


def met(history: Path, what: str) -> list[Call]:
    """What was asked of the store, and not done for sure, while it suffered from a fault."""
    calls = [call for call in read([history]).calls if call.outcome in {"fail", "unknown"} and call.owner is not None]
    return [call for call in calls if any(began < call.sent < ended for began, ended in faults(history, what))]


def test_requests_that_overtake_each_other_change_nothing(tmp_path: Path) -> None:
    history = tmp_path / "run.jsonl"
    told = prove(
        "--seconds", 4, "--managed", "sqlite", "--faults", "pause,rival,reorder", "--history", history,
        code=0, saw=lambda told: overtaken(told, history),
    )  # fmt: skip
    assert held(told)
    assert told["verdicts"]["I8"] == told["verdicts"]["I9"] == told["verdicts"]["I12"] == "kept"


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_a_full_disk_of_the_store_is_waited_for(store: str, tmp_path: Path) -> None:
    """Where this system lets nobody mount anything, the fault is refused, with the reason."""
    history = tmp_path / "run.jsonl"
    words = ("--managed", store, "--faults", "disk,pause", "--history", history)
    if no_room_of_its_own():
        told = tenure("prove", *words)
        assert (told.exit_code, told.stdout) == (2, "")
        assert "disk needs a small file system of its own, and this system lets you mount none" in told.stderr
        return
    document = prove("--seconds", 6, *words, code=0, saw=lambda told: taken_over(told) and bool(met(history, "disk")))
    assert held(document)
    assert document["counts"]["completions"] >= document["jobs"] - 16  # what could not be stored is not a job


def test_jumps_of_the_stores_clock_let_no_late_worker_through(tmp_path: Path) -> None:
    """Where libfaketime is missing, the fault is refused, with the reason."""
    history = tmp_path / "run.jsonl"
    words = ("--managed", "postgres", "--faults", "jump,pause,crash", "--history", history)
    if managed.find_library() is None:
        told = tenure("prove", *words)
        assert (told.exit_code, told.stdout) == (2, "")
        assert "jump sets the clock of the store's server by libfaketime, which is not here" in told.stderr
        return
    document = prove(
        "--seconds", 5, *words, code=0, saw=lambda told: refused(told) and len(faults(history, "jump")) >= 2
    )
    assert document["verdicts"]["I7"] == "not asserted"
    assert document["verdicts"]["I3"] == document["verdicts"]["I8"] == document["verdicts"]["I14"] == "kept"


def test_a_destination_in_which_nothing_can_be_written_is_told(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_STARTING", 2.5)
    told = tenure("prove", "--seconds", 1, "--destination", "tests.proof.places:Broken")
    assert (told.exit_code, told.stdout) == (2, "")
    assert "no worker came to its first write within 2.5 s; they said: " in told.stderr


@pytest.fixture
def orders(tmp_path: Path) -> Callable[[str], Orders]:
    def ordered(name: str) -> Orders:
        return Orders(
            name=name, queue="q", folder=str(tmp_path), seed=1, threads=1, lease=1.0, updates=1,
            workload="mutex", fence=True, port=0, destination=None, duplicate=False, reorder=False,
        )  # fmt: skip

    return ordered


def test_a_worker_that_ends_by_itself_is_told_with_its_words(orders: Callable[[str], Orders], tmp_path: Path) -> None:
    with Fleet(1, orders, "oracle://here", tmp_path) as fleet:
        fleet.members()[0].process.wait(60.0)
        with pytest.raises(Misuse, match=r"(?s)worker-1 ended by itself \(1\); it said: .*oracle://"):
            fleet.look_after()


def test_a_worker_that_ends_without_a_word_is_told(
    orders: Callable[[str], Orders], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Fleet(1, orders, "oracle://here", tmp_path) as fleet:
        fleet.members()[0].process.wait(60.0)
        with pytest.raises(Misuse, match=r"worker-1 ended by itself \(1\); it said nothing$"):
            fleet.look_after()


def test_a_worker_stands_still_when_it_has_been_stopped(orders: Callable[[str], Orders], tmp_path: Path) -> None:
    with Fleet(1, orders, f"sqlite:///{tmp_path / 'store.db'}", tmp_path) as fleet:
        member = fleet.members()[0]
        threads = Path("/proc", str(member.process.pid), "task")
        for _ in range(20):
            member.stop()
            states = {(thread / "stat").read_text().rpartition(") ")[2][0] for thread in threads.iterdir()}
            assert states == {"T"}
            member.signal(signal.SIGCONT)


def test_a_worker_that_cannot_reach_the_store_yet_is_started_again(
    orders: Callable[[str], Orders], tmp_path: Path
) -> None:
    away = f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"
    with Fleet(1, orders, away, tmp_path) as fleet:

        def restarted() -> bool:
            fleet.look_after()
            return [member.name for member in fleet.members()] != ["worker-1"]

        wait_for(restarted, 60, "another worker")
        assert [member.name for member in fleet.members()] == ["worker-2"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--faults", "pause,flood"], "there is no fault 'flood'; there are pause, kill"),
        (["--faults", "crash"], "crash kills the store's server"),
        (["--faults", "disk", "--store", "sqlite:///a.db"], "disk fills the file system of the store: only of one"),
        (["--faults", "jump"], "jump sets the clock of the store's server: only of one"),
        (["--faults", "jump", "--managed", "sqlite"], "leases in SQLite go by the boot clock of the host"),
        (["--faults", " ,"], "no fault is named: leave --faults out for pause, kill"),
        (["--seconds", "0"], "seconds is 0: at least 1"),
        (["--seconds", "nan"], "seconds is nan: at least 1, and finite"),
        (["--seconds", "inf"], "seconds is inf: at least 1, and finite"),
        (["--workers", "1"], "workers is 1: at least 2"),
        (["--workers", "65"], "workers is 65: at most 64, for all of them are processes on this host"),
        (["--lease", "1.5"], "the lease is 1.5 s, and the run takes 1 s: no worker would be late in it"),
        (["--report", "x", "--history", "./x"], "--report and --history both name x"),
        (["--report", "nowhere/x"], "cannot write nowhere/x: No such file or directory"),
        (["--history", "."], "cannot write .: Is a directory"),
        (["--lease", "0.5"], "the lease is 0.5 s: a lease lasts 1 to"),
        (["--managed", "postgres", "--store", "sqlite:///a.db"], "give one of them"),
        (["--managed", "oracle"], "oracle"),
        (["--destination", "tests.proof.places"], "a destination is named MODULE:FACTORY"),
        (["--destination", "tests.proof.places:Nobody"], "cannot be loaded"),
        (["--destination", "tests.proof.nowhere:Nobody"], "cannot be loaded"),
        (["--destination", "broken_module:made"], "broken_module:made cannot be loaded: ValueError: 42"),
        (["--destination", "tests.proof.places:nothing"], "has no raise_to, read, write"),
        (
            ["--destination", "tests.proof.places:away"],
            "away cannot be opened: ConnectionError: no server",
        ),
        (["--destination", "tests.proof.places:of_shop"], "missing 1 required positional argument: 'shop'"),
        (["--destination", "tests.proof.places:NO_FACTORY"], "NO_FACTORY is of type int, and no factory"),
        (
            ["--destination", "tests.proof.places:later"],
            "factory of the destination tests.proof.places:later is async",
        ),
        (["--destination", "tests.proof.places:Later"], "write of the destination tests.proof.places:Later is async"),
        (["--workload", "mutex", "--no-fence"], "the workload mutex writes to no destination"),
        (["--store", "memory://"], "the workers of a proof are processes, and memory"),
        (["--store", "oracle://here"], "no store has an address that begins with oracle://"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(
    words: list[str], says: str, places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(places)
    (places / "broken_module.py").write_text("raise ValueError(6 * 7)\n")
    told = tenure("prove", "--seconds", 1, *words)
    assert (told.exit_code, told.stdout) == (2, "")
    assert says in told.stderr
    assert told.stderr.count("\n") == 1
