"""An S3 bucket as a destination: what the suite, the plays with real processes and the tests of `S3Fence` write to."""

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tenure import Token
from tenure.fences.s3 import S3Fence, _name
from tenure.testing.fences import Destination
from tenure.testing.s3 import S3Server

_making = threading.Lock()


class S3Destination:
    """Fenced objects below one prefix of a bucket."""

    def __init__(self, server: S3Server, bucket: str, prefix: str | None = None) -> None:
        self.server = server
        self.bucket = bucket
        self.prefix = prefix or f"{secrets.token_hex(6)}/"
        with _making:  # clients may be shared by threads, and not be made by several at once
            self.client = server.client()
        self.fence = self.fence_with(self.client)

    def fence_with(self, client: Any) -> S3Fence:
        """Open the same destination through another client."""
        return S3Fence(client, self.bucket, self.prefix, probe=False)

    def raise_to(self, token: Token, scope: str) -> None:
        self.fence.raise_to(token, scope=scope)

    def write(self, token: Token, scope: str, value: str, sequence: int) -> None:
        self.fence.put(scope, value.encode(), token, sequence=sequence)

    def write_unfenced(self, scope: str, value: str) -> None:
        """Write like a program that knows where things are, and nothing of conditions."""
        name = _name(scope)
        manifest = json.loads(self.get(f"manifests/{name}.json"))
        self.put(f"data/{name}/mine", value.encode())
        self.put(f"manifests/{name}.json", json.dumps({**manifest, "pointer": "mine"}).encode())

    def read(self, scope: str) -> str | None:
        found = self.fence.read(scope)
        return None if found is None else found.decode()

    def delete(self, scope: str) -> None:
        self.fence.clear(scope)

    def reset(self, scope: str, reason: str) -> None:
        self.fence.reset(scope, reason=reason)

    def resets(self, scope: str) -> list[str]:
        return [entry.reason for entry in self.fence.resets(scope)]

    @contextmanager
    def again(self) -> Iterator[Destination]:
        other = S3Destination(self.server, self.bucket, self.prefix)
        try:
            yield other
        finally:
            other.client.close()

    def get(self, key: str) -> bytes:
        """Read an object below the prefix, whatever it is."""
        body: bytes = self.client.get_object(Bucket=self.bucket, Key=self.prefix + key)["Body"].read()
        return body

    def put(self, key: str, body: bytes) -> None:
        """Write an object below the prefix without any condition."""
        self.client.put_object(Bucket=self.bucket, Key=self.prefix + key, Body=body)

    def keys(self, folder: str) -> list[str]:
        """List the keys in a folder below the prefix."""
        page = self.client.list_objects_v2(Bucket=self.bucket, Prefix=self.prefix + folder)
        return [entry["Key"].removeprefix(self.prefix) for entry in page.get("Contents", ())]
