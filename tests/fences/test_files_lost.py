"""The fence's own folder, removed or made anew while it is in use: refused, and never begun afresh in silence."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tenure import StaleToken, Unavailable
from tenure.errors import BadToken
from tenure.fences.files import OWN_FOLDER, FileFence
from tests.fences.files_fixtures import *  # noqa: F403 -- pytest finds fixtures by name
from tests.fences.files_fixtures import EIGHT, SCOPE, SEVEN, SIX, page

ACTS: dict[str, Callable[[FileFence], object]] = {
    "raise_to": lambda fence: fence.raise_to(EIGHT, scope=SCOPE),
    "write": lambda fence: fence.write("page", b"new", EIGHT, scope=SCOPE),
    "current": lambda fence: fence.current(SCOPE),
    "reset": lambda fence: fence.reset(SCOPE, reason="a test"),
    "resets": lambda fence: fence.resets(SCOPE),
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("anew", [False, True])
def test_r35_a_fence_whose_marks_were_removed_lets_nothing_in(
    tmp_path: Path, fence: FileFence, act: str, anew: bool
) -> None:
    shutil.rmtree(tmp_path / OWN_FOLDER)
    if anew:
        FileFence(tmp_path)
    with pytest.raises(BadToken, match="made anew" if anew else "was removed") as refused:
        ACTS[act](fence)
    assert str(tmp_path / OWN_FOLDER) in str(refused.value)
    assert "its marks are lost" in str(refused.value)
    assert page(tmp_path) == b"old"
    assert (tmp_path / OWN_FOLDER).exists() is anew


def test_r35_without_that_look_an_older_token_gets_in(tmp_path: Path, fence: FileFence) -> None:
    shutil.rmtree(tmp_path / OWN_FOLDER)
    afresh = FileFence(tmp_path)
    afresh.write("page", b"older", SIX, scope=SCOPE)  # what a person has to decide about
    assert page(tmp_path) == b"older"
    with pytest.raises(BadToken):
        fence.write("page", b"late", SIX, scope=SCOPE, sequence=2)
    assert page(tmp_path) == b"older"


@pytest.mark.parametrize("anew", [False, True])
def test_r35_nor_one_whose_marks_are_removed_while_it_waits_for_the_lock(tmp_path: Path, anew: bool) -> None:
    def remove(step: str) -> None:
        if step == "locked":
            shutil.rmtree(tmp_path / OWN_FOLDER)
            if anew:
                FileFence(tmp_path)

    fence = FileFence(tmp_path, step=remove)
    with pytest.raises(BadToken, match="made anew" if anew else "was removed"):
        fence.raise_to(SEVEN, scope=SCOPE)


def test_r35_nor_one_that_was_writing_meanwhile(tmp_path: Path, fence: FileFence) -> None:
    with pytest.raises(BadToken), fence.replacing("page", SEVEN, scope=SCOPE, sequence=2) as file:
        file.write(b"new")
        shutil.rmtree(tmp_path / OWN_FOLDER)
    assert page(tmp_path) == b"old"


def test_a_folder_whose_identity_cannot_be_read_is_another_matter(tmp_path: Path, fence: FileFence) -> None:
    shutil.rmtree(tmp_path / OWN_FOLDER)
    (tmp_path / OWN_FOLDER).write_bytes(b"")
    with pytest.raises(Unavailable, match="nothing was changed"):
        fence.raise_to(EIGHT, scope=SCOPE)


def test_fences_that_are_made_at_once_or_later_share_one_folder(tmp_path: Path) -> None:
    barrier = threading.Barrier(8, timeout=30)

    def make(_number: int) -> FileFence:
        barrier.wait()
        return FileFence(tmp_path)

    with ThreadPoolExecutor(8) as pool:
        made = [*pool.map(make, range(8)), FileFence(tmp_path)]
    made[0].raise_to(EIGHT, scope=SCOPE)
    for fence in made:
        with pytest.raises(StaleToken):
            fence.write("page", b"late", SEVEN, scope=SCOPE)
