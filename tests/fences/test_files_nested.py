"""What lies inside a fence's folder and is not its own: another fence, another file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure import BadSettings, Misuse
from tenure.fences.files import OWN_FOLDER, FileFence
from tests.fences.files_fixtures import *  # noqa: F403 -- pytest finds fixtures by name
from tests.fences.files_fixtures import EIGHT, SCOPE, SEVEN


def test_a_fence_below_another_one_is_refused(tmp_path: Path, fence: FileFence) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for folder in ("in", "in/deep", f"{OWN_FOLDER}/aside"):
        with pytest.raises(BadSettings, match="fence of its own"):
            FileFence(tmp_path / folder)
    FileFence(tmp_path)


def test_what_lies_below_another_fence_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "beside").mkdir()
    FileFence(tmp_path / "in").raise_to(EIGHT, scope=SCOPE)
    around = FileFence(tmp_path)
    for path in ("in/page", "in/deep/page"):
        with pytest.raises(Misuse, match="fence of its own"):
            around.write(path, b"late", SEVEN, scope=SCOPE)
        assert not (tmp_path / path).exists()
    around.write("beside/page", b"new", SEVEN, scope=SCOPE)


def test_another_file_system_inside_is_refused(
    tmp_path: Path, fence: FileFence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fence, "_asides", Path("/proc"))  # as if the folder lay on one and its files on another
    with pytest.raises(Misuse, match="another file system"):
        fence.write("page", b"new", EIGHT, scope=SCOPE)
