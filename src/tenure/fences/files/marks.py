"""The files of one scope: its lock, its mark, and what was put aside. Storing the mark is what decides a write."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from tenure.errors import BadToken, OutcomeUnknown, Unavailable
from tenure.fences.files.disk import file_name, sync_folder
from tenure.fences.rule import Mark, Reset
from tenure.store.contract import MAX_GENERATION

Step = Callable[[str], None]
_Generation = Annotated[int, msgspec.Meta(ge=1, le=MAX_GENERATION)]
_Sequence = Annotated[int, msgspec.Meta(ge=0, le=MAX_GENERATION)]


class Decided(msgspec.Struct, frozen=True):
    """A write that passed: the file written aside, where it belongs, and the sequence before it."""

    aside: str
    path: str
    before: _Sequence


class Record(msgspec.Struct, frozen=True):
    """What the file of a mark holds; `write` is the last write, in place or about to be."""

    scope: str
    job: str
    generation: _Generation
    sequence: _Sequence
    write: Decided | None = None

    @property
    def mark(self) -> Mark:
        """The mark itself."""
        return Mark(self.job, self.generation, self.sequence)


class _NotPlaced(Exception):
    """A write was decided and its file cannot be renamed into place; it has been undone."""


class Files:
    """The files of one scope; every method but `load` and `resets` needs the lock on `lock`."""

    def __init__(self, folder: Path, own: Path, asides: Path, scope: str, step: Step) -> None:
        name = file_name(scope)
        self.lock = own / f"{name}.lock"
        self._mark = own / f"{name}.mark"
        self._new = own / f"{name}.new"
        self._resets = own / f"{name}.resets"
        self._folder, self._own, self._asides = folder, own, asides
        self._scope = scope
        self._step = step

    def load(self) -> Record | None:
        """Read the mark; raises BadToken where it cannot be read, since nothing can be judged then."""
        try:
            record = msgspec.json.decode(self._mark.read_bytes(), type=Record)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadToken(self._damaged()) from error
        if record.scope != self._scope:
            raise BadToken(self._damaged())
        return record

    def store(self, mark: Mark, write: Decided | None = None) -> None:
        """Replace the mark, durably."""
        record = Record(self._scope, mark.job, mark.generation, mark.sequence, write)
        with self._new.open("wb") as file:
            file.write(msgspec.json.encode(record))
            file.flush()
            os.fsync(file.fileno())
        self._step("mark written")
        self._new.replace(self._mark)
        self._step("mark renamed")
        sync_folder(self._own)

    def settle(self) -> Mark | None:
        """Finish the last write if its writer did not come to it, and return the mark."""
        record = self.load()
        if record is None:
            return None
        try:
            self._place(record)
        except _NotPlaced:
            # Nobody was told that it was made, and its writer is gone.
            record = self.load()
        return None if record is None else record.mark

    def decide(self, before: Mark | None, mark: Mark, aside: Path, target: Path) -> None:
        """Store the mark of a write and bring its file into place; raises Unavailable or OutcomeUnknown."""
        sequence = before.sequence if before is not None and before.generation == mark.generation else 0
        write = Decided(aside.name, str(target.relative_to(self._folder)), sequence)
        try:
            self.store(mark, write)
        except OSError as error:
            record = self.load()
            if record is not None and record.write == write:
                raise OutcomeUnknown(f"{target}: {error}; repeating the write is harmless, and tells") from error
            aside.unlink(missing_ok=True)
            raise Unavailable(f"{target}: {error}; nothing was changed") from error
        self._step("decided")
        try:
            self._place(Record(self._scope, mark.job, mark.generation, mark.sequence, write))
        except _NotPlaced as error:
            raise Unavailable(f"{target} cannot be replaced: {error}; nothing was changed") from error
        except OSError as error:
            raise OutcomeUnknown(f"{target}: {error}; repeating the write is harmless, and tells") from error

    def _place(self, record: Record) -> None:
        write = record.write
        if write is None:
            return
        aside, target = self._asides / write.aside, self._folder / write.path
        if aside.exists():
            try:
                if target.parent.resolve(strict=True) != target.parent:
                    raise NotADirectoryError(f"{target.parent} was a folder, and now leads elsewhere")
                aside.replace(target)
            except OSError as error:
                # The generation stays: it has been met. Only the write is taken back, and may be repeated.
                self.store(Mark(record.job, record.generation, write.before))
                aside.unlink(missing_ok=True)
                raise _NotPlaced(str(error)) from error
            self._step("renamed")
        # Also when somebody renamed it before: it may have been ended just then.
        with suppress(FileNotFoundError):
            sync_folder(target.parent)

    def put_aside(self, mark: Mark, at: float, reason: str) -> None:
        """Keep a mark among the resets and remove it; the file of resets is written first."""
        reset = Reset(self._scope, mark, at, reason)
        with self._resets.open("ab") as file:
            # On a line of its own, also behind one that a full disk cut off.
            file.write(b"\n" + msgspec.json.encode(reset) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self._own)
        self._mark.unlink()
        sync_folder(self._own)

    def resets(self) -> list[Reset]:
        """List the marks that were put aside, oldest first; of one that was cut off, the mark is still in force."""
        found: list[Reset] = []
        try:
            lines = self._resets.read_bytes().splitlines()
        except FileNotFoundError:
            return found
        for line in lines:
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                found.append(msgspec.json.decode(line, type=Reset))
        return found

    def _damaged(self) -> str:
        return (
            f"{self._mark} holds no mark of scope {self._scope!r}: find out which generation is in force, and reset the"
            " scope; nothing was changed"
        )
