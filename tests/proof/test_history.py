"""The format: what is written is read back, and what is malformed is refused with its line and its culprit."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.errors import Misuse
from tenure.proof.history import VERSION, History, Line, Meta, Part, placed, read, write
from tenure.proof.judge import judge
from tests.proof.acting import Stage

META = '{"kind":"meta","version":1}'
CLAIM: dict[str, Any] = {
    "kind": "call", "process": "a", "call": "claim", "sent": 1.0, "answered": 2.0, "outcome": "ok", "job": "j",
    "generation": 1, "owner": "a",
}  # fmt: skip
WRITE = CLAIM | {"call": "progress"}


def written(folder: Path, *lines: str | dict[str, Any], name: str = "run.jsonl", end: str = "\n") -> Path:
    path = folder / name
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + end, encoding="utf-8")
    return path


def without_places(history: History) -> list[Line]:
    return [placed(line, "") for line in history.lines()]


def test_a_run_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    history = Stage(4, jobs=3).play(300)
    write(history, tmp_path / "run.jsonl")
    again = read([tmp_path / "run.jsonl"])
    assert without_places(again) == list(history.lines())
    assert {type(line) for line in again.lines()} == {type(line) for line in history.lines()}
    assert again.calls[0].place == "line 2"


def test_a_line_tells_what_it_has_to_and_no_more(tmp_path: Path) -> None:
    write(History.of([Meta(seed=7, must_fail=("I7",))]), tmp_path / "run.jsonl")
    told = {"kind": "meta", "version": VERSION, "seed": 7, "must_fail": ["I7"]}
    assert json.loads((tmp_path / "run.jsonl").read_text()) == told


def test_the_files_of_one_run_are_put_together(tmp_path: Path) -> None:
    one = written(tmp_path, META, CLAIM | {"sent": 5.0, "answered": 6.0}, name="a.jsonl")
    two = written(tmp_path, '{"kind":"part","version":1,"process":"b"}', CLAIM, "", WRITE, name="b.jsonl")
    history = read([two, one])
    assert [call.place for call in history.calls] == ["b.jsonl:2", "b.jsonl:4", "a.jsonl:2"]
    assert history.origin == 1.0
    assert judge(history)["I2"].violations[0].lines == ("b.jsonl:2", "a.jsonl:2")


def test_of_a_call_that_was_answered_the_answer_is_kept(tmp_path: Path) -> None:
    asked = {"kind": "call", "process": "a", "call": "claim", "sent": 1.0, "number": 1, "owner": "a"}
    answers = [CLAIM | {"number": 1, "job": job} for job in "jk"]
    elsewhere = asked | {"process": "b"}
    never = asked | {"number": 2}
    history = read([written(tmp_path, META, asked, *answers, elsewhere, never)])
    assert [(call.process, call.number, call.job, call.outcome) for call in history.calls] == [
        ("a", 1, "j", "ok"),
        ("a", 1, "k", "ok"),
        ("b", 1, None, "unknown"),
        ("a", 2, None, "unknown"),
    ]


def test_a_line_that_a_killed_process_did_not_finish_is_left_out_and_told(tmp_path: Path) -> None:
    history = read([written(tmp_path, META, CLAIM, json.dumps(WRITE)[:-9], end="")])
    assert len(history.calls) == 1
    assert history.notes == ["the last line of run.jsonl was cut off while it was written, and is left out"]
    assert judge(history).notes == tuple(history.notes)


def test_a_last_line_without_its_line_break_counts(tmp_path: Path) -> None:
    history = read([written(tmp_path, META, CLAIM, end="")])
    assert len(history.calls) == 1
    assert history.notes == []


MALFORMED: dict[str, tuple[list[Any], str]] = {
    "nothing": ([], "line 1: a history begins with a line of kind meta or part: "),
    "no first line": ([CLAIM], "line 1: a history begins with a line of kind meta or part: "),
    "no JSON": (["hello"], "line 1: a history begins with a line of kind meta or part: hello"),
    "another version": ([{"kind": "meta", "version": 2}], "line 1: the format has version 2, and this judge reads ver"),
    "no version": ([{"kind": "meta"}], "line 1: the format has version None"),
    "only a part": ([{"kind": "part", "version": 1}], "has one line of kind meta, and this has 0: give all files"),
    "meta twice": ([META, META], "line 2: a meta line stands first in its file, and only there"),
    "part inside": ([META, {"kind": "part", "version": 1}], "line 2: a part line stands first"),
    "broken JSON": ([META, CLAIM, '{"kind":'], "line 3: Input data was truncated: {"),
    "more than JSON": ([META, '{"kind":"calm","at":1,"within":1} x'], "line 2: JSON is malformed"),
    "an unknown kind": ([META, {"kind": "rumour"}], "line 2: kind: Invalid value 'rumour'"),
    "no kind": ([META, {"job": "j"}], "line 2: Object missing required field kind"),
    "an unknown field": ([META, CLAIM | {"jop": "j"}], "line 2: Object contains unknown field jop"),
    "a missing field": ([META, {"kind": "call", "call": "claim"}], "line 2: Object missing required field process"),
    "a wrong type": ([META, CLAIM, WRITE | {"generation": "1"}], "line 3: generation: Expected int | null, got str"),
    "an unknown call": ([META, CLAIM | {"call": "grab"}], "line 2: call: Invalid enum value 'grab'"),
    "an unknown outcome": ([META, CLAIM | {"outcome": "yes"}], "line 2: outcome: Invalid enum value 'yes'"),
    "a list": ([META, "[]"], "line 2: Expected object, got array"),
    "a number beyond all": (
        [META, CLAIM | {"generation": 10**15}],
        "line 2: generation: Expected int <= 999999999999999",
    ),
    "a number below all": ([META, CLAIM | {"generation": -1}], "line 2: generation: Expected int >= 0"),
    "a tower": (
        [META, '{"kind":"row","job":"j","result":' + "[" * 100_000 + "]" * 100_000 + "}"],
        "line 2: maximum recursion depth exceeded",
    ),
    "a claim for nobody": ([META, CLAIM | {"owner": None}], "line 2: claim with the outcome ok needs owner"),
    "a claim of nothing": ([META, CLAIM | {"generation": None}], "line 2: claim with the outcome ok needs generation"),
    "a lost claim for nobody": (
        [META, CLAIM | {"owner": None, "outcome": "unknown"}],
        "line 2: claim with the outcome unknown needs owner",
    ),
    "an answer at no time": ([META, CLAIM | {"answered": None}], "line 2: claim with the outcome ok needs answered"),
    "an answer before its question": ([META, CLAIM | {"sent": 3.0}], "line 2: claim was answered at 2, before it was"),
    "a claim that stands already": ([META, CLAIM | {"outcome": "already"}], "line 2: claim cannot be answered already"),
    "a write under nothing": (
        [META, WRITE | {"job": None, "generation": None}],
        "line 2: progress with the outcome ok needs job and generation",
    ),
    "a renewal by an operator": (
        [META, WRITE | {"call": "renew", "owner": None}],
        "line 2: renew with the outcome ok needs owner",
    ),
    "an operator without a job": (
        [META, WRITE | {"call": "cancel", "owner": None, "job": None}],
        "line 2: cancel with the outcome ok needs job",
    ),
    "a stale operator": (
        [META, WRITE | {"call": "cancel", "owner": None, "outcome": "stale"}],
        "line 2: cancel cannot be answered stale",
    ),
    "a write to nowhere": ([META, WRITE | {"call": "apply"}], "line 2: apply with the outcome ok needs scope"),
    "a raise to nothing": (
        [META, WRITE | {"call": "raise", "scope": "s", "generation": None}],
        "line 2: raise with the outcome ok needs generation",
    ),
    "a gate for nobody": (
        [META, WRITE | {"call": "effect", "owner": None}],
        "line 2: effect with the outcome ok needs",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_malformed_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    lines, message = MALFORMED[name]
    with pytest.raises(Misuse) as refused:
        judge(read([written(tmp_path, *lines)]))
    assert message in str(refused.value)
    assert len(str(refused.value)) < 300


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for data in (b"\xff\xfe\n", META.encode() + b'\n{"kind":"fault","what":"\xff","began":1}\n', b"\x00" * 99 + b"\n"):
        path.write_bytes(data)
        with pytest.raises(Misuse, match=r"run.jsonl, line [12]: "):
            read([path])


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match=r"cannot read .*/none.jsonl: No such file or directory"):
        read([tmp_path / "none.jsonl"])
    with pytest.raises(Misuse, match="cannot read .*: Is a directory"):
        read([tmp_path])


def test_two_runs_are_not_one(tmp_path: Path) -> None:
    one, two = written(tmp_path, META, name="a.jsonl"), written(tmp_path, META, name="b.jsonl")
    with pytest.raises(Misuse, match=r"this has 2 \(a.jsonl:1, b.jsonl:1\)"):
        read([one, two])


@given(data=st.data())
def test_no_line_whatsoever_makes_the_judge_stumble(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Fields of good lines replaced by whatever JSON can say: refused as a mistake, or judged."""
    lines = [json.loads(msgspec.json.encode(line)) for line in Stage(data.draw(st.integers(0, 50))).play(40).lines()]
    values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    for _ in range(data.draw(st.integers(1, 4))):
        line = data.draw(st.sampled_from(lines))
        line[data.draw(st.sampled_from(sorted(line)))] = data.draw(
            values | st.sampled_from(["ok", "stale", "unknown", "claim", "cancel", "discarded", "row", "store"])
        )
    with suppress(Misuse):
        judge(read([written(tmp_path_factory.mktemp("run"), *lines)]))


@given(seed=st.integers(0, 2**32))
def test_no_run_whatsoever_makes_the_judge_stumble(seed: int) -> None:
    """Fields of good lines exchanged for those of other lines: refused as a mistake, or judged."""
    chance = random.Random(seed)
    lines = list(Stage(seed % 50, history=chance.choice(["full", "abnormal", "none"])).play(60).lines())
    for _ in range(20):
        place, other = chance.randrange(1, len(lines)), chance.choice(lines)
        names = set(lines[place].__struct_fields__) & set(other.__struct_fields__) - {"place"}
        if names:
            name = chance.choice(sorted(names))
            lines[place] = msgspec.structs.replace(lines[place], **{name: getattr(other, name)})
    with suppress(Misuse):
        judge(History.of(lines))


def test_the_first_line_of_a_part_names_its_process() -> None:
    assert json.loads(msgspec.json.encode(Part(process="b"))) == {"kind": "part", "version": 1, "process": "b"}
