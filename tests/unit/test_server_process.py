"""How the process of a server for tests is started, waited for, ended and never left behind, whichever server it is."""

from __future__ import annotations

import os
import signal
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenure.errors import Misuse, Unavailable
from tenure.testing import process
from tests.support.processes import Processes, gone, wait_for
from tests.support.sleeper import READY, Sleeper

ROOT = Path(__file__).parents[2]

OWNER = """
import sys
{start}
print(server.pid, server.folder, flush=True)
open(sys.argv[1]).read()
"""

SERVERS = {
    "PostgreSQL": "from tenure.testing.servers import Postgres; server = Postgres.start()",
    "Redis": "from tenure.testing.redis import Redis; server = Redis.start()",
    "S3": "from tenure.testing.s3 import S3Server; server = S3Server.start()",
    "MariaDB": "from tenure.testing.mariadb import MariaDB; server = MariaDB.start()",
}
SLEEPER = "import pathlib; from tenure.testing import process; from tests.support.sleeper import Sleeper; "

DEAF = f"trap '' TERM QUIT; {READY}"


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as started:
        yield started


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the folder in which temporary folders are made; its name holds what a shell could trip over."""
    folder = tmp_path / "it's $a folder"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


class Deaf(Sleeper):
    """One that heeds nothing but SIGKILL, and is not waited for when it is told anything else."""

    def _end(self, number: signal.Signals) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if number is not signal.SIGKILL:
                patch.setattr(process, "_PATIENCE", 0.3)
            super()._end(number)


class Slow(Sleeper):
    """One that is not ready in time, and has said so by then."""

    def _ready(self) -> bool:
        wait_for(lambda: "warming up" in self._said(), 30, "its first words")
        return False

    def _wait(self, done: Callable[[], bool], state: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if state == "ready":
                patch.setattr(process, "_PATIENCE", 0.3)
            super()._wait(done, state)


class Owner:
    """A process that has started a server, and what it told of it."""

    def __init__(self, processes: Processes, folder: Path, start: str) -> None:
        os.mkfifo(folder / "never")
        path = os.pathsep.join((str(ROOT), *sys.path))
        environment = {"PYTHONPATH": path, "TMPDIR": tempfile.gettempdir()}
        self._child = processes.python("-c", OWNER.format(start=start), folder / "never", environment=environment)
        wait_for(lambda: self._child.lines() or not self._child.running, 60, "the server to start")
        assert self._child.lines(), self._child.stderr.read_text()
        pid, told = self._child.lines()[0].split(maxsplit=1)
        self.server, self.folder = int(pid), Path(told)

    def kill(self) -> None:
        """End it and see that the server ends."""
        assert self.folder.exists()
        assert not gone(self.server)
        self._child.kill(group=True)
        try:
            wait_for(lambda: gone(self.server), 30, "the server to end")
        finally:
            if not gone(self.server):
                os.kill(self.server, signal.SIGKILL)


# -- the owner dies


@pytest.mark.parametrize("kind", SERVERS)
def test_a_server_is_gone_when_its_owner_is_killed(kind: str, processes: Processes, tmp_path: Path) -> None:
    owner = Owner(processes, tmp_path, SERVERS[kind])
    owner.kill()
    wait_for(lambda: not owner.folder.exists(), 30, "its folder to be removed")


@pytest.mark.parametrize("paused", [False, True], ids=["running", "paused"])
def test_what_it_left_elsewhere_is_gone_as_well(
    processes: Processes, tmp_path: Path, temporary: Path, paused: bool
) -> None:
    owner = Owner(processes, tmp_path, SLEEPER + "process._LAST_TICKS = 1_000; server = Sleeper.start()")
    assert len(list(temporary.iterdir())) == 2
    if paused:
        os.kill(owner.server, signal.SIGSTOP)
    owner.kill()
    wait_for(lambda: not any(temporary.iterdir()), 30, "all to be removed")


def test_a_server_that_heeds_nothing_is_gone_as_well(processes: Processes, tmp_path: Path, temporary: Path) -> None:
    Owner(processes, tmp_path, SLEEPER + f"process._LAST_TICKS = 2; server = Sleeper.start({DEAF!r})").kill()
    wait_for(lambda: not any(temporary.iterdir()), 30, "all to be removed")


def test_a_folder_that_was_named_is_left(processes: Processes, tmp_path: Path, temporary: Path) -> None:
    named = temporary / "named"
    Owner(processes, tmp_path, SLEEPER + f"server = Sleeper.start(folder=pathlib.Path({str(named)!r}))").kill()
    wait_for(lambda: not named.with_suffix(".sock").exists(), 30, "what stands beside it to be removed, at last")
    assert (named / "password").exists()


# -- the owner ends it


def test_it_is_stopped_gently_killed_and_started_again_on_its_port(temporary: Path) -> None:
    with Sleeper.start(f"trap 'echo bye; exit' TERM; {READY}") as server:
        port = server.port
        for end in (server.stop, server.kill):
            pid = server.pid
            end()
            end()
            assert gone(pid)
            assert not server.running
            assert not server.stray.exists()
            with pytest.raises(Unavailable, match=r"the Sleeper server of .* is not running"):
                assert server.pid
            server.restart()
        assert server.port == port
        assert server.log.read_text().split() == ["ready", "bye", "ready", "ready"]
    assert list(temporary.iterdir()) == []


def test_one_that_is_paused_is_stopped_gently_as_well(temporary: Path) -> None:
    with Sleeper.start(f"trap 'echo bye; exit' TERM; {READY}") as server:
        os.kill(server.pid, signal.SIGSTOP)
        assert server.running
        server.stop()
        assert server.log.read_text().split() == ["ready", "bye"]


def test_one_that_ends_by_itself_does_not_run(temporary: Path) -> None:
    with Sleeper.start() as server:
        pid = server.pid
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not server.running, 10, "its end to be seen")
        with pytest.raises(Unavailable, match="is not running"):
            assert server.pid
        server.restart()
        assert server.pid != pid


def test_one_that_does_not_heed_is_told_and_killed_at_the_end(temporary: Path) -> None:
    for folder in (None, temporary / "named"):
        server = Deaf.start(DEAF, folder)
        with pytest.raises(Unavailable, match=r"the Sleeper server is not stopped after 0\.3 s; it said: ready"):
            server.stop()
        pid = server.pid
        server.close()
        assert gone(pid)
        assert server.folder.exists() == (folder is not None)


# -- it does not start


def test_one_that_is_not_ready_in_time_is_told_with_its_log_and_leaves_nothing(temporary: Path) -> None:
    with pytest.raises(Unavailable, match=r"the Sleeper server is not ready after 0\.3 s; it said: warming up"):
        Slow.start("echo warming up; while :; do sleep 0.02; done")
    assert list(temporary.iterdir()) == []


def test_one_that_ends_at_once_is_told_with_the_end_of_its_log_and_leaves_nothing(temporary: Path) -> None:
    with pytest.raises(Unavailable) as told:
        Sleeper.start("echo first; seq 1000; echo no luck today; exit 1")
    assert str(told.value).startswith("the Sleeper server did not start: ")
    assert str(told.value).endswith("\nno luck today")
    assert "first" not in str(told.value)
    assert list(temporary.iterdir()) == []


def test_what_it_said_before_is_not_quoted(temporary: Path) -> None:
    with Sleeper.start(f"echo long ago; {READY}") as server:
        server.script = "echo no luck today; exit 1"
        with pytest.raises(Unavailable, match="the Sleeper server did not start: no luck today"):
            server.restart()
        assert not server.running


def test_it_moves_where_its_port_is_taken_and_gives_up_where_all_are(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = iter(range(1, 100))
    monkeypatch.setattr(process, "free_port", lambda: next(ports))
    taken = "echo 'bind: Address already in use'; exit 1"
    with Sleeper.start(f"[ -e again ] || {{ touch again; {taken}; }}; {READY}") as server:
        assert server.port == 2
    with pytest.raises(Unavailable, match="found a port taken each of 5 times"):
        Sleeper.start(taken)
    assert next(ports) == 9
    assert list(temporary.iterdir()) == []


# -- its folder


def test_a_folder_that_was_named_is_kept_and_started_again_with_its_password(temporary: Path) -> None:
    folder = temporary / "deep" / "named"
    with Sleeper.start(folder=folder) as first:
        assert first.folder == folder
        password = first.password
        assert len(password) > 20
        assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "password")} == {0o700, 0o600}
    with Sleeper.start(folder=folder) as second:
        assert second.password == password
        assert second.log.read_text().split() == ["ready", "ready"]


def test_a_first_start_that_failed_halfway_is_made_up_for(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(server: Sleeper) -> None:
        server.data.mkdir()
        raise Unavailable("no luck today")

    with monkeypatch.context() as patch, pytest.raises(Unavailable, match="no luck today"):
        patch.setattr(Sleeper, "_initialize", fail)
        Sleeper.start(folder=temporary)
    assert [path.name for path in temporary.iterdir()] == ["password"]
    with Sleeper.start(folder=temporary) as server:
        assert server.data.is_dir()


def test_the_files_of_others_are_left_alone(temporary: Path) -> None:
    (temporary / "letter").write_text("dear")
    with pytest.raises(Misuse, match="holds files of others"):
        Sleeper.start(folder=temporary)
    assert [path.name for path in temporary.iterdir()] == ["letter"]
