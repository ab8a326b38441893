"""The rule in a folder of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.testing.fences.crowd import *  # noqa: F403 -- the part's tests
from tenure.testing.fences.rule import *  # noqa: F403 -- the part's tests
from tests.fences.files import FileDestination


@pytest.fixture
def destination(tmp_path: Path) -> FileDestination:
    return FileDestination(tmp_path)
