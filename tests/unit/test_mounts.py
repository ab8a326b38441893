"""Which mount a folder lies on, whatever bytes the names of mounts have (B09)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tenure.store.mounts import network_mount

NAMES = {
    "plain": (b"office", b"office", "office"),
    "not ASCII": ("büro".encode(), "büro".encode(), "büro"),
    "no UTF-8": (b"b\xfcro", b"b\xfcro", r"b\xfcro"),
    "a space": (b"our office", rb"our\040office", "our office"),
    "every escape": (b"a\tb\nc\\d", rb"a\011b\012c\134d", "a\tb\nc\\d"),
    "what looks like an escape": (rb"a\040b", rb"a\134040b", r"a\040b"),
    "other breaks of lines": ("a\rb\x0cc\x85d".encode(), "a\rb\x0cc\x85d".encode(), "a\rb\x0cc\x85d"),
}


def tell(monkeypatch: pytest.MonkeyPatch, place: Path, *mounts: tuple[bytes, bytes]) -> None:
    """Write a table of mounts: each with its name as the system writes it, and its kind."""
    lines = [b"%d 22 0:40 / %s rw shared:1 - %s host:/x rw\n" % (n, *mount) for n, mount in enumerate(mounts, 30)]
    place.write_bytes(b"".join(lines))
    monkeypatch.setattr("tenure.store.mounts._MOUNTS", place)


@pytest.mark.parametrize(("name", "written", "told"), NAMES.values(), ids=NAMES)
def test_b09_a_network_mount_is_seen_whatever_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: bytes, written: bytes, told: str
) -> None:
    top = os.fsencode(tmp_path)
    tell(monkeypatch, tmp_path / "mountinfo", (b"/", b"ext4"), (top + b"/" + written, b"nfs4"))
    share = tmp_path / os.fsdecode(name)
    assert network_mount(share / "jobs") == network_mount(share) == f"nfs4 at {tmp_path}/{told}"
    assert network_mount(tmp_path / "another") is None
    assert network_mount(tmp_path / os.fsdecode(name + b"2")) is None


def test_a_mount_with_a_name_that_is_no_text_is_no_obstacle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tell(monkeypatch, tmp_path / "mountinfo", (b"/", b"ext4"), (b"/media/b\xfcro", b"vfat"))
    assert network_mount(tmp_path) is None


def test_a_mount_over_or_in_another_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    top = os.fsencode(tmp_path)
    tell(
        monkeypatch,
        tmp_path / "mountinfo",
        (top + b"/share/local", b"ext4"),
        (b"/", b"ext4"),
        (top + b"/share", b"ext4"),
        (top + b"/share", b"cifs"),
    )
    assert network_mount(tmp_path / "share") == f"cifs at {tmp_path}/share"
    assert network_mount(tmp_path / "share" / "local" / "jobs") is None


def test_where_the_system_does_not_tell_nothing_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tenure.store.mounts._MOUNTS", tmp_path / "nowhere")
    assert network_mount(tmp_path) is None
