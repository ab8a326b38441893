"""The page about the judge keeps its word: its histories are judged as it says, and nothing is missing on it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from tenure.proof.history import AnyLine, CallName, EventName, Meta, read
from tenure.proof.judge import INVARIANTS, Verdict, judge

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "judge.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def section(kind: str) -> str:
    found = re.search(rf"^### {kind}\n(.*?)^##", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, kind
    return found[1]


def test_the_good_history_is_good_and_the_bad_line_is_found_in_the_words_of_the_page(tmp_path: Path) -> None:
    good, bad_line = blocks("json")
    path = tmp_path / "run.jsonl"
    path.write_text(good, encoding="utf-8")
    assert judge(read([path])).violations == []
    path.write_text(good + bad_line, encoding="utf-8")
    judgement = judge(read([path]))
    told = [f"{one.invariant} {broken.sentence}" for one in judgement.results for broken in one.violations]
    assert "\n".join(told) + "\n" == blocks("text")[0]
    assert judgement["I9"].violations[0].lines == ("line 7", "line 9")


def test_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [program] = blocks("py")
    exec(compile(program, "docs/judge.md", "exec"), {})
    assert len(read([tmp_path / "run.jsonl"]).calls) == 2


@pytest.mark.parametrize("kind", msgspec.inspect.multi_type_info(get_args(AnyLine)), ids=lambda kind: kind.tag)
def test_every_field_is_told(kind: msgspec.inspect.StructType) -> None:
    told = section(str(kind.tag))
    names = [field.name for field in kind.fields if field.name != "place"]
    assert [name for name in names if f"`{name}`" not in told] == []


def test_every_call_and_every_event_is_told() -> None:
    for names, kind in ((CallName, "call"), (EventName, "store")):
        told = section(kind)
        for name in get_args(names):
            assert f"`{name}`" in told or (kind == "store" and f"`{name}`" in section("call")), name


def test_every_invariant_and_every_verdict_is_told() -> None:
    for invariant in INVARIANTS:
        assert f"| {invariant.number} | {invariant.promise} |" in PAGE
    for verdict in Verdict:
        assert f"`{verdict}`" in PAGE


def test_a_default_is_told_as_it_is() -> None:
    assert Meta().durable is True
    assert Meta().history == "none"
    assert Meta().retention is None
