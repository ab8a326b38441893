"""`FileFence`: write aside, lock, judge, store the mark, rename."""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO

from tenure.errors import BadSettings, BadToken, Misuse, OutcomeUnknown, Refused, Unavailable
from tenure.fences.files.disk import digest, failing_as, identify, identity, locked, refuse_network_folder, sync_folder
from tenure.fences.files.marks import Files, Step
from tenure.fences.rule import LEAP, Bid, Mark, Reset, announcement, check_reason, judge, writing
from tenure.protocol.lease import Token
from tenure.protocol.names import check_name

OWN_FOLDER = ".tenure-fence"
"""Where a fence keeps its marks and the files being written, below the folder that it protects."""

Bytes = bytes | bytearray | memoryview
StrPath = str | os.PathLike[str]


class FileFence:
    """Fences for the files below `folder`, which must exist; one instance serves any number of threads.

    `patience` is how many seconds to wait for another writer of the same scope. `step` is called with a name after each
    step of a write, so that a test can end the process there.
    """

    def __init__(
        self, folder: StrPath, *, leap: int = LEAP, patience: float = 10.0, step: Step = lambda _: None
    ) -> None:
        self._folder = Path(folder).resolve()
        self._own = self._folder / OWN_FOLDER
        self._asides = self._own / "aside"
        self._leap = leap
        self._patience = patience
        self._step = step
        if not self._folder.is_dir():
            raise BadSettings(f"there is no folder {self._folder}")
        self._refuse_nested(self._folder.parents)
        refuse_network_folder(self._folder)
        with failing_as(Unavailable, "a fence needs a folder of its own there"):
            self._asides.mkdir(parents=True, exist_ok=True)
            self._identity = identify(self._own, patience)
            sync_folder(self._own)
            sync_folder(self._folder)

    def raise_to(self, token: Token, *, scope: str | None = None) -> None:
        """Announce a new owner before its first read there (R32); raises StaleToken when a newer one was here.

        `scope` names what is protected, by default the job itself. A write that an older owner had decided on is
        finished, and what it had only begun is removed.
        """
        bid = announcement(token, scope)
        with self._locked(bid.scope) as files, failing_as(OutcomeUnknown, "the mark may not be stored: repeat it"):
            before = files.settle()
            mark = judge(before, bid, leap=self._leap)
            if mark != before:
                self._sweep(bid.scope, bid.generation)
                files.store(mark)

    def write(
        self,
        path: StrPath,
        data: Bytes | Iterable[Bytes],
        token: Token,
        *,
        sequence: int | None = None,
        scope: str | None = None,
    ) -> None:
        """Replace the file at `path` by `data`; raises StaleToken or OutOfSequence, and the file is as it was.

        `path` is below the fence's folder. An OutOfSequence with `sequence == highest` says that the write was made
        before and is in place; so after OutcomeUnknown, repeat the call with its sequence.
        """
        if isinstance(data, str):
            raise Misuse("a file is written in bytes: encode the text first")
        with self.replacing(path, token, sequence=sequence, scope=scope) as file:
            for piece in (data,) if isinstance(data, Bytes) else data:
                with failing_as(Unavailable, f"{path!r} is as it was, and cannot be written"):
                    file.write(piece)

    @contextmanager
    def replacing(
        self, path: StrPath, token: Token, *, sequence: int | None = None, scope: str | None = None
    ) -> Iterator[BinaryIO]:
        """Give a file to write into, which replaces the one at `path` when the block ends without an error.

        A token that is stale already is refused before the block, any other at its end; see `write`.
        """
        bid = writing(token, scope, sequence)
        self._check_own()
        target = self._target(path)
        self._refuse_early(bid)
        aside = self._asides / f"{digest(bid.scope)}.{bid.generation}.{bid.sequence}.{secrets.token_hex(8)}"
        try:
            with self._written(aside, target) as file:
                yield file
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        self._publish(bid, aside, target)

    def current(self, scope: str) -> Mark | None:
        """Return the mark of a scope, None where nothing was announced or written."""
        self._check_own()
        record = self._files(scope).load()
        return None if record is None else record.mark

    def reset(self, scope: str, *, reason: str) -> None:
        """Put the mark of a scope aside and keep it with the reason (R38); any token passes the scope afterwards."""
        check_reason(reason)
        with self._locked(scope) as files, failing_as(OutcomeUnknown, "the mark may not be put aside: look at it"):
            try:
                mark = files.settle()
            except BadToken:
                mark = Mark("", 0, 0)
            if mark is not None:
                self._sweep(scope, mark.generation + 1)
                files.put_aside(mark, time.time(), reason)

    def resets(self, scope: str) -> list[Reset]:
        """List the marks of a scope that were put aside, oldest first."""
        self._check_own()
        return self._files(scope).resets()

    def _target(self, path: StrPath) -> Path:
        """Find where a path leads; raises Misuse for a place that this fence cannot protect."""
        named = self._folder / path
        try:
            target = named.parent.resolve(strict=True) / named.name
            str(target).encode()
            is_folder = stat.S_ISDIR(_mode(target))
            device = target.parent.stat().st_dev
        except (OSError, ValueError) as error:
            raise Misuse(f"{path!r} cannot be written: {error}") from error
        if not target.is_relative_to(self._folder) or target.is_relative_to(self._own):
            raise Misuse(f"{target} is not below {self._folder}, or is the fence's own")
        if is_folder or named.name == "..":
            raise Misuse(f"{target} is a folder, and a write replaces one file")
        if device != self._asides.stat().st_dev:
            raise Misuse(f"{target} lies on another file system than {self._folder}: give that one a fence of its own")
        between = takewhile(lambda folder: folder != self._folder, target.parents)
        if inner := _fenced_one(between):
            raise Misuse(f"{target} lies below {inner}, which has a fence of its own: write it through that one")
        return target

    def _refuse_nested(self, above: Iterable[Path]) -> None:
        """Raise BadSettings when a folder above has a fence: two of them would keep two marks for one file."""
        if outer := _fenced_one(above):
            raise BadSettings(
                f"{self._folder} lies below {outer}, which has a fence of its own: use that one for both, or move one"
                f" of the folders; if nothing there is fenced any more, remove {outer / OWN_FOLDER}"
            )

    def _refuse_early(self, bid: Bid) -> None:
        try:
            judge(self.current(bid.scope), bid, leap=self._leap)
        except Refused:
            # Again under the lock: a write that is refused as repeated must be in place when its owner hears of it.
            with self._locked(bid.scope) as files, failing_as(Unavailable, "nothing was changed"):
                judge(files.settle(), bid, leap=self._leap)

    @contextmanager
    def _written(self, aside: Path, target: Path) -> Iterator[BinaryIO]:
        with failing_as(Unavailable, f"{target} is as it was, and cannot be written"):
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        self._step("opened")
        # The block may close its file, as a wrapper around it does when it goes.
        with _closing(os.fdopen(descriptor, "wb")) as file, os.fdopen(os.dup(descriptor), "wb") as kept:
            if there := _mode(target):
                os.fchmod(descriptor, stat.S_IMODE(there))
            yield file
            self._step("written")
            self._check_own()
            with failing_as(Unavailable, f"{target} is as it was, and cannot be written"):
                file.close()
                os.fsync(kept.fileno())
                sync_folder(self._asides)
        self._step("synced")

    def _publish(self, bid: Bid, aside: Path, target: Path) -> None:
        decided = False
        try:
            with self._locked(bid.scope) as files:
                with failing_as(Unavailable, f"{target} is as it was"):
                    before = files.settle()
                    mark = judge(before, bid, leap=self._leap)
                    if before is None or before.generation < bid.generation:
                        self._sweep(bid.scope, bid.generation)
                if not aside.exists():
                    raise Unavailable(f"{aside}, which was to become {target}, was removed; nothing was changed")
                # From here on, the file written aside belongs to whoever finishes the write.
                decided = True
                files.decide(before, mark, aside, target)
        finally:
            if not decided:
                aside.unlink(missing_ok=True)
        self._step("unlocked")

    def _sweep(self, scope: str, below: int) -> None:
        """Remove what owners of older generations wrote aside and never decided on."""
        for aside in self._asides.glob(f"{digest(scope)}.*"):
            if int(aside.name.split(".")[1]) < below:
                aside.unlink(missing_ok=True)

    def _files(self, scope: str) -> Files:
        return Files(self._folder, self._own, self._asides, check_name("a fence's scope", scope), self._step)

    @contextmanager
    def _locked(self, scope: str) -> Iterator[Files]:
        files = self._files(scope)
        self._check_own()
        with locked(files.lock, self._patience):
            self._step("locked")
            self._check_own()  # while this one waited, its lock may have gone with the folder
            yield files

    def _check_own(self) -> None:
        """Raise BadToken when the marks are gone: a fence that has forgotten them would let older tokens in (R35)."""
        with failing_as(Unavailable, "nothing was changed"):
            there = identity(self._own)
        if there != self._identity:
            raise BadToken(
                f"{self._own} was {'made anew' if there else 'removed'} while this fence was in use, and its marks are"
                " lost: nobody can tell which generation is in force, and nothing was changed. Stop whoever may still"
                f" write below {self._folder}, then start again: a new FileFence begins without marks"
            )


@contextmanager
def _closing(file: BinaryIO) -> Iterator[BinaryIO]:
    """Close a file at the end; where its block failed, what cannot be written any more hides no error."""
    try:
        yield file
    except BaseException:
        with suppress(OSError):
            file.close()
        raise
    file.close()


def _fenced_one(folders: Iterable[Path]) -> Path | None:
    """Find a folder among some that has a fence."""
    return next((folder for folder in folders if os.path.isdir(folder / OWN_FOLDER)), None)  # noqa: PTH112 -- never raises


def _mode(path: Path) -> int:
    """Return what kind of file is there and its permissions; 0 where there is none, and for a link."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return 0
    return 0 if stat.S_ISLNK(mode) else mode
