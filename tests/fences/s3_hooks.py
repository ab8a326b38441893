"""Where the tests of `S3Fence` come between: just before a request leaves, and while a sweep waits for its second."""

from collections.abc import Callable, Iterator
from typing import Any

from botocore.awsrequest import AWSResponse  # type: ignore[import-untyped]  # botocore carries no types

from tests.fences.s3 import S3Destination
from tests.support.processes import wait_for


def before(client: Any, operation: str, where: str, act: Callable[[], Any], times: int = 1) -> None:
    """Do something just before the client sends its next requests of one kind; an answer of `act` is the store's."""
    left = [times]

    def hook(request: Any, **_: Any) -> Any:
        request.headers.pop("Expect", None)  # or the first answer would be "100 Continue", before anything is done
        if where in request.url and left[0] > 0:
            left[0] -= 1
            return act()
        return None

    client.meta.events.register(f"before-send.s3.{operation}", hook)


class Body:
    def __init__(self, text: bytes) -> None:
        self.text = text

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.text


def answer(status: int, code: str) -> Any:
    made: Callable[..., Any] = AWSResponse
    return made("", status, {}, Body(f"<Error><Code>{code}</Code></Error>".encode()))


def swept(destination: S3Destination, count: int) -> None:
    """Sweep until so many are gone: the store counts an object's age in whole seconds."""
    removed = 0

    def sweep() -> bool:
        nonlocal removed
        removed += destination.fence.sweep(0.0)
        return removed >= count

    wait_for(sweep, 30.0, "the objects to go")
    assert removed == count
