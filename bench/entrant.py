"""What is measured: Tenure, its peers and the limits keep one interface, so that one harness measures them all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import ClassVar, Literal

Store = Literal["postgresql", "sqlite"]
Handler = Literal["async", "thread", "process"]
Role = Literal["tenure", "peer", "limit"]

STORES: tuple[Store, ...] = ("postgresql", "sqlite")


class Entrant(ABC):
    """One queue on one store. A job carries a number, and its handler does nothing but `board.mark(number)`.

    An address is a PostgreSQL URI or the path of a SQLite file. Everything but `left` runs in a child process, so that
    no library meets another; whatever a method imports, it imports by itself.
    """

    name: ClassVar[str]
    store: ClassVar[Store]
    role: ClassVar[Role] = "peer"
    distribution: ClassVar[str]
    """What to install, whose version the results name."""
    library: ClassVar[str]
    """What to import."""
    needs: ClassVar[str] = ""
    """What it needs besides, where it may be missing."""
    handlers: ClassVar[tuple[Handler, ...]] = ("async", "thread")
    in_bulk: ClassVar[bool] = True
    settings: ClassVar[str] = ""
    """How it was set, where this is not how it comes."""
    weaker: ClassVar[str] = ""
    """What it promises less than a durable, acknowledged, guarded job."""
    lease: ClassVar[str] = ""
    """How it comes to have the jobs of a worker that is gone, as it comes."""
    left: ClassVar[str]
    """SQL that counts the jobs that are not done."""

    @property
    def key(self) -> str:
        """Return the name by which a child process finds it."""
        return f"{type(self).__module__}:{type(self).__name__}"

    def version(self) -> str | None:
        """Return the installed version; None where it is not installed."""
        try:
            return version(self.distribution) if find_spec(self.library) else None
        except PackageNotFoundError:
            return None

    @abstractmethod
    def prepare(self, address: str) -> None:
        """Make the schema, and the queue, in an empty database."""

    @abstractmethod
    def singles(self, address: str, numbers: Iterable[int]) -> None:
        """Enqueue one job for each number, each durable before the next is asked for; connect before the first."""

    def bulk(self, address: str, batches: Iterable[Sequence[int]]) -> None:
        """Enqueue each batch by one call; connect before the first. Needed where `in_bulk` is true."""
        self.singles(address, (number for batch in batches for number in batch))

    def timed(self, how: str, address: str, jobs: int) -> float | None:  # noqa: ARG002 -- for those who do
        """Enqueue so many jobs by `singles` or `bulk` and tell the seconds, with a clock of one's own; None without."""
        return None

    @abstractmethod
    def work(self, address: str, handler: Handler) -> None:
        """Run one worker process until it is ended from outside."""
