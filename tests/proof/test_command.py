"""`tenure judge`: the table of verdicts, the sentences, the exit codes, and files that are no histories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tenure.cli.root import app as command_line
from tenure.proof.history import History, Meta, write
from tests.proof.acting import Stage
from tests.proof.bad_histories import BAD
from tests.proof.lines import applied, claim


def tenure(*words: str | Path) -> Result:
    return CliRunner().invoke(command_line, ["judge", *map(str, words)], prog_name="tenure")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def test_a_good_run_is_told_as_a_table(run: Path) -> None:
    write(Stage(3).play(300), run)
    told = tenure(run)
    assert (told.exit_code, told.stderr) == (0, "")
    lines = [line.rstrip() for line in told.stdout.splitlines()]
    assert lines[0].split() == ["PROMISE", "CHECKED", "VERDICT"]
    assert [line.split()[0] for line in lines[1:19]] == [f"I{number}" for number in range(1, 19)]
    assert lines[2].startswith("I2   A generation of a job is given to one owner, once.")
    assert lines[2].endswith("kept")
    assert lines[14].endswith("not asserted: the faults never stopped in this run")
    assert lines[20].startswith("every promise that was asserted was kept; the run met 1")


def test_a_bad_run_is_told_in_sentences(run: Path) -> None:
    write(BAD["I9 lost update"].history, run)
    told = tenure(run)
    assert (told.exit_code, told.stderr) == (1, "")
    assert "broken, once" in told.stdout
    sentence = "I9 scope s: write 1 of generation 2 was computed from version 0 and replaced version 1"
    assert sentence in told.stdout
    assert "(line 2, line 3)" in told.stdout
    assert "NOT every promise was kept; the run met 2 writes applied" in told.stdout


def test_many_violations_are_counted_and_the_first_are_told(run: Path) -> None:
    write(History.of([Meta(), *(applied("apply", None, number) for number in range(9))]), run)
    told = tenure(run)
    assert "broken, 9 times" in told.stdout
    assert told.stdout.count("I8 scope s") == 5
    assert "I8 … and 4 more; --json tells all" in told.stdout
    assert len(json.loads(tenure(run, "--json").stdout)["invariants"][7]["violations"]) == 9


def test_what_must_be_broken_and_is_not_is_told(run: Path) -> None:
    write(History.of([Meta(must_fail=("I7",)), claim(1, 0.0)]), run)
    told = tenure(run)
    assert told.exit_code == 1
    assert "not broken, as it must be: this run is made to break it, and nothing did" in told.stdout


def test_a_run_is_told_in_json(run: Path) -> None:
    write(BAD["I2 two owners"].history, run)
    told = tenure(run, "--json")
    assert told.exit_code == 1
    document = json.loads(told.stdout)
    assert document["good"] is False
    assert document["counts"]["claims"] == 2
    assert document["invariants"][1] == {
        "invariant": "I2",
        "promise": "A generation of a job is given to one owner, once.",
        "verdict": "broken",
        "checked": 2,
        "violations": [
            {
                "sentence": "job j: generation 1 was given to A at 0.500 s and to B at 0.700 s",
                "lines": ["line 2", "line 3"],
            }
        ],
        "because": None,
    }
    assert len(document["invariants"]) == 18


def test_notes_of_the_reader_are_told(run: Path) -> None:
    run.write_text('{"kind":"meta","version":1}\n{"kind":"cal')
    assert tenure(run).stdout.startswith("note: the last line of run.jsonl was cut off while it was written")
    assert json.loads(tenure(run, "--json").stdout)["notes"] != []


def test_several_files_are_one_run(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"kind":"meta","version":1}\n')
    (tmp_path / "b.jsonl").write_text('{"kind":"part","version":1}\n')
    assert tenure(tmp_path / "b.jsonl", tmp_path / "a.jsonl").exit_code == 0
    assert tenure(tmp_path / "b.jsonl").exit_code == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: a history begins with a line of kind meta or part"),
        ('{"kind":"meta","version":1}\n{"kind":"row","jop":"j"}\n', "line 2: Object contains unknown field jop"),
        ('{"kind":"meta","version":1,"must_fail":["I99"]}\n', "line 1: must_fail names I99, no invariant"),
        ('{"kind":"meta","version":1}\n{"kind":"row","\x1b[31m"}\n', "line 2: "),
    ],
)
def test_a_bad_file_is_told_in_one_line(run: Path, text: str, says: str) -> None:
    run.write_text(text)
    told = tenure(run)
    assert (told.exit_code, told.stdout) == (2, "")
    assert says in told.stderr
    assert told.stderr.count("\n") == 1
    assert "\x1b[31m" not in told.stderr
    assert json.loads(tenure(run, "--json").stderr)["exit"] == 2


def test_a_missing_file_and_no_file_are_mistakes(tmp_path: Path) -> None:
    told = tenure(tmp_path / "none.jsonl")
    assert told.exit_code == 2
    assert "none.jsonl: No such file or directory" in told.stderr
    assert tenure().exit_code == 2
