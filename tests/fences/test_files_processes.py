"""Writers of files that are killed, stopped and many: nothing is lost, and nothing older gets in."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure import Token, Unavailable
from tenure.errors import OutOfSequence, StaleToken
from tenure.fences.files import OWN_FOLDER, FileFence
from tests.fences.files_children import NEW, OLD, SCOPE, old_page
from tests.support.processes import Child, Processes, wait_for

ROOT = Path(__file__).parents[2]
SEVEN, EIGHT, NINE = (Token("job-1", generation) for generation in (7, 8, 9))
BEFORE_DECISION = ["opened", "written", "synced", "locked", "mark written"]
WRITE = [*BEFORE_DECISION, "mark renamed", "decided", "renamed", "unlocked"]
RAISE = ["locked", "mark written", "mark renamed"]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    (tmp_path / "told").mkdir()
    with Processes(tmp_path / "told") as started:
        yield started


def child(processes: Processes, *arguments: object) -> Child:
    path = os.pathsep.join((str(ROOT), *sys.path))
    words = [str(argument) for argument in arguments]
    return processes.python("-m", "tests.fences.files_children", *words, environment={"PYTHONPATH": path})


def page(folder: Path) -> str:
    return (folder / "page").read_text()


def asides(folder: Path) -> list[Path]:
    return [*(folder / OWN_FOLDER / "aside").iterdir()]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make folders in which a writer was killed, one for each step."""
    base = tmp_path_factory.mktemp("killed")
    (base / "told").mkdir()
    with Processes(base / "told") as processes:
        writer = child(processes, "kill", base)
        assert writer.wait(60) == 0, writer.stderr.read_text()
    yield base
    shutil.rmtree(base)


def test_every_step_of_a_write_was_tried(killed: Path) -> None:
    found = sorted(path.name for path in killed.iterdir())
    expected = [f"write {place} {step}" for place, step in enumerate(WRITE)]
    expected += [f"raise {place} {step}" for place, step in enumerate(RAISE)]
    assert found == sorted([*expected, "raise", "told", "write"])


def fresh(killed: Path, name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(killed / name, tmp_path / "folder"))


@pytest.mark.parametrize(("place", "step"), [*enumerate(WRITE)])
def test_a_writer_killed_at_any_step_leaves_one_whole_page(killed: Path, tmp_path: Path, place: int, step: str) -> None:
    folder = fresh(killed, f"write {place} {step}", tmp_path)
    assert page(folder) == (NEW if place >= WRITE.index("renamed") else OLD)
    fence = FileFence(folder, patience=0)
    fence.raise_to(EIGHT, scope=SCOPE)
    read = page(folder)
    assert read == (OLD if step in BEFORE_DECISION else NEW)
    assert asides(folder) == []
    with pytest.raises(StaleToken):
        fence.write("page", b"late", SEVEN, scope=SCOPE, sequence=9)
    assert page(folder) == read
    fence.write("page", b"newest", EIGHT, scope=SCOPE)
    assert page(folder) == "newest"


@pytest.mark.parametrize(("place", "step"), [*enumerate(WRITE)])
def test_the_owner_of_a_killed_writer_may_repeat_and_is_told_the_truth(
    killed: Path, tmp_path: Path, place: int, step: str
) -> None:
    folder = fresh(killed, f"write {place} {step}", tmp_path)
    fence = FileFence(folder, patience=0)
    if step in BEFORE_DECISION:
        fence.write("page", NEW.encode(), SEVEN, scope=SCOPE, sequence=3)
    else:
        with pytest.raises(OutOfSequence) as told:
            fence.write("page", NEW.encode(), SEVEN, scope=SCOPE, sequence=3)
        assert told.value.sequence == told.value.highest
    assert page(folder) == NEW


@pytest.mark.parametrize(("place", "step"), [*enumerate(WRITE)])
def test_a_decided_write_whose_place_is_gone_is_undone_by_the_next(
    killed: Path, tmp_path: Path, place: int, step: str
) -> None:
    folder = fresh(killed, f"write {place} {step}", tmp_path)
    (folder / "page").unlink()
    (folder / "page" / "inside").mkdir(parents=True)
    fence = FileFence(folder, patience=0)
    fence.raise_to(SEVEN, scope=SCOPE)
    undone = step in {*BEFORE_DECISION, "mark renamed", "decided"}
    mark = fence.current(SCOPE)
    assert mark is not None
    assert (mark.generation, mark.sequence) == (7, 0 if undone else 3)
    shutil.rmtree(folder / "page")
    fence.raise_to(EIGHT, scope=SCOPE)
    assert not (folder / "page").exists()
    assert asides(folder) == []


@pytest.mark.parametrize(("place", "step"), [*enumerate(RAISE)])
def test_an_announcement_killed_at_any_step_is_made_or_not(killed: Path, tmp_path: Path, place: int, step: str) -> None:
    folder = fresh(killed, f"raise {place} {step}", tmp_path)
    fence = FileFence(folder, patience=0)
    mark = fence.current(SCOPE)
    assert mark is not None
    assert mark.generation == (8 if step == "mark renamed" else 7)
    fence.raise_to(EIGHT, scope=SCOPE)
    with pytest.raises(StaleToken):
        fence.raise_to(SEVEN, scope=SCOPE)
    assert page(folder) == OLD


def test_a_writer_stopped_before_it_decides_changes_nothing_when_it_goes_on(
    processes: Processes, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    fence = old_page(folder)
    writer = child(processes, "stop", folder, 7, "synced")
    wait_for(lambda: stopped(writer), 20, "the writer to stop")
    fence.raise_to(EIGHT, scope=SCOPE)
    assert page(folder) == OLD
    fence.write("page", b"newest", EIGHT, scope=SCOPE)
    writer.cont()
    assert writer.wait(20) == 0
    assert writer.lines() == ["StaleToken"]
    assert page(folder) == "newest"
    assert asides(folder) == []


def test_without_the_fence_the_stopped_writer_does_its_damage(tmp_path: Path) -> None:
    old_page(tmp_path / "folder").raise_to(EIGHT, scope=SCOPE)
    aside = tmp_path / "folder" / "aside"
    aside.write_text("late")
    aside.replace(tmp_path / "folder" / "page")
    assert page(tmp_path / "folder") == "late"


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGCONT])
def test_a_writer_stopped_while_it_decides_keeps_others_out_for_a_bounded_time(
    processes: Processes, tmp_path: Path, end: signal.Signals
) -> None:
    folder = tmp_path / "folder"
    old_page(folder)
    writer = child(processes, "stop", folder, 7, "decided")
    wait_for(lambda: stopped(writer), 20, "the writer to stop")
    with pytest.raises(Unavailable, match=rf"process {writer.pid} has held .*page.lock for more than 0.05 s"):
        FileFence(folder, patience=0.05).raise_to(EIGHT, scope=SCOPE)
    assert page(folder) == OLD
    writer.signal(end)
    writer.wait(20)
    fence = FileFence(folder, patience=0)
    fence.raise_to(EIGHT, scope=SCOPE)
    assert page(folder) == NEW
    assert writer.lines() == (["written"] if end == signal.SIGCONT else [])


def test_a_crowd_of_processes_leaves_the_highest_page_and_never_half_of_one(
    processes: Processes, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    old_page(folder)
    FileFence(folder).reset(SCOPE, reason="the crowd begins at 1")
    writers = [child(processes, "crowd", folder, number) for number in range(4)]
    seen: set[str] = set()
    while any(writer.running for writer in writers):
        lines = page(folder).splitlines()
        assert len({*lines}) == 1
        assert len(lines) in {1, 2000}
        seen.add(lines[0])
    assert [writer.wait() for writer in writers] == [0] * 4
    accepted = [(int(line.split()[0]), line.split()[1]) for writer in writers for line in writer.lines()]
    generation, number = max(accepted)
    assert page(folder) == f"{generation:06} by {number}\n" * 2000
    assert len({generation for generation, _ in accepted}) == len(accepted) > 4
    assert seen <= {OLD, *(f"{generation:06} by {number}" for generation, number in accepted)}
    assert asides(folder) == []


def test_a_fork_does_not_keep_the_lock(processes: Processes, tmp_path: Path) -> None:
    writer = child(processes, "fork", tmp_path)
    assert writer.wait(20) == 0, writer.stderr.read_text()
    assert writer.lines() == ["passed"]


def stopped(writer: Child) -> bool:
    return Path(f"/proc/{writer.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
