import pytest

from tenure.testing.fences.crowd import *  # noqa: F403
from tenure.testing.fences.rule import *  # noqa: F403
from tests.fences.memory import MemoryDestination


@pytest.fixture
def destination() -> MemoryDestination:
    return MemoryDestination()
