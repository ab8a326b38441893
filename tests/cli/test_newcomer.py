"""Somebody new follows README and quickstart in an empty folder, command by command, and runs `try.py` again."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import tenure
from tests.support.processes import Processes, wait_for

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HERE = {"PYTHONPATH": os.fspath(Path(tenure.__file__).parents[1]), "TENURE_STORE": ""}


def blocks(paper: str, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall((ROOT / paper).read_text(encoding="utf-8")) if kind == language]


def commands(paper: str) -> list[list[str]]:
    """Read what is to be typed on a page, beginning with the first thing that needs `shop.py`."""
    lines = [line.removeprefix("$ ") for block in blocks(paper, "console") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if "shop" in line]


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "output"
    folder.mkdir()
    with Processes(folder) as started:
        yield started


@pytest.mark.parametrize("paper", ["README.md", "docs/quickstart.md"])
def test_every_command_of_a_page_does_what_it_says(processes: Processes, tmp_path: Path, paper: str) -> None:
    (tmp_path / "shop.py").write_text(blocks(paper, "python")[0], encoding="utf-8")
    enqueue, worker, *looks = commands(paper)
    assert [words[:3] for words in looks] == [["tenure", "jobs", "list"], ["tenure", "jobs", "show"]]
    ended = processes.python(*(["-m", *enqueue] if enqueue[0] == "tenure" else enqueue[1:]), environment=HERE)
    assert ended.wait(30) == 0, ended.stderr.read_text()
    job = ended.lines()[0].split()[-1]
    working = processes.python("-m", *worker, environment=HERE)
    with closing(tenure.App("sqlite:///shop.db")) as shop:
        wait_for(lambda: shop.client.get(job).state is tenure.State.COMPLETED, 30, "the job to complete")
    working.signal(signal.SIGINT)
    assert working.wait(20) == 0
    for words in looks:
        looked = processes.python("-m", *(job if word == "JOB" else word for word in words), environment=HERE)
        assert looked.wait(30) == 0, looked.stderr.read_text()
        assert job in looked.stdout.read_text()
        assert "completed" in looked.stdout.read_text()


def test_the_second_file_of_the_quickstart_runs_as_often_as_one_likes(processes: Processes, tmp_path: Path) -> None:
    shop, *rest = blocks("docs/quickstart.md", "python")
    (tmp_path / "shop.py").write_text(shop, encoding="utf-8")
    for count in range(1, len(rest) + 1):
        (tmp_path / "try.py").write_text("from shop import app, charge\n\n" + "\n\n".join(rest[:count]))
        if count in {1, 2, len(rest) - 1, len(rest)}:
            ran = processes.python("try.py", environment=HERE)
            assert ran.wait(60) == 0, ran.stderr.read_text()
