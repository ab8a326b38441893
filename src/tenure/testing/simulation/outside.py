"""Puts the simulation's threads, queues, sleeps and chance in place of the real ones in the worker's modules.

The worker reaches the outside world through a few names of its modules; each is listed here, and a name that is not
there any more is an error at once. They are put back afterwards. Meanwhile no real worker can run in this process.
"""

from __future__ import annotations

import importlib
import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from tenure.errors import Misuse
from tenure.testing.simulation.threads import Stage
from tenure.worker.settings import Settings

_THREADED = ("feeder", "keeper", "part", "ringer", "threads", "upkeep", "warden", "worker")
_QUEUED = ("threads", "worker")

_inside = False


def seams(stage: Stage, chance: random.Random) -> dict[str, object]:
    """Name everything that is replaced, each as ``module:name``, with what stands there meanwhile."""
    return {
        **{f"tenure.worker.{module}:threading": stage.threading for module in _THREADED},
        **{f"tenure.worker.{module}:queue": stage.queue for module in _QUEUED},
        "tenure.worker.worker:time": stage.time,
        "tenure.worker.worker:Settings": cache(Settings),  # they cannot change, and to check them takes a while
        "tenure.worker.worker:new_owner": _nobody,  # each process has the identity that the world gives it
        "tenure.worker.worker:socket": _OneHost(),
        "tenure.worker.run:random": chance,
        "tenure.store.driver:random": chance,
        "tenure.protocol.ending:traceback": _Brief(),
        "tenure.hold:os": _OneProcess(),
    }


def _nobody() -> str:
    return "nobody"


class _OneHost:
    """Stands for the module `socket`: all live on one host, whose name the kernel need not be asked for."""

    @staticmethod
    def gethostname() -> str:
        return "host"


class _OneProcess:
    """Stands for the module `os`: nobody forks here, and each look at a lease asks in which process it is."""

    @staticmethod
    def getpid() -> int:
        return 1


class _Brief:
    """Stands for the module `traceback`: writing out where a handler failed takes longer than all else that it does."""

    @staticmethod
    def format_exception(error: BaseException) -> list[str]:
        return [repr(error)]

    @staticmethod
    def extract_tb(_trace: object) -> list[Any]:
        return []


@contextmanager
def simulated(replacements: dict[str, object]) -> Iterator[None]:
    """Let the worker's modules see the replacements inside the block; one simulation at a time."""
    global _inside  # noqa: PLW0603 -- modules are the process's, so this must be known to the whole process
    if _inside:
        raise Misuse("a simulation is under way in this process: one at a time")
    logger = logging.getLogger("tenure")
    level = logger.level
    before: list[tuple[Any, str, object]] = []
    _inside = True
    try:
        logger.setLevel(logging.CRITICAL + 1)  # a hundred workers a second have much to tell, and nobody reads it
        for name, replacement in replacements.items():
            module_name, _, attribute = name.partition(":")
            module = importlib.import_module(module_name)
            before.append((module, attribute, getattr(module, attribute)))
            setattr(module, attribute, replacement)
        yield
    finally:
        for module, attribute, value in reversed(before):
            setattr(module, attribute, value)
        logger.setLevel(level)
        _inside = False
