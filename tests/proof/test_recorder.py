"""Recording: a question before its answer, whole lines whatever happens to the process, and Tenure's own values."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tenure
from tenure.errors import Misuse
from tenure.proof.history import Applied, Call, Calm, Entry, Fault, Line, Meta, Part, Row, read
from tenure.proof.judge import judge
from tenure.proof.recorder import File, Recorder
from tenure.protocol.job import Claimer, Ending, NewJob, Wanted
from tenure.protocol.lease import Token
from tenure.protocol.lifecycle import State, Verb
from tenure.store.memory import MemoryStore

KILLED = """
import os, signal, sys
from pathlib import Path
from tenure.proof.history import Part
from tenure.proof.recorder import File, Recorder

name = sys.argv[2]
recorder = Recorder(File(Path(sys.argv[1]) / f"{name}.jsonl", Part(process=name)), name)
asked = recorder.asked("claim", owner=f"owner {name}", worker=name)
recorder.answered(asked, "ok", job=f"job {name}", generation=1, lease=30.0)
recorder.asked("complete", job=f"job {name}", generation=1, owner=f"owner {name}")
os.kill(os.getpid(), signal.SIGKILL)
"""


class Ticking:
    """A clock that goes on by one second each time it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def lines() -> list[Line]:
    return []


@pytest.fixture
def recorder(lines: list[Line]) -> Recorder:
    return Recorder(lines.append, "a", clock=Ticking())


def test_a_question_is_written_before_its_answer(recorder: Recorder, lines: list[Line]) -> None:
    asked = recorder.asked("complete", job="j", generation=7, owner="o", result="1")
    assert lines == [asked]
    assert (asked.sent, asked.answered, asked.outcome, asked.number) == (1.0, None, "unknown", 1)
    recorder.answered(asked, "already", result="2")
    assert lines[1] == Call(
        process="a",
        call="complete",
        number=1,
        sent=1.0,
        answered=2.0,
        outcome="already",
        job="j",
        generation=7,
        owner="o",
        result="2",
    )
    assert recorder.asked("claim", owner="o").number == 2


def test_each_kind_has_its_method(recorder: Recorder, lines: list[Line]) -> None:
    effect = recorder.call("effect", "ok", sent=0.5, job="j", generation=1, owner="o", deadline=9.0)
    recorder.store("j", "claim", generation=1, at=3.0)
    recorder.row("j")
    recorder.applied("s", "raise", generation=1)
    recorder.fault("pause", "b", began=1.0, ended=2.0)
    recorder.calm(5.0)
    recorder.calm(5.0, at=77.0)
    assert lines == [
        effect,
        Entry(job="j", event="claim", generation=1, at=3.0),
        Row(job="j", at=2.0),
        Applied(scope="s", act="raise", generation=1),
        Fault(what="pause", whom="b", began=1.0, ended=2.0),
        Calm(at=3.0, within=5.0),
        Calm(at=77.0, within=5.0),
    ]
    assert (effect.number, effect.sent, effect.answered, effect.deadline) == (1, 0.5, 1.0, 9.0)


def test_killed_processes_leave_their_questions(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(tenure.__file__).parents[1])}
    killed = [
        subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path), name], env=environment) for name in ("A", "B")
    ]
    assert [process.wait(60) for process in killed] == [-signal.SIGKILL, -signal.SIGKILL]
    head = File(tmp_path / "head.jsonl", Meta(store="none"))
    head.close()
    history = read(sorted(tmp_path.glob("*.jsonl")))
    assert sorted((call.process, call.call, call.outcome) for call in history.calls) == [
        ("A", "claim", "ok"),
        ("A", "complete", "unknown"),
        ("B", "claim", "ok"),
        ("B", "complete", "unknown"),
    ]
    assert judge(history).good


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    file = File(tmp_path / "run.jsonl", Meta())
    recorder = Recorder(file, "a")

    def record() -> None:
        for _ in range(500):
            recorder.answered(recorder.asked("claim", owner="o" * 200), "fail")

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    file.close()
    assert len(read([tmp_path / "run.jsonl"]).calls) == 2000


def test_each_start_of_a_process_writes_a_file_of_its_own(tmp_path: Path) -> None:
    File(tmp_path / "a.jsonl", Part(process="a")).close()
    with pytest.raises(Misuse, match="is there already: each start of a process writes a file of its own"):
        File(tmp_path / "a.jsonl", Part(process="a"))


def test_a_line_that_does_not_fit_on_the_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = File(tmp_path / "a.jsonl", Part(process="a"))
    monkeypatch.setattr(os, "write", lambda _fd, data: len(data) - 1)
    with pytest.raises(OSError, match="was written in part"):
        file(Calm(at=0.0, within=1.0))
    file.close()


def test_the_values_of_a_store_are_told(recorder: Recorder, lines: list[Line]) -> None:
    store = MemoryStore()
    driver = store.connect(timeout=1.0)
    driver.do(store.verbs.enqueue, [NewJob("j", "work", max_attempts=3, max_takeovers=2)])
    ada, bob = Claimer("owner a", "ada"), Claimer("owner b", "bob")
    wanted = Wanted(("default",), ("work",), 1)
    driver.do(store.verbs.claim, ada, wanted)
    store.shift_clock(31)
    driver.do(store.verbs.claim, bob, wanted)
    driver.do(store.verbs.settle, "owner a", [Ending(Token("j", 1), Verb.COMPLETE)])
    driver.do(store.verbs.settle, "owner b", [Ending(Token("j", 2), Verb.RETRY, delay=60.0)])
    for entry in driver.do(store.verbs.history, "j"):
        recorder.tell_history(entry)
    recorder.tell_row(driver.do(store.verbs.get, "j"))
    told = [(line.event, line.right, line.worker, line.detail) for line in lines if isinstance(line, Entry)]
    assert told == [("takeover", 1, "ada", ""), ("refused", 1, "ada", "complete"), ("retry", 2, "bob", "")]
    row = lines[-1]
    assert isinstance(row, Row)
    assert 0.0 < row.due_in <= 60.0
    assert (row.state, row.generation, row.ended) == (State.AVAILABLE, 2, "retry")
    assert (row.attempts, row.max_attempts, row.takeovers, row.max_takeovers) == (1, 3, 1, 2)
