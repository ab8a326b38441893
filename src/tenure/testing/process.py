"""The process of a server for tests: started in a folder of its own, waited for, ended, and never left behind.

What PostgreSQL (`servers`), Redis and Valkey (`redis`), SeaweedFS (`s3`) and MariaDB (`mariadb`) have in common. Each
of those modules describes one server: its program, its settings, and how to see that it is ready.

A server never outlives the process that started it: a watcher waits at the other end of a pipe, which the kernel closes
however that process ends.
"""

from __future__ import annotations

import secrets
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Self

from tenure.errors import Misuse, Unavailable
from tenure.testing.account import Account
from tenure.testing.proxy import free_port, give_back

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_PATIENCE: Final = 60.0
_POLL: Final = 0.01
_TRIES: Final = 5
_QUOTED: Final = 2_000  # characters of the log's end
_LAST_TICKS: Final = 100

# The shell becomes the server by `exec`, so `$$` is the server's process id. The watcher is a grandchild, so that the
# server does not meet an unknown child. It reads a line once the server has been seen to end, and end of file when the
# process that holds the pipe is gone. $1 is the signal that ends the server at once, be it paused, and $2 how many
# tenths of a second that may take; up to `--` follow the files and folders to remove then.
_SUPERVISE: Final = """
signal=$1 ticks=$2; shift 2
exec 3<&0 </dev/null
( (
    read -r ended <&3 && exit
    kill -s "$signal" $$
    kill -s CONT $$
    while kill -0 $$ && [ $ticks -gt 0 ]; do ticks=$((ticks - 1)); sleep 0.1; done
    kill -s KILL $$
    while [ "$1" != -- ]; do rm -rf -- "$1"; shift; done
) >/dev/null 2>&1 & )
exec 3<&-
while [ "$1" != -- ]; do shift; done; shift
exec "$@"
"""


class Server(ABC):
    """A server of one's own on loopback, behind a random password; leaving its `with` block ends it.

    It lives in `folder`: its `data`, its `log`, its password and its settings. A folder that the caller named is kept
    and can be started again; others vanish with the server.
    """

    kind: ClassVar[str]
    """What messages call it."""

    _GENTLY: ClassVar[signal.Signals] = signal.SIGTERM
    _AT_ONCE: ClassVar[signal.Signals] = signal.SIGKILL

    port: int

    def __init__(
        self,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        account: Account | None = None,
    ) -> None:
        self._account = account or Account()
        self._environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self._temporary = folder is None
        self.folder = self._own_folder(folder)
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self._password_file = self.folder / "password"
        self._pick_ports()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def password(self) -> str:
        """Return the password that the server asks for."""
        return self._password_file.read_text()

    @property
    def pid(self) -> int:
        """Return the server's process id. Raises `Unavailable` if it does not run."""
        if self._process is None:
            raise Unavailable(f"the {self.kind} server of {self.folder} is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Tell whether the server runs, be it paused."""
        if self._process is not None and self._process.poll() is not None:
            self._ended(self._process)
        return self._process is not None

    def stop(self) -> None:
        """Stop the server, paused or not, with what it does at a shutdown; nothing if it does not run.

        Raises `Unavailable` if it still runs after a minute.
        """
        self._end(self._GENTLY)

    def kill(self) -> None:
        """End the server by SIGKILL and return when it is gone; nothing if it does not run."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop the server if it runs and start it on the same port; `Unavailable` if it does not come up."""
        self.stop()
        self._launch()

    def close(self) -> None:
        """End the server for good, by force if it must be, and remove its folder unless the caller named it."""
        try:
            self._end(self._AT_ONCE if self._temporary else self._GENTLY)
        except Unavailable:
            self.kill()
        self._give_ports_back()
        if self._temporary:
            self._remove()

    # -- what a server says of itself

    @abstractmethod
    def _command(self) -> Sequence[str | Path]:
        """Return the program and its arguments, with the files that they name written."""

    @abstractmethod
    def _ready(self) -> bool:
        """Tell whether the server, whose process runs, answers."""

    def _initialize(self) -> None:
        """Make what the first start in a folder needs, `data` at least; it may have been tried there before."""
        self.data.mkdir()

    def _pick_ports(self) -> None:
        """Choose where to listen."""
        self.port = free_port()

    def _give_ports_back(self) -> None:
        """Let others listen there."""
        give_back(self.port)

    def _strays(self) -> Sequence[Path]:
        """Name the files outside its folder that the server leaves when it is killed."""
        return ()

    # -- the way of a process

    def _begin(self) -> None:
        """Start the server; if that fails, end it and remove what it made."""
        try:
            if not self._password_file.exists():
                self._write("password", secrets.token_urlsafe(18))
            if not self.data.exists():
                self._initialize_whole()
            self._launch_on_free_ports()
        except BaseException:
            self.close()
            raise

    def _initialize_whole(self) -> None:
        try:
            self._initialize()
        except BaseException:
            shutil.rmtree(self.data, ignore_errors=True)
            raise

    def _launch_on_free_ports(self) -> None:
        for _ in range(_TRIES):
            try:
                return self._launch()
            except _PortTaken:
                self._give_ports_back()
                self._pick_ports()
        raise Unavailable(f"the {self.kind} server found a port taken each of {_TRIES} times that it was tried")

    def _launch(self) -> None:
        removed = [*([self.folder] if self._temporary else []), *self._strays()]
        at_once = self._AT_ONCE.name.removeprefix("SIG")
        supervised = [at_once, str(_LAST_TICKS), *removed, "--", *self._command()]
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SUPERVISE, self.kind, *supervised],
                env=self._environment,
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                bufsize=0,
                start_new_session=True,
                **self._account.arguments,
            )
        self._wait(self._came_up, "ready")

    def _came_up(self) -> bool:
        if self.running:
            return self._ready()
        taken = "address already in use" in self._said().lower()
        raise (_PortTaken if taken else Unavailable)(f"the {self.kind} server did not start: {self._said()[-_QUOTED:]}")

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.send_signal(signal.SIGCONT)
            self._wait(lambda: not self.running, "stopped")

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        """Let the watcher go, whose process id may soon be another's."""
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(b"ended\n")
        process.stdin.close()
        self._process = None
        for path in self._strays():
            path.unlink(missing_ok=True)

    def _wait(self, done: Callable[[], bool], state: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not done():
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"the {self.kind} server is not {state} after {_PATIENCE:g} s; it said: {self._said()[-_QUOTED:]}"
                )
            time.sleep(_POLL)

    # -- its folder

    def _own_folder(self, named: Path | None) -> Path:
        if named is None:
            return self._account.temporary_folder(f"tenure-{self.kind.lower()}-")
        if named.is_dir() and not (named / "password").exists() and any(named.iterdir()):
            raise Misuse(f"{named} holds files of others; give a server an empty folder, or one that it had before")
        return self._account.named_folder(named)

    def _write(self, name: str, text: str) -> Path:
        """Write a file of the folder that the server alone may read, and return its path."""
        file = self.folder / name
        file.touch(mode=0o600)
        self._account.own(file)
        file.write_text(text)
        return file

    def _said(self) -> str:
        """Return what the server wrote to its log since it was started last."""
        return self.log.read_bytes()[self._log_start :].decode(errors="replace").strip()

    def _remove(self) -> None:
        """Remove what a server that was killed leaves, its folder last."""
        shutil.rmtree(self.folder, ignore_errors=True)


class _PortTaken(Unavailable):
    """Another process listens on a port."""
