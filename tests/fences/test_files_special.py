"""What is the file system's own: places, durability, errors of the disk, damaged marks, names of scopes."""

from __future__ import annotations

import errno
import io
import os
import re
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure import App, BadSettings, Misuse, Token, Unavailable
from tenure.errors import BadToken, OutcomeUnknown, OutOfSequence, StaleToken
from tenure.fences.files import OWN_FOLDER, FileFence
from tenure.fences.files.disk import digest, file_name
from tenure.fences.rule import LEAP, Mark
from tenure.protocol.lease import Effect
from tests.fences.files_fixtures import *  # noqa: F403 -- pytest finds fixtures by name
from tests.fences.files_fixtures import EIGHT, SCOPE, SEVEN, SIX, page


def asides(tmp_path: Path) -> list[Path]:
    return [*(tmp_path / OWN_FOLDER / "aside").iterdir()]


def failing_at(step: str, folder: Path, number: int = errno.ENOSPC) -> FileFence:
    """Make a fence whose disk fails at a step."""

    def fail(name: str) -> None:
        if name == step:
            raise OSError(number, os.strerror(number))

    return FileFence(folder, step=fail)


# -- what is written


def test_data_may_come_in_pieces_and_from_a_run(tmp_path: Path, fence: FileFence) -> None:
    fence.write("page", (piece.encode() for piece in ("a", "b", "c")), SEVEN, scope=SCOPE, sequence=2)
    assert page(tmp_path) == b"abc"
    fence.write(tmp_path / "page", bytearray(b"d"), Effect("job-1", 7, 3), scope=SCOPE)
    assert page(tmp_path) == b"d"
    assert fence.current(SCOPE) == Mark("job-1", 7, 3)
    with App("memory://").lease("other") as lease:
        fence.raise_to(lease.token)
        fence.write("other", memoryview(b"mine"), lease.token)
    assert (tmp_path / "other").read_bytes() == b"mine"
    with pytest.raises(Misuse, match="encode the text"):
        fence.write("page", "text", SEVEN, scope=SCOPE, sequence=4)  # type: ignore[arg-type]


def test_what_is_stale_is_refused_before_its_data_is_made(tmp_path: Path, fence: FileFence) -> None:
    asked = []

    def data() -> Iterator[bytes]:
        asked.append("data")
        yield b""

    for token, sequence in ((SIX, 9), (SEVEN, 1)):
        with pytest.raises((StaleToken, OutOfSequence)):
            fence.write("page", data(), token, scope=SCOPE, sequence=sequence)
        with pytest.raises((StaleToken, OutOfSequence)), fence.replacing("page", token, scope=SCOPE, sequence=sequence):
            asked.append("the block")
    assert asked == []


def test_what_becomes_stale_meanwhile_is_refused_at_the_end(tmp_path: Path, fence: FileFence) -> None:
    with pytest.raises(StaleToken), fence.replacing("page", SEVEN, scope=SCOPE, sequence=2) as file:
        file.write(b"late")
        fence.raise_to(EIGHT, scope=SCOPE)
    assert page(tmp_path) == b"old"
    assert asides(tmp_path) == []


def test_a_block_that_fails_leaves_the_file_and_nothing_else(tmp_path: Path, fence: FileFence) -> None:
    with pytest.raises(ZeroDivisionError), fence.replacing("page", SEVEN, scope=SCOPE, sequence=2) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert page(tmp_path) == b"old"
    assert asides(tmp_path) == []
    fence.write("page", b"new", SEVEN, scope=SCOPE, sequence=2)


def test_a_block_may_close_its_file(tmp_path: Path, fence: FileFence) -> None:
    with fence.replacing("page", SEVEN, scope=SCOPE, sequence=2) as file, io.TextIOWrapper(file) as text:
        text.write("ä" * 10_000)
    assert page(tmp_path).decode() == "ä" * 10_000
    with pytest.raises(ValueError, match="closed"):
        file.write(b"after the fence")


def test_a_file_keeps_its_permissions_and_who_has_it_open_its_content(tmp_path: Path, fence: FileFence) -> None:
    (tmp_path / "page").chmod(0o640)
    with (tmp_path / "page").open("rb") as reader:
        fence.write("page", b"new", SEVEN, scope=SCOPE, sequence=2)
        assert reader.read() == b"old"
    assert stat.S_IMODE((tmp_path / "page").stat().st_mode) == 0o640
    mask = os.umask(0o027)
    try:
        fence.write("fresh", b"", SEVEN, scope="fresh")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640


def test_a_link_is_replaced_itself(tmp_path: Path, fence: FileFence) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "page")
    (tmp_path / "folder").mkdir()
    (tmp_path / "to-folder").symlink_to(tmp_path / "folder")
    for name in ("link", "to-folder"):
        fence.write(name, b"new", SEVEN, scope=name)
        assert not (tmp_path / name).is_symlink()
    assert page(tmp_path) == b"old"


def test_a_file_in_a_folder_below_is_replaced(tmp_path: Path, fence: FileFence) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "short").symlink_to(tmp_path / "a")
    for path in ("a/b/page", "short/b/../b/page", tmp_path / "a" / "b" / "page"):
        generation = Token("job-1", 8 + len(str(path)))
        fence.write(path, str(path).encode(), generation, scope=SCOPE)
        assert (tmp_path / "a" / "b" / "page").read_text() == str(path)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../outside", "is not below"),
        ("/outside", "is not below"),
        ("out/page", "is not below"),
        (".", "is not below|is a folder"),
        ("", "is not below|is a folder"),
        ("..", "is not below|is a folder"),
        ("folder", "is a folder"),
        ("folder/..", "is a folder"),
        (OWN_FOLDER, "the fence's own"),
        (f"{OWN_FOLDER}/page.mark", "the fence's own"),
        (f"folder/../{OWN_FOLDER}/x", "the fence's own"),
        ("nowhere/page", "cannot be written"),
        ("page/below", "cannot be written"),
        ("a\0b", "cannot be written"),
        ("x" * 300, "cannot be written"),
        ("\udcff", "cannot be written"),
    ],
)
def test_a_place_that_cannot_be_protected_is_refused(tmp_path: Path, path: str, why: str) -> None:
    folder = tmp_path / "protected"
    folder.mkdir()
    (folder / "folder").mkdir()
    (folder / "page").touch()
    (folder / "out").symlink_to(tmp_path)
    with pytest.raises(Misuse, match=why):
        FileFence(folder).write(path, b"new", SEVEN, scope=SCOPE)
    assert FileFence(folder).current(SCOPE) is None
    assert not (tmp_path / "outside").exists()


# -- what the disk does


def test_everything_is_on_disk_before_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing that it wrote, a power cut does: so the order of the syncs is looked at."""
    done: list[str] = []
    sync, replace = os.fsync, Path.replace

    def name(path: Path) -> str:
        return path.suffix.lstrip(".") if path.suffix in {".new", ".mark"} else path.name

    def noted_sync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        done.append("sync " + ("data" if path.parent.name == "aside" else name(path)))
        sync(descriptor)

    def noted_replace(old: Path, new: Path) -> Path:
        done.append(f"rename to {name(new)}")
        return replace(old, new)

    (tmp_path / "folder").mkdir()
    fence = FileFence(tmp_path)
    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    decided = ["sync new", "rename to mark", f"sync {OWN_FOLDER}"]
    in_place = ["rename to page", "sync folder"]
    fence.write("folder/page", b"new", SEVEN, scope=SCOPE)
    assert done == ["sync data", "sync aside", *decided, *in_place]
    done.clear()
    fence.raise_to(EIGHT, scope=SCOPE)
    assert done == ["sync folder", *decided]
    done.clear()
    fence.reset(SCOPE, reason="a test")
    assert done == ["sync page.resets", f"sync {OWN_FOLDER}", f"sync {OWN_FOLDER}"]


@pytest.mark.parametrize("step", ["opened", "written", "synced", "locked", "mark written"])
def test_a_disk_that_fails_before_the_decision_changes_nothing(tmp_path: Path, fence: FileFence, step: str) -> None:
    with pytest.raises((OSError, Unavailable)):
        failing_at(step, tmp_path).write("page", b"new", SEVEN, scope=SCOPE, sequence=2)
    assert page(tmp_path) == b"old"
    assert fence.current(SCOPE) == Mark("job-1", 7, 1)
    assert asides(tmp_path) == []
    fence.write("page", b"new", SEVEN, scope=SCOPE, sequence=2)


@pytest.mark.parametrize("data", [b"x" * 50_000, [b"x" * 4_000] * 2, [b"x" * 1_000] * 50], ids=["one", "two", "many"])
def test_a_file_that_is_too_large_changes_nothing(tmp_path: Path, fence: FileFence, data: bytes | list[bytes]) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(Unavailable, match="as it was.*too large"):
            fence.write("page", data, SEVEN, scope=SCOPE, sequence=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert page(tmp_path) == b"old"
    assert asides(tmp_path) == []
    fence.write("page", data, SEVEN, scope=SCOPE, sequence=2)


def test_an_error_of_the_block_stays_what_it_is(tmp_path: Path, fence: FileFence) -> None:
    with pytest.raises(FileNotFoundError), fence.replacing("page", SEVEN, scope=SCOPE, sequence=2) as file:
        file.write((tmp_path / "nowhere").read_bytes())


@pytest.mark.parametrize("step", ["mark renamed", "renamed"])
def test_a_disk_that_fails_after_the_decision_is_told_as_unknown(tmp_path: Path, fence: FileFence, step: str) -> None:
    with pytest.raises(OutcomeUnknown, match="repeating the write is harmless"):
        failing_at(step, tmp_path).write("page", b"new", SEVEN, scope=SCOPE, sequence=2)
    with pytest.raises(OutOfSequence) as told:
        fence.write("page", b"new", SEVEN, scope=SCOPE, sequence=2)
    assert told.value.sequence == told.value.highest
    assert page(tmp_path) == b"new"


def test_a_disk_that_fails_under_an_announcement_is_told_as_unknown(tmp_path: Path, fence: FileFence) -> None:
    with pytest.raises(OutcomeUnknown, match="No space left"):
        failing_at("mark written", tmp_path).raise_to(EIGHT, scope=SCOPE)
    fence.raise_to(EIGHT, scope=SCOPE)


@pytest.mark.parametrize(("token", "left"), [(SEVEN, Mark("job-1", 7, 1)), (EIGHT, Mark("job-1", 8, 0))])
def test_a_file_that_cannot_be_replaced_takes_the_decision_back(
    tmp_path: Path, fence: FileFence, token: Token, left: Mark
) -> None:
    def put_a_folder_there(step: str) -> None:
        if step == "decided":
            (tmp_path / "page").unlink()
            (tmp_path / "page" / "inside").mkdir(parents=True)

    late = FileFence(tmp_path, step=put_a_folder_there)
    with pytest.raises(Unavailable, match="cannot be replaced.*nothing was changed"):
        late.write("page", b"new", token, scope=SCOPE, sequence=5)
    assert fence.current(SCOPE) == left
    assert asides(tmp_path) == []
    with pytest.raises(StaleToken):
        fence.write("elsewhere", b"late", SIX, scope=SCOPE, sequence=9)
    fence.write("elsewhere", b"new", token, scope=SCOPE, sequence=5)


def test_a_decided_write_does_not_follow_a_link_that_came_later(tmp_path: Path) -> None:
    public, outside = tmp_path / "public", tmp_path / "outside"
    (public / "sub").mkdir(parents=True)
    outside.mkdir()

    def put_a_link_there(step: str) -> None:
        if step == "decided":
            (public / "sub").rename(public / "before")
            (public / "sub").symlink_to(outside)

    late = FileFence(public, step=put_a_link_there)
    with pytest.raises(Unavailable, match="leads elsewhere; nothing was changed"):
        late.write("sub/page", b"new", SEVEN, scope=SCOPE)
    assert [*outside.iterdir()] == asides(public) == []
    assert late.current(SCOPE) == Mark("job-1", 7, 0)


def test_what_was_removed_before_it_was_in_place_is_not_taken_for_written(tmp_path: Path, fence: FileFence) -> None:
    with (
        pytest.raises(Unavailable, match="was removed; nothing was changed"),
        fence.replacing("page", SEVEN, scope=SCOPE, sequence=2) as file,
    ):
        file.write(b"new")
        fence.reset(SCOPE, reason="while somebody wrote")
    assert page(tmp_path) == b"old"
    assert fence.current(SCOPE) is None


def test_only_older_beginnings_are_swept(tmp_path: Path, fence: FileFence) -> None:
    begun = tmp_path / OWN_FOLDER / "aside"
    for name in (f"{digest(SCOPE)}.6", f"{digest(SCOPE)}.7", f"{digest(SCOPE)}.8", f"{digest(SCOPE)}.10", "another.7"):
        (begun / f"{name}.1.begun").touch()
    fence.raise_to(EIGHT, scope=SCOPE)
    left = {f"{digest(SCOPE)}.8.1.begun", f"{digest(SCOPE)}.10.1.begun", "another.7.1.begun"}
    assert {path.name for path in asides(tmp_path)} == left
    fence.write("page", b"new", Token("job-1", 9), scope=SCOPE)
    assert {path.name for path in asides(tmp_path)} == left - {f"{digest(SCOPE)}.8.1.begun"}


# -- marks, names and places


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"8",
        b"{}",
        b"\xff\xfe",
        b'{"scope":"page","job":"job-1","generation":"8","sequence":1}',
        b'{"scope":"page","job":"job-1","generation":0,"sequence":1}',
        b'{"scope":"page","job":"job-1","generation":8,"sequence":-1}',
        b'{"scope":"page","job":"job-1","generation":1000000000000000,"sequence":1}',
        b'{"scope":"another","job":"job-1","generation":8,"sequence":1}',
    ],
)
def test_a_damaged_mark_lets_nothing_in_until_it_is_reset(tmp_path: Path, fence: FileFence, damage: bytes) -> None:
    (tmp_path / OWN_FOLDER / "page.mark").write_bytes(damage)
    with pytest.raises(BadToken, match=r"page.mark holds no mark of scope 'page'"):
        fence.write("page", b"new", EIGHT, scope=SCOPE)
    with pytest.raises(BadToken):
        fence.raise_to(EIGHT, scope=SCOPE)
    assert page(tmp_path) == b"old"
    fence.reset(SCOPE, reason="somebody wrote into it")
    fence.write("page", b"new", EIGHT, scope=SCOPE)
    assert [reset.reason for reset in fence.resets(SCOPE)] == ["somebody wrote into it"]


def test_a_reset_keeps_the_old_mark_and_its_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_800_000_000.5)
    fence = FileFence(tmp_path)
    fence.reset(SCOPE, reason="nothing is there")
    fence.write("page", b"x", Token("jöb", LEAP), scope=SCOPE, sequence=3)
    fence.reset(SCOPE, reason="a bogus\ntökén")
    (reset,) = FileFence(tmp_path).resets(SCOPE)
    assert (reset.scope, reset.mark, reset.at) == (SCOPE, Mark("jöb", LEAP, 3), 1_800_000_000.5)
    assert reset.reason == "a bogus\ntökén"
    assert fence.current(SCOPE) is None


def test_every_scope_has_files_of_its_own(tmp_path: Path) -> None:
    scopes = ["a", "A", ".", "..", "a/b", "a%2fb", "ä", "x" * 200, "x" * 199 + "y", "日" * 200, "日" * 199 + "本", "~"]
    names = [file_name(scope) for scope in scopes]
    assert len({name.lower() for name in names}) == len(scopes)
    assert all(len(name) < 200 and name.isascii() and "/" not in name and "." not in name for name in names)


def test_two_instances_wait_for_each_other_and_not_for_ever(tmp_path: Path) -> None:
    def try_the_same(step: str) -> None:
        if step == "decided":
            with pytest.raises(Unavailable, match=rf"process {os.getpid()} has held"):
                FileFence(tmp_path, patience=0).raise_to(EIGHT, scope=SCOPE)
            FileFence(tmp_path, patience=0).raise_to(EIGHT, scope="another")

    FileFence(tmp_path, step=try_the_same).write("page", b"new", SEVEN, scope=SCOPE)
    FileFence(tmp_path, patience=0).raise_to(EIGHT, scope=SCOPE)


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"22 1 0:20 / / rw - ext4 /dev/root rw\n30 22 0:40 / {tmp_path}/share rw - {kind} host:/export rw\n"
    )
    (tmp_path / "share").mkdir()
    monkeypatch.setattr("tenure.store.mounts._MOUNTS", mounts)
    with pytest.raises(BadSettings, match="locks and renames do not hold"):
        FileFence(tmp_path / "share")
    assert [*(tmp_path / "share").iterdir()] == []
    FileFence(tmp_path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="there is no folder .*nowhere"):
        FileFence(tmp_path / "nowhere")
    (tmp_path / OWN_FOLDER).touch()
    with pytest.raises(Unavailable, match="needs a folder of its own"):
        FileFence(tmp_path)


def test_the_examples_of_the_page_run_as_one_program(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "fences" / "files.md").read_text(encoding="utf-8")
    program = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-W", "error", "-c", program]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "generation 1 is stale" in ran.stdout
