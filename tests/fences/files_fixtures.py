"""A fence with one page in it, for the tests of what is the file system's own; star-imported, as pytest wants it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure import Token
from tenure.fences.files import FileFence

SIX, SEVEN, EIGHT = (Token("job-1", generation) for generation in (6, 7, 8))
SCOPE = "page"


@pytest.fixture
def fence(tmp_path: Path) -> FileFence:
    fence = FileFence(tmp_path)
    fence.write("page", b"old", SEVEN, scope=SCOPE)
    return fence


def page(tmp_path: Path) -> bytes:
    return (tmp_path / "page").read_bytes()
