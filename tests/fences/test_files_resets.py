"""What a file fence keeps of the marks that were put aside, and asks of who does it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure import Misuse
from tenure.fences.files import OWN_FOLDER, FileFence
from tenure.fences.rule import Mark
from tests.fences.files_fixtures import *  # noqa: F403 -- pytest finds fixtures by name
from tests.fences.files_fixtures import SCOPE, SEVEN


def test_a_reset_that_was_cut_off_hides_no_other(tmp_path: Path, fence: FileFence) -> None:
    fence.reset(SCOPE, reason="first")
    (record,) = (tmp_path / OWN_FOLDER).glob("*.resets")
    with record.open("ab") as file:
        file.write(record.read_bytes().strip()[:-20])
    assert [reset.reason for reset in fence.resets(SCOPE)] == ["first"]
    fence.raise_to(SEVEN, scope=SCOPE)
    fence.reset(SCOPE, reason="second")
    assert [reset.reason for reset in fence.resets(SCOPE)] == ["first", "second"]


@pytest.mark.parametrize("reason", ["", " \n", None, 5])
def test_a_reset_needs_a_reason_in_words(fence: FileFence, reason: str) -> None:
    with pytest.raises(Misuse, match="reason"):
        fence.reset(SCOPE, reason=reason)
    assert fence.current(SCOPE) == Mark("job-1", 7, 1)
