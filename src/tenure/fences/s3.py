"""`S3Fence`: one object a scope in an S3 bucket, published by conditional writes (D4).

    fence = S3Fence(boto3.client("s3"), "reports")
    fence.raise_to(job.token, scope="2026-07")
    before = fence.read("2026-07")
    with job.effect(seconds=20) as token:
        fence.put("2026-07", after, token)

What is put becomes a *data object* of its own that is never written again, named by token and nonce. The scope's
*manifest* holds the mark and points to the data object in force. It is written only if nobody has written it since it
was read (`If-Match`, or `If-None-Match: *` for the first), so the rule is judged and applied in one step (R31). Each
write carries a nonce: a refused one may have been one's own earlier try whose answer was lost, and is recognized.

What holds: no older token, no repeat and no swap changes what `read` returns; a reader gets whole objects only.

What does not: a writer without conditions goes around the fence, and whoever deletes a manifest forgets its mark. Let a
bucket policy refuse both below ``tenure/manifests/``, and keep lifecycle rules away from everything here; `sweep`
tidies up. Only the old versions of a versioned bucket may expire. One object is covered, not several together. After a
lost answer, `StaleToken` can mean that the write was let in and that a newer owner has written since.

What to configure: a store that honours both conditions, and decides about them under a lock. `check` tries that out, by
itself before the first write. Give the client short timeouts; whatever it repeats by itself is harmless.
"""

from __future__ import annotations

import hashlib
import random
import re
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from functools import cache, partial
from typing import Any

import msgspec
from botocore.exceptions import (  # type: ignore[import-untyped]  # botocore carries no types
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004 -- botocore's own, and only here
    HTTPClientError,
    IncompleteReadError,
)
from msgspec.structs import replace

from tenure.errors import BadSettings, Misuse, OutcomeUnknown, TenureError, Unavailable
from tenure.fences.rule import LEAP, Bid, Mark, Reset, announcement, check_reason, judge, writing
from tenure.protocol.lease import Token
from tenure.protocol.names import check_name

RIVALS = 8
"""How many writers at once `check` lets run for one object."""

_TRIES = 30
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5  # seconds, of which chance takes a part
_PRECONDITION = {409, 412}
_PASSING = {"RequestTimeout", "TooManyRequests", "Throttling", "ThrottlingException"}
_ON_THE_WAY = (ConnectionError, HTTPClientError, IncompleteReadError)
_UNREADABLE = re.compile("[^A-Za-z0-9_-]+")


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is stored for one scope; `pointer` names the data object in force, `nonce` the last write."""

    scope: str
    nonce: str = ""
    mark: Mark | None = None
    pointer: str | None = None
    resets: tuple[Reset, ...] = ()


_decode = msgspec.json.Decoder(Manifest).decode


class S3Fence:
    """Fenced objects of one bucket; `client` is boto3's, and threads may share a fence.

    Everything is stored below `prefix`. `leap` bounds how far a generation may lie beyond the mark. With `probe` the
    first write is preceded by `check`.
    """

    def __init__(
        self, client: Any, bucket: str, prefix: str = "tenure/", *, leap: int = LEAP, probe: bool = True
    ) -> None:
        self._bucket = _Bucket(client, bucket)
        self._prefix = prefix
        self._leap = leap
        self._unchecked = probe

    def raise_to(self, token: Token, *, scope: str | None = None) -> None:
        """Announce a new owner before its first read there (R32); raises StaleToken when a newer one was here."""
        bid = announcement(token, scope)
        self._alter(bid.scope, partial(self._marked, bid))

    def put(
        self, scope: str, body: bytes | bytearray | memoryview, token: Token, *, sequence: int | None = None
    ) -> None:
        """Make `body` what `read` returns; raises StaleToken, OutOfSequence or BadToken, and then nothing has changed.

        `token` is what ``job.effect()`` yields, which numbers the write, or a bare one with `sequence` beside it.
        Raises Unavailable when nothing was published, OutcomeUnknown when nobody can tell.
        """
        if not isinstance(body, bytes | bytearray | memoryview):
            raise Misuse(f"an object is written in bytes, not as {type(body).__name__}: encode it first")
        bid = writing(token, scope, sequence)
        nonce = _new_nonce()
        store = cache(partial(self._store, bid.scope, bytes(body)))

        def publish(found: Manifest) -> Manifest:
            marked = self._marked(bid, found)
            # The count of resets goes first: after one, what an earlier mark had ruled out may pass again (see sweep).
            pointer = f"{len(found.resets):04}.{bid.generation:015}.{bid.sequence:015}.{nonce}"
            store(pointer)
            return replace(marked, pointer=pointer)

        self._alter(bid.scope, publish, nonce)

    def delete(self, scope: str, token: Token, *, sequence: int | None = None) -> None:
        """Let `read` return None, as a write like any other; the mark stays (R35)."""
        bid = writing(token, scope, sequence)
        self._alter(bid.scope, lambda found: replace(self._marked(bid, found), pointer=None))

    def clear(self, scope: str) -> None:
        """Let `read` return None, as a clean-up by nobody's run does, without a token; the mark stays (R35)."""
        self._alter(_scope(scope), lambda found: found if found.pointer is None else replace(found, pointer=None))

    def read(self, scope: str) -> bytes | None:
        """Return the bytes in force, None where there are none."""
        gone = None
        for _ in range(_TRIES):
            pointer = self._look(_scope(scope))[0].pointer
            if pointer is None:
                return None
            key = self._data_key(_name(scope), pointer)
            if (found := self._bucket.read(key)) is not None:
                return found[0]
            if pointer == gone:
                raise Misuse(f"{key} is in force and is gone from {self._bucket.name}: who removes objects there?")
            gone = pointer  # or something else is in force by now, and a sweep came between
        raise Unavailable(f"scope {scope!r} is rewritten faster than it can be read; try again later")

    def current(self, scope: str) -> Mark | None:
        """Tell the mark of a scope, None before its first announcement and after a reset."""
        return self._look(_scope(scope))[0].mark

    def reset(self, scope: str, *, reason: str) -> None:
        """Put a scope's mark aside, as a person, after a token that no store has issued (R38); the reason is kept."""
        check_reason(reason)

        def put_aside(found: Manifest) -> Manifest:
            if found.mark is None:
                return found
            entry = Reset(found.scope, found.mark, time.time(), reason)
            return replace(found, mark=None, resets=(*found.resets, entry))

        self._alter(_scope(scope), put_aside)

    def resets(self, scope: str) -> list[Reset]:
        """List the marks of a scope that were put aside, oldest first."""
        return list(self._look(_scope(scope))[0].resets)

    def sweep(self, older_than: float = 3600.0) -> int:
        """Remove data objects that no manifest points to and none ever will; returns how many.

        Those are the ones at or below their scope's mark: the rule refuses their publication for ever. So one that is
        about to be published is never removed, however long its writer was paused. `older_than` seconds, by the store's
        clock, are for readers: they have that long between the manifest and the data.
        """
        if older_than < 0:
            raise Misuse(f"older_than is {older_than:g} s: 0 or more")
        look = cache(self._look_at)
        folder = f"{self._prefix}data/"
        removed = 0
        for key, age in self._bucket.walk(folder):
            name, _, pointer = key.removeprefix(folder).partition("/")
            manifest = look(name)[0]
            if age >= older_than and manifest is not None and _is_over(pointer, manifest):
                self._bucket.remove(key)
                removed += 1
        return removed

    def check(self) -> None:
        """Try out whether the store honours conditions, also for writers at once; raises BadSettings where not.

        A store that looks first and writes later may pass by luck.
        """
        one, other = (f"{self._prefix}probes/{_new_nonce()}" for _ in range(2))
        try:
            made = self._passes(one, "a new object", IfNoneMatch="*")
            self._fails(one, "an object that is there already", IfNoneMatch="*")
            changed = self._passes(one, "an object that is as it was read", IfMatch=made)
            self._fails(one, "an object that has changed", IfMatch=made)
            self._race(one, IfMatch=changed)
            self._race(other, IfNoneMatch="*")
        finally:
            for key in (one, other):
                self._bucket.remove(key)
        self._unchecked = False

    def _marked(self, bid: Bid, found: Manifest) -> Manifest:
        mark = judge(found.mark, bid, leap=self._leap)
        return found if mark == found.mark else replace(found, mark=mark)

    def _alter(self, scope: str, alter: Callable[[Manifest], Manifest], nonce: str | None = None) -> None:
        """Replace a scope's manifest by what `alter` makes of it, in one step, unless `alter` returns the same one."""
        if self._unchecked:
            self.check()
        nonce = nonce or _new_nonce()
        lost: TenureError | None = None
        for pause in _pauses():
            try:
                if self._try(scope, alter, nonce):
                    return
            except OutcomeUnknown as error:
                lost = error
            except (BadSettings, Unavailable) as error:
                if lost is not None:
                    raise lost from error
                raise
            time.sleep(pause)
        raise lost or Unavailable(f"scope {scope!r}: others were faster {_TRIES} times; nothing was done, try again")

    def _try(self, scope: str, alter: Callable[[Manifest], Manifest], nonce: str) -> bool:
        found, etag = self._look(scope)
        if nonce in {found.nonce, (found.pointer or "").rpartition(".")[2]}:
            return True
        altered = alter(found)
        if altered is found:
            return True
        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        text = msgspec.json.encode(replace(altered, nonce=nonce))
        return self._bucket.write(self._manifest_key(_name(scope)), text, changing=True, **condition) is not None

    def _look(self, scope: str) -> tuple[Manifest, str | None]:
        found, etag = self._look_at(_name(scope))
        return (Manifest(scope), None) if found is None else (found, etag)

    def _look_at(self, name: str) -> tuple[Manifest | None, str | None]:
        key = self._manifest_key(name)
        stored = self._bucket.read(key)
        if stored is None:
            return None, None
        try:
            found = _decode(stored[0])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Misuse(f"{key} in {self._bucket.name} is no manifest that this version reads: {error}") from error
        if _name(found.scope) != name:
            raise Misuse(f"{key} in {self._bucket.name} says that it is the manifest of {found.scope!r}")
        return found, stored[1]

    def _store(self, scope: str, body: bytes, pointer: str) -> None:
        # Its name has a nonce of our own in it: if it is there, it is from a try of ours.
        self._bucket.write(self._data_key(_name(scope), pointer), body, changing=False, IfNoneMatch="*")

    def _passes(self, key: str, what: str, **condition: str) -> str:
        etag = self._bucket.write(key, secrets.token_bytes(16), changing=False, **condition)
        if etag is None:
            raise self._careless(f"refused to write {what}", condition)
        return etag

    def _fails(self, key: str, what: str, **condition: str) -> None:
        if self._bucket.write(key, secrets.token_bytes(16), changing=False, **condition) is not None:
            raise self._careless(f"let through a write of {what}", condition)

    def _race(self, key: str, **condition: str) -> None:
        def write(number: int) -> str | None:
            return self._bucket.write(key, number.to_bytes(16), changing=False, **condition)

        with ThreadPoolExecutor(RIVALS) as pool:
            won = [etag for etag in pool.map(write, range(RIVALS)) if etag is not None]
        if len(won) > 1:
            raise self._careless(f"let through {len(won)} of {RIVALS} writes at once, and one may pass", condition)

    def _careless(self, did: str, condition: dict[str, str]) -> BadSettings:
        return BadSettings(
            f"bucket {self._bucket.name}: the store {did} ({', '.join(condition)}): a fence there would guard nothing;"
            " use a store with conditional writes, such as Amazon S3"
        )

    def _manifest_key(self, name: str) -> str:
        return f"{self._prefix}manifests/{name}.json"

    def _data_key(self, name: str, pointer: str) -> str:
        return f"{self._prefix}data/{name}/{pointer}"


class _Bucket:
    """The few requests that a fence makes, and what their errors mean."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self.name = name

    def read(self, key: str) -> tuple[bytes, str] | None:
        """Return an object and its ETag, None where there is none."""
        try:
            answer = self._client.get_object(Bucket=self.name, Key=key)
            return answer["Body"].read(), answer["ETag"]
        except ClientError as error:
            if _code(error) == "NoSuchKey":
                return None
            raise self._translated(error) from error
        except BotoCoreError as error:
            raise self._translated(error) from error

    def write(self, key: str, body: bytes, *, changing: bool, **condition: str) -> str | None:
        """Write an object and return its ETag, None when the condition does not hold.

        `changing` tells that a lost answer leaves something unknown.
        """
        try:
            answer = self._client.put_object(Bucket=self.name, Key=key, Body=body, **condition)
        except ClientError as error:
            if _status(error) in _PRECONDITION or _code(error) == "NoSuchKey":
                return None
            raise self._translated(error, changing=changing) from error
        except BotoCoreError as error:
            raise self._translated(error, changing=changing) from error
        return str(answer["ETag"])

    def remove(self, key: str) -> None:
        """Remove an object, if it is there."""
        self._ask(self._client.delete_object, Key=key)

    def walk(self, folder: str) -> Iterator[tuple[str, float]]:
        """List the keys below a folder, each with its age in seconds by the store's clock."""
        more: dict[str, str] = {}
        while True:
            page = self._ask(self._client.list_objects_v2, Prefix=folder, **more)
            now = parsedate_to_datetime(page["ResponseMetadata"]["HTTPHeaders"]["date"])
            for entry in page.get("Contents", ()):
                yield entry["Key"], (now - entry["LastModified"]).total_seconds()
            if not page["IsTruncated"]:
                return
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def _ask(self, call: Callable[..., Any], **arguments: str) -> Any:
        try:
            return call(Bucket=self.name, **arguments)
        except (BotoCoreError, ClientError) as error:
            raise self._translated(error) from error

    def _translated(self, error: Any, *, changing: bool = False) -> TenureError:
        if not _is_passing(error):
            return BadSettings(f"bucket {self.name}: {error}")
        said = _code(error) if isinstance(error, ClientError) else type(error).__name__
        if changing:
            return OutcomeUnknown(f"bucket {self.name}: the answer was lost ({said}); it was written whole or not")
        return Unavailable(f"bucket {self.name}: {said}; nothing was published, try again later")


def _scope(scope: str) -> str:
    return check_name("a fence's scope", scope)


def _name(scope: str) -> str:
    """Name a scope in a key, which has at most 1024 bytes: the digest tells scopes apart, the rest is for people."""
    return f"{_UNREADABLE.sub('_', scope)[:40]}.{hashlib.sha256(scope.encode()).hexdigest()[:32]}"


def _is_over(pointer: str, manifest: Manifest) -> bool:
    """Tell whether a data object is not in force, and the rule refuses for ever to put it in force."""
    era, _, rest = pointer.partition(".")
    generation, _, rest = rest.partition(".")
    sequence = rest.partition(".")[0]
    if pointer == manifest.pointer or not (era + generation + sequence).isdecimal():
        return False
    mark = (-1, -1) if manifest.mark is None else (manifest.mark.generation, manifest.mark.sequence)
    return (int(era), int(generation), int(sequence)) <= (len(manifest.resets), *mark)


def _new_nonce() -> str:
    return secrets.token_hex(16)


def _pauses() -> Iterator[float]:
    for number in range(_TRIES):
        yield random.uniform(0.0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**number))


def _status(error: Any) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", "no code"))


def _is_passing(error: Any) -> bool:
    if not isinstance(error, ClientError):
        return isinstance(error, _ON_THE_WAY)
    refused = _status(error) < 500 or _code(error) == "NotImplemented"  # noqa: PLR2004 -- the class of status
    return not refused or _code(error) in _PASSING
