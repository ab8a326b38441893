"""Object storage as the destination: a SeaweedFS server of the play's own, called through boto3."""

from __future__ import annotations

import http.client
import io
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import boto3  # type: ignore[import-untyped]  # it carries no types
from botocore.awsrequest import AWSResponse  # type: ignore[import-untyped]  # nor does this
from botocore.config import Config  # type: ignore[import-untyped]  # nor this

from tenure.demo.destinations.place import HOST, TIMEOUT, Place, Sent, Stage, Way
from tenure.fences.s3 import S3Fence
from tenure.protocol.lease import Effect, Token
from tenure.testing.s3 import REGION, S3Server


@contextmanager
def place(_stage: Stage) -> Iterator[Place]:
    """Start a server, make a bucket, and try out whether it honours conditions, which each fence would else do."""
    with S3Server.start() as server:
        bucket = server.create_bucket()
        with closing(server.client()) as client:
            S3Fence(client, bucket).check()
        address = {"port": str(server.port), "bucket": bucket, **server.credentials}
        yield Place(address, "a SeaweedFS server")


@contextmanager
def page(way: Way, sent: Sent) -> Iterator[S3Page]:
    """Make a client."""
    config = Config(s3={"addressing_style": "path"}, read_timeout=TIMEOUT, retries={"total_max_attempts": 1})
    keys = {name: word for name, word in way.address.items() if name.startswith("aws_")}
    url = f"http://{HOST}:{way.address['port']}"
    with closing(boto3.client("s3", endpoint_url=url, region_name=REGION, config=config, **keys)) as client:
        yield S3Page(client, way, sent)


class S3Page:
    """A page in an object of its own."""

    def __init__(self, client: Any, way: Way, sent: Sent) -> None:
        self._client = client
        self._way = way
        self._sent = sent
        self._fence = S3Fence(client, way.address["bucket"], probe=False) if way.fence else None
        self.answer = ""
        client.meta.events.register("before-send.s3.PutObject", self._carry)

    def raise_to(self, token: Token) -> None:
        """Announce a new owner; raises StaleToken."""
        if self._fence is not None:
            self._fence.raise_to(token, scope=self._way.page)

    def read(self) -> str:
        """Read it."""
        if self._fence is not None:
            return (self._fence.read(self._way.page) or b"").decode()
        try:
            found = self._client.get_object(Bucket=self._way.address["bucket"], Key=self._way.page)
        except self._client.exceptions.NoSuchKey:
            return ""
        return bytes(found["Body"].read()).decode()

    def write(self, token: Effect, text: str) -> None:
        """Write it under a token; raises StaleToken."""
        if self._fence is not None:
            self._fence.put(self._way.page, text.encode(), token)
        else:
            self._client.put_object(Bucket=self._way.address["bucket"], Key=self._way.page, Body=text.encode())

    def _carry(self, request: Any, **_: Any) -> AWSResponse | None:
        """Carry the request that publishes over the slow way, in boto3's place, and tell when it has left."""
        url = urlsplit(request.url)
        if "/data/" in url.path:
            return None
        headers = {name: word for name, word in request.headers.items() if name.lower() != "expect"}
        with closing(http.client.HTTPConnection(HOST, self._way.port, timeout=TIMEOUT)) as line:
            # The signature covers the host, which is the server's and not the proxy's.
            line.request(request.method, url.path, request.body, {**headers, "Host": url.netloc})
            self._sent()
            answer = line.getresponse()
            self.answer = f"{answer.status} {answer.reason}"
            return AWSResponse(request.url, answer.status, answer.headers, _Body(answer.read()))


class _Body(io.BytesIO):
    """A body as botocore reads it."""

    def stream(self) -> Iterator[bytes]:
        """Give all of it."""
        yield self.read()
