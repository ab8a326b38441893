"""As whom a server for tests runs: whoever starts it or, under root, an unprivileged user for one that refuses root."""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tenure.errors import Misuse


@dataclass(frozen=True, slots=True)
class Account:
    """The user of a process: whoever we are, unless `arguments`, which are for `subprocess`, name another."""

    arguments: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def unprivileged(cls) -> Self:
        """Return whoever we are or, under root, another user. Raises `Misuse` where there is none."""
        if os.geteuid() != 0:
            return cls()
        others = {entry.pw_name: entry for entry in pwd.getpwall() if entry.pw_uid != 0}
        if not others:
            raise Misuse(
                "the server refuses to run as root, and this system has no other user; add one, such as nobody"
            )
        chosen = others.get("nobody") or next(iter(others.values()))
        return cls({"user": chosen.pw_uid, "group": chosen.pw_gid, "extra_groups": ()})

    def __str__(self) -> str:
        return f"user {self.arguments['user']}" if self.arguments else "you"

    def temporary_folder(self, prefix: str) -> Path:
        """Make a private folder that it can reach. Raises `Misuse` if there is no place for one."""
        bases = (tempfile.gettempdir(), "/tmp", "/var/tmp")  # mkdtemp makes a private folder below them  # noqa: S108 -- which folders others can reach, not where anything is written
        for base in bases:
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=base)).resolve()
            self.own(folder)
            if self._may_write(folder):
                return folder
            folder.rmdir()
        raise Misuse(f"none of {', '.join(bases)} can be used by the user as whom the server runs ({self})")

    def named_folder(self, folder: Path) -> Path:
        """Take a folder, made if it is missing, and return its full path. Raises `Misuse` if it cannot write there."""
        folder = folder.resolve()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.own(folder)
        if not self._may_write(folder):
            raise Misuse(f"{folder} cannot be used by the user as whom the server runs ({self})")
        return folder

    def own(self, path: Path) -> None:
        """Make it the owner of a file or folder."""
        if self.arguments:
            os.chown(path, self.arguments["user"], self.arguments["group"])

    def _may_write(self, folder: Path) -> bool:
        probe = ["/bin/sh", "-c", 'test -w "$1"', "probe", str(folder)]
        return subprocess.run(probe, check=False, cwd="/", **self.arguments).returncode == 0
