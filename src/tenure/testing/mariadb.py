"""MariaDB servers for tests: from a MariaDB that is installed, or from Debian's packages, unpacked without root.

A server lives in one folder and listens on loopback only, with a random password. It never outlives the process that
started it. It runs as whoever starts it, root or not.

    python -m tenure.testing.mariadb

unpacks the server into this Python's environment where none is found; it needs apt-get and no rights.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from tenure.errors import Misuse, TenureError, Unavailable
from tenure.testing.process import Server

if TYPE_CHECKING:
    from collections.abc import Mapping

UNPACKED: Final = Path(sys.prefix, "mariadb")
"""Where `unpack` puts the server unless told otherwise, and where `MariaDB.start` looks first."""

PACKAGE: Final = "mariadb-server-core"
_ELSEWHERE: Final = ("/usr/sbin", "/usr/local/sbin", "/usr/libexec")
_USER: Final = "tenure"

_SETTINGS: Final[dict[str, str | int]] = {
    "bind-address": "127.0.0.1",
    "skip-name-resolve": 1,
    "character-set-server": "utf8mb4",
    "innodb-buffer-pool-size": "16M",
    "innodb-log-file-size": "8M",
    "innodb-data-file-path": "ibdata1:8M:autoextend",
}


@dataclass(frozen=True, slots=True)
class Installation:
    """A MariaDB on this machine: the program, the folder that holds its `share`, and libraries it brings along."""

    program: Path
    base: Path
    libraries: tuple[Path, ...] = ()

    @classmethod
    def find(cls) -> Self:
        """Find the unpacked one or one of the system's. Raises `Misuse` where there is none."""
        unpacked = UNPACKED / "usr"
        if (unpacked / "sbin" / "mariadbd").is_file():
            return cls(unpacked / "sbin" / "mariadbd", unpacked, tuple(UNPACKED.glob("usr/lib/*-linux-*")))
        found = shutil.which("mariadbd", path=os.pathsep.join((os.environ.get("PATH", ""), *_ELSEWHERE)))
        if found is None:
            raise Misuse(
                f"there is no MariaDB server: run `{Path(sys.executable).name} -m tenure.testing.mariadb`, which needs"
                " apt-get, or install the system's package of MariaDB (a program mariadbd on the PATH)"
            )
        program = Path(found).resolve()
        return cls(program, program.parent.parent)

    def share(self, pattern: str) -> Path:
        """Find a file that comes with the server. Raises `Misuse` where it is missing."""
        for name in ("mysql", "mariadb"):  # the folder's name before and since MariaDB 11
            for path in (self.base / "share" / name).glob(pattern):
                return path
        raise Misuse(f"the MariaDB below {self.base} is not whole: it has no share/*/{pattern}")


class MariaDB(Server):
    """A MariaDB server of one's own; `start` makes one, and leaving its `with` block ends it.

    `arguments` are for a driver's `connect`, `log` holds what it says. A folder that the caller named is kept and can
    be started again; others vanish.
    """

    kind = "MariaDB"

    def __init__(self, installation: Installation, folder: Path | None) -> None:
        self._installation = installation
        libraries = os.pathsep.join(map(str, installation.libraries))
        super().__init__(folder, {"LD_LIBRARY_PATH": libraries} if libraries else None)

    @classmethod
    def start(cls, folder: Path | None = None, installation: Installation | None = None) -> Self:
        """Start a server and return it once it accepts connections (about two seconds).

        Raises `Misuse` where no MariaDB is found or the folder cannot be used, and `Unavailable` with the end of the
        log if the server does not start.
        """
        server = cls(installation or Installation.find(), folder)
        server._begin()
        return server

    def arguments(self, database: str) -> dict[str, Any]:
        """Return the arguments with which a driver's `connect` reaches a database."""
        login = {"user": _USER, "password": self.password}
        return {"host": "127.0.0.1", "port": self.port, **login, "database": database}

    def create_database(self) -> str:
        """Create a database and return its name (needs PyMySQL)."""
        import pymysql

        name = f"test_{secrets.token_hex(6)}"
        connection = pymysql.connect(**self.arguments("mysql"))
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        finally:
            connection.close()
        return name

    def _initialize(self) -> None:
        super()._initialize()
        (self.folder / "tmp").mkdir(exist_ok=True)
        # The one user that the server's own tables need stays; the others have no password.
        parts = [
            "CREATE DATABASE mysql;\nUSE mysql;\n",
            *(
                self._installation.share(f"*_{kind}.sql").read_text()
                for kind in ("system_tables", "system_tables_data")
            ),
            "\nDELETE FROM global_priv WHERE User <> 'mariadb.sys';\n",
        ]
        done = subprocess.run(
            [*self._server(), "--bootstrap", "--skip-grant-tables"],
            env=self._environment,
            cwd=self.folder,
            input="".join(parts),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise Unavailable(f"MariaDB could not make its tables ({done.returncode}): {done.stderr.strip()[-2000:]}")

    def _command(self) -> list[str | Path]:
        first = (
            f"CREATE OR REPLACE USER {_USER}@'127.0.0.1' IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL ON *.* TO {_USER}@'127.0.0.1' WITH GRANT OPTION;\n"
        )
        files = {"init-file": self._write("first.sql", first), "socket": self.folder / "socket"}
        return [*self._server(), *_options(files), f"--pid-file={self.folder / 'pid'}", f"--port={self.port}"]

    def _server(self) -> list[str | Path]:
        """Return the program with the options that it always needs."""
        options = {
            "basedir": self._installation.base,
            "datadir": self.data,
            "tmpdir": self.folder / "tmp",
            "lc-messages-dir": self._installation.share("english/errmsg.sys").parent.parent,
            **_SETTINGS,
        }
        if os.geteuid() == 0:
            options["user"] = "root"
        return [self._installation.program, "--no-defaults", *_options(options)]

    def _ready(self) -> bool:
        return "ready for connections" in self._said()


def _options(named: Mapping[str, str | int | Path]) -> list[str | Path]:
    return [f"--{name}={value}" for name, value in named.items()]


def unpack(folder: Path | None = None) -> None:
    """Fetch Debian's packages of the server, as many as this system lacks, and unpack them, by default to `UNPACKED`.

    Nothing is installed, and no rights are needed but that to the folder. Raises `Misuse` where it cannot be done.
    """
    folder = folder or UNPACKED
    dpkg = shutil.which("dpkg-deb")
    if dpkg is None or shutil.which("apt-get") is None:
        raise Misuse("MariaDB can be unpacked only where there is apt-get; install the system's package of MariaDB")
    with tempfile.TemporaryDirectory(prefix="tenure-apt-") as cache:
        lists = ("-o", f"Dir::State::Lists={cache}/lists")
        for part in ("archives/partial", "lists/partial"):
            Path(cache, part).mkdir(parents=True)
        # The system's lists of packages may be missing or too old; then make some of one's own.
        if _apt(cache, "--download-only", "install", PACKAGE) is not None:
            said = _apt(cache, *lists, "update") or _apt(cache, *lists, "--download-only", "install", PACKAGE)
            if said is not None:
                raise Misuse(f"apt-get could not fetch {PACKAGE}: {said}")
        partial = folder.with_name(f"{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        for package in sorted(Path(cache, "archives").glob("*.deb")):
            done = subprocess.run([dpkg, "-x", package, partial], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Misuse(f"{package.name} could not be unpacked into {folder}: {done.stderr.strip()[-1000:]}")
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)


def _apt(cache: str, *arguments: str) -> str | None:
    """Run apt-get with its files in `cache`; return what went wrong, None if nothing did."""
    options = {
        "Debug::NoLocking": "1",
        "APT::Sandbox::User": "root",
        "Dir::Cache": cache,
        "Dir::Cache::archives": f"{cache}/archives",
    }
    named = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    command = ["apt-get", "-qq", "--yes", "--no-install-recommends", *named, *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip()[-1000:] or f"status {done.returncode}"


def main() -> int:
    """Make sure that there is a MariaDB server; returns the exit status."""
    try:
        found = Installation.find()
    except Misuse:
        try:
            unpack()
            found = Installation.find()
        except TenureError as error:
            sys.stderr.write(f"{error}\n")
            return 1
    sys.stdout.write(f"MariaDB: {found.program}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
