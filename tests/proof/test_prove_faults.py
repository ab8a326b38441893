"""The faults of `tenure prove`, one by one: what is done, that it is undone, and that a fault which is none is told."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from tenure.app import App
from tenure.errors import BadSettings, Misuse, OutcomeUnknown, StaleToken, Unavailable
from tenure.proof.history import Fault, Line
from tenure.proof.prove import apart, managed, nemesis, volume
from tenure.proof.prove.managed import ManagedStore, ServerClock, check_clock
from tenure.proof.prove.nemesis import Nemesis, Targets
from tenure.proof.prove.places import HOST, Reference, Server, Service
from tenure.proof.prove.plan import JUMP, QUIET, Plan
from tenure.proof.prove.volume import Volume
from tenure.proof.recorder import Recorder
from tenure.protocol.lease import Effect, Token
from tenure.testing.proxy import Proxy
from tenure.testing.servers import Postgres
from tests.proof.rooms import in_a_room, no_room_of_its_own
from tests.support.processes import wait_for

PATIENCE = 30.0

# -- reorder


def test_an_overtaken_write_comes_after_the_newer_owners() -> None:
    service = Service(fence=True)
    with Server(service) as server, Proxy(HOST, server.port) as proxy, ThreadPoolExecutor(1) as pool:
        late, new = (Reference(proxy.port, patience=2 * PATIENCE) for _ in range(2))
        late.raise_to(Token("j", 1), "s")
        proxy.overtake(2, within=PATIENCE)
        kept_back = pool.submit(late.write, Effect("j", 1, 1), "s", '["late"]', 1)
        wait_for(lambda: proxy._faults.kept_back, PATIENCE, "the write to be kept back")
        new.raise_to(Token("j", 2), "s")
        new.write(Effect("j", 2, 1), "s", '["new"]', 1)
        with pytest.raises(StaleToken):
            kept_back.result(PATIENCE)
        assert proxy.counts.overtaken == 2
        assert new.read("s") == '["new"]'
        late.close()
        new.close()


# -- jump


def test_what_was_granted_while_a_clock_was_ahead_is_waited_for() -> None:
    assert Plan(lease=2.0).within == 2.0 + QUIET
    assert Plan(lease=2.0, managed="postgres", faults=("jump",)).within == 2.0 * (1 + JUMP) + QUIET
    assert [Plan(faults=(fault,), managed="postgres").clocks_jump for fault in ("clock", "jump", "disk")] == [
        True,
        True,
        False,
    ]


def test_without_libfaketime_no_clock_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed, "_LIBRARIES", ("/nowhere/*.so",))
    with pytest.raises(BadSettings, match="install the package faketime of your system"):
        ServerClock()


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServerClock:
    library = tmp_path / "libfaketimeMT.so.1"
    library.touch()
    monkeypatch.setattr(managed, "_LIBRARIES", (str(library),))
    return ServerClock()


def test_a_clock_that_is_not_believed_in_is_told(clock: ServerClock) -> None:
    def told_time() -> float:
        return time.time() + float(Path(clock.environment["FAKETIME_TIMESTAMP_FILE"]).read_text())

    with clock:
        check_clock(clock, told_time)
        with pytest.raises(Misuse, match="the clock of the server was to be set, and it is wrong by 3[56].. s"):
            check_clock(clock, time.time)
    assert not Path(clock.environment["FAKETIME_TIMESTAMP_FILE"]).parent.exists()


# -- disk


def test_a_volume_is_full_for_as_long_as_it_is_to_be(tmp_path: Path) -> None:
    if no_room_of_its_own():
        return
    script = """
def left() -> int:
    with (volume.folder / "file").open("ab", buffering=0) as file:
        try:
            return file.write(bytes(100_000))
        except OSError as error:
            return -error.errno
told = [left()]
volume.fill()
while (room := left()) > 0:
    told.append(room < 4096)
told.append(room)
volume.make_room()
print(*told, left())
"""
    ran = in_a_room(script, tmp_path)
    assert ran.stdout.split() in (["100000", "True", "-28", "100000"], ["100000", "-28", "100000"]), ran
    assert list(tmp_path.iterdir()) == []  # nobody else has seen it


def test_where_nothing_can_be_mounted_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden() -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(volume, "_leave", forbidden)
    with pytest.raises(BadSettings, match=r"lets you mount none \(.*not permitted\): run it on Linux as root"):
        Volume(tmp_path)


class Room:
    """A volume that counts, in which a server does not survive."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done: list[str] = []

    def fill(self) -> None:
        self.done.append("filled")

    def make_room(self) -> None:
        self.done.append("room")


class Fallen:
    """A server that has ended for want of room, and answers some time after it was started again."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._answers = iter((False, False, True))
        self.running = False

    def run(self, *words: str) -> str:
        if "pg_switch_wal" in words[-1] or not self.running or not next(self._answers):
            raise Unavailable("it is not there")
        return ""

    def restart(self) -> None:
        self.running = True
        self._room.done.append("restarted")


def test_a_server_that_did_not_survive_is_started_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managed, "_LOOK", 0.001)
    monkeypatch.setattr(managed, "_PATIENCE", PATIENCE)
    room = Room(tmp_path)
    store = ManagedStore(Plan(), tmp_path, ExitStack(), cast(Volume, room))
    store._server = cast(Postgres, Fallen(room))
    store.fill_disk(lambda seconds: room.done.append(f"{seconds} s"), 2.0, end_log=True)
    assert room.done == ["filled", "2.0 s", "room", "restarted"]


def test_a_wait_that_is_broken_off_leaves_no_full_disk(tmp_path: Path) -> None:
    def broken_off(_seconds: float) -> None:
        raise KeyboardInterrupt

    room = Room(tmp_path)
    store = ManagedStore(Plan(), tmp_path, ExitStack(), cast(Volume, room))
    with pytest.raises(KeyboardInterrupt):
        store.fill_disk(broken_off, 2.0, end_log=False)
    assert room.done == ["filled", "room"]


# -- a run in a process apart


def test_a_process_apart_that_ends_by_itself_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(Misuse, match=r"the process in which the run was played has ended by itself \(1\)"):
        apart.prove(Plan(faults=("disk",)), tmp_path / "run")


def test_a_mistake_in_a_process_apart_is_told_here(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "something").touch()
    told = "lets you mount none" if no_room_of_its_own() else "run is not empty"
    with pytest.raises(Misuse, match=told):
        apart.prove(Plan(faults=("disk",)), tmp_path / "run")


def test_a_process_apart_ends_with_whoever_started_it(tmp_path: Path) -> None:
    if no_room_of_its_own():
        return
    (tmp_path / "volume").mkdir()
    child = subprocess.Popen(
        [sys.executable, "-m", "tenure.proof.prove.apart", tmp_path / "volume", tmp_path / "run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with cast(Any, child.stdin) as orders, cast(Any, child.stdout) as lines:
        orders.write(msgspec.json.encode(Plan(faults=("disk",), workload="mutex", workers=2)) + b"\n")
        orders.flush()
        assert b"passed" in lines.readline()
        orders.close()
        assert child.wait(PATIENCE) == -9


# -- the nemesis


class Store:
    """A managed store that remembers how its clock was set."""

    def __init__(self) -> None:
        self.alone = threading.Lock()
        self.set: list[float] = []

    def set_clock(self, ahead: float) -> None:
        self.set.append(ahead)


class Network:
    """A proxy that remembers whether everything was undone."""

    def __init__(self) -> None:
        self.behaves = False

    def behave(self) -> None:
        self.behaves = True


def nemesis_of(tmp_path: Path, lines: list[Line], **at: Any) -> Nemesis:
    targets = Targets(cast(Any, None), cast(Any, None), "q", f"sqlite:///{tmp_path / 'store.db'}", **at)
    return Nemesis(Plan(faults=()), targets, Recorder(lines.append, "run"))


def test_in_the_end_everything_is_undone(tmp_path: Path) -> None:
    lines: list[Line] = []
    store, network = Store(), Network()
    doing = nemesis_of(tmp_path, lines, proxies={"destination": network}, managed=store)
    doing._set_clock(cast(ManagedStore, store), 1.5)
    doing._set_clock(cast(ManagedStore, store), -0.5)
    doing.stop()
    assert store.set == [1.5, -0.5, 0.0]
    assert network.behaves
    assert [line.detail for line in lines if isinstance(line, Fault)] == ["by +1.5 s", "by -2.0 s", "by +0.5 s"]


@pytest.mark.parametrize(
    ("how", "does"),
    [("all", ["cut"]), ("refuse", ["refuse", "cut", "accept"]), ("swallow", ["hold", "cut", "release"])],
)
def test_a_network_that_was_cut_carries_again(tmp_path: Path, how: str, does: list[str]) -> None:
    class Wire:
        def __init__(self) -> None:
            self.done: list[str] = []

        def __getattr__(self, name: str) -> Callable[[], None]:
            return lambda: self.done.append(name)

    wire = Wire()
    nemesis_of(tmp_path, [])._cut_all(cast(Proxy, wire), how, 0.0)
    assert wire.done == does


def test_what_goes_wrong_in_a_fault_ends_the_run(tmp_path: Path) -> None:
    doing = nemesis_of(tmp_path, [])

    def fail(_chance: object) -> None:
        raise Unavailable("the server did not come up again")

    doing._guarded("crash", fail)
    with pytest.raises(Unavailable, match="did not come up again"):
        doing.check()
    with pytest.raises(Unavailable, match="did not come up again"):
        doing.stop()


class Stopped:
    """A worker that is told to stop and to go on."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def stop(self) -> None:
        self.told.append("stop")

    def signal(self, _number: int) -> None:
        self.told.append("go on")


def test_no_worker_stands_still_with_the_lock_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doing, worker, answers = nemesis_of(tmp_path, []), Stopped(), iter((False, True, True))
    monkeypatch.setattr(doing, "_store_answers", lambda: next(answers))
    doing._stop_unlocked(cast(Any, worker))
    assert worker.told == ["stop", "go on", "stop"]


@pytest.mark.parametrize(
    ("error", "free"), [(Unavailable("it is locked"), False), (OutcomeUnknown("it is full"), True)]
)
def test_a_store_without_room_is_not_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, *, free: bool
) -> None:
    class Probe:
        def __init__(self, *_: object, **__: object) -> None:
            self.client = self

        def release(self, _jobs: list[str]) -> None:
            raise error

    monkeypatch.setattr(nemesis, "App", Probe)
    assert nemesis_of(tmp_path, [])._store_answers() is free


def test_whoever_looks_for_the_lock_of_the_file_leaves_nothing_there(tmp_path: Path) -> None:
    doing = nemesis_of(tmp_path, [])
    with closing(App(f"sqlite:///{tmp_path / 'store.db'}")) as app:
        app.store.migrate()
        assert doing._store_answers()
        with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as somebody:
            before = list(somebody.iterdump())
            somebody.execute("BEGIN IMMEDIATE")
            assert not doing._store_answers()
            somebody.execute("ROLLBACK")
            assert doing._store_answers()
            assert list(somebody.iterdump()) == before
    doing.stop()
