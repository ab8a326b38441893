"""The gates for the SQL of both stores: the right clock, guarded writes, the same statements in both files.

A statement begins with a line `-- name: ...`; a part that statements put in as `@...` begins with `-- part: ...`. A
comment right above such a line, or below it, may say `-- differs: reason` where the stores cannot have the same words,
and `-- by: operator`, `claim` or `upkeep` where somebody other than the owner of a running job changes it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATEMENT_FILES = tuple(f"src/tenure/store/{store}/statements.sql" for store in ("sqlite", "postgres"))

FORBIDDEN_CLOCKS = re.compile(
    r"\b(now\s*\(|current_(?:timestamp|time|date)\b|(?:transaction|statement)_timestamp\b|localtime(?:stamp)?\b)",
    re.IGNORECASE,
)
CHANGES_A_JOB = re.compile(r"\b(?:update|delete\s+from)\s+(?:only\s+)?(?:\w+\.)?(?:tenure_)?jobs?\b", re.IGNORECASE)
ACTORS = {"operator", "claim", "upkeep"}


@dataclass
class Written:
    """One named statement of a `.sql` file: its lines, its comments, and the shared parts that it may put in."""

    path: str
    name: str
    parts: dict[str, Written]
    comments: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    @property
    def sql(self) -> str:
        """The statement with its parts, without comments and without the contents of string literals."""
        code = "\n".join(re.sub(r"--.*", "", line) for line in self.lines)
        bare = re.sub(r"'(?:[^']|'')*'", "''", code)
        return re.sub(r"@([a-z_]+)", lambda use: self.parts[use.group(1)].sql, bare)

    @property
    def parameters(self) -> set[str]:
        return set(re.findall(r"(?<![:\w]):([a-z_]\w*)", self.sql))

    def mark(self, word: str) -> str:
        """Return what stands after `-- word:`, or nothing."""
        found = (re.fullmatch(rf"--\s*{word}:\s*(.+)", comment) for comment in self.comments)
        return next((match.group(1).strip() for match in found if match), "")

    def says(self, finding: str) -> str:
        return f"{self.path}: {self.name}: {finding}"


def statements(path: str) -> dict[str, Written]:
    """Read the named statements of one file; a missing file is an error."""
    assert (ROOT / path).is_file(), f"{path} is missing"
    found = parse_statements(path, (ROOT / path).read_text(encoding="utf-8"))
    assert found, f"{path} holds no statement: each begins with a line `-- name: ...`"
    return found


def parse_statements(path: str, text: str) -> dict[str, Written]:
    """Split at `-- name:` and `-- part:` lines; comments right above such a line belong to what it begins."""
    parts: dict[str, Written] = {}
    found: dict[str, Written] = {}
    current = Written(path, "(before the first statement)", parts)
    above: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if head := re.fullmatch(r"--\s*(name|part):\s*(\w+)", line):
            kind, name = head.groups()
            current = Written(path, name, parts, comments=above)
            (found if kind == "name" else parts)[name] = current
            above = []
        elif line.startswith("--"):
            above.append(line)
        else:
            current.comments += above
            current.lines.append(line)
            above = []
    current.comments += above
    return found


# -- the rules


def other_clock(statement: Written) -> Iterator[str]:
    """Refuse clocks that stand still in a transaction; a lease is decided by one read after the row lock (R12)."""
    for clock in FORBIDDEN_CLOCKS.findall(statement.sql):
        yield statement.says(f"{clock.strip('( ')} is the wrong clock: read clock_timestamp() after the lock (R12)")


def unguarded_write(statement: Written) -> Iterator[str]:
    """Ask a statement that changes a job to name owner and generation, or who else may change it (R5, R10)."""
    by = statement.mark("by")
    if by and by not in ACTORS:
        yield statement.says(f"`-- by: {by}` names nobody: it is one of {', '.join(sorted(ACTORS))}")
    if by or not CHANGES_A_JOB.search(statement.sql):
        return
    missing = [word for word in ("owner", "generation") if not re.search(rf"\b{word}s?\b", statement.sql)]
    if missing:
        yield statement.says(f"changes a job without naming {' and '.join(missing)}: guard it, or mark it `-- by: ...`")


CLOCKS = {"boot", "boot_ms", "identity", "now_ms", "schema", "shift_ms", "table"}
"""What a session adds by itself: each store has clocks, an identity, and marks by which it is known, of its own."""


def disparity(ours: dict[str, Written], theirs: dict[str, Written]) -> Iterator[str]:
    """Ask for the same statements with the same parameters in both stores, or for a comment that says why not."""
    for name in sorted(ours.keys() | theirs.keys()):
        pair = [statement for statement in (ours.get(name), theirs.get(name)) if statement is not None]
        if any(statement.mark("differs") for statement in pair):
            continue
        if len(pair) == 1:
            yield pair[0].says("the other store has no such statement: add it, or explain with `-- differs: ...`")
        elif odd := (pair[0].parameters ^ pair[1].parameters) - CLOCKS:
            yield pair[0].says(f"parameters differ between the stores: {', '.join(sorted(odd))}")


# -- the statements keep the rules


def none_of(findings: list[str]) -> None:
    assert not findings, "\n" + "\n".join(findings)


@pytest.mark.parametrize("path", STATEMENT_FILES)
@pytest.mark.parametrize("rule", [other_clock, unguarded_write])
def test_statements_keep(rule: Callable[[Written], Iterator[str]], path: str) -> None:
    none_of([finding for statement in statements(path).values() for finding in rule(statement)])


@pytest.mark.parametrize("path", STATEMENT_FILES)
def test_the_guard_rule_knows_the_job_table(path: str) -> None:
    assert any(CHANGES_A_JOB.search(statement.sql) for statement in statements(path).values()), (
        f"{path}: no statement is recognised as changing a job; CHANGES_A_JOB must name the table"
    )


def test_both_stores_have_the_same_statements() -> None:
    none_of(list(disparity(*(statements(path) for path in STATEMENT_FILES))))


# -- the rules bite

SQL = """
    -- name: touch
    UPDATE job SET lease_until = {clock} WHERE id = :id AND owner = :owner{guard};  -- now() is not used

    {mark}
    -- name: sweep
    DELETE FROM tenure.job WHERE run_at < @limit AND note <> 'now() :x';

    -- part: limit
    {part}::bigint
"""


def sample(
    clock: str = "clock_timestamp()",
    guard: str = " AND generation = :g",
    mark: str = "-- by: upkeep",
    part: str = ":before",
) -> str:
    return textwrap.dedent(SQL).format(clock=clock, guard=guard, mark=mark, part=part)


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        (sample(), []),
        (sample(clock="now ()"), ["touch: now is the wrong clock"]),
        (sample(clock="CURRENT_TIMESTAMP"), ["touch: CURRENT_TIMESTAMP is the wrong clock"]),
        (sample(part="now()"), ["sweep: now is the wrong clock"]),
        (sample(guard=""), ["touch: changes a job without naming generation"]),
        (sample(mark=""), ["sweep: changes a job without naming owner and generation"]),
        (sample(mark="-- by: anybody"), ["sweep: `-- by: anybody` names nobody"]),
    ],
)
def test_rules_for_statements(text: str, findings: list[str]) -> None:
    found = [
        finding
        for statement in parse_statements("x.sql", text).values()
        for rule in (other_clock, unguarded_write)
        for finding in rule(statement)
    ]
    assert len(found) == len(findings)
    assert all(wanted in finding for finding, wanted in zip(found, findings, strict=True))


@pytest.mark.parametrize(
    ("other", "count"),
    [
        (sample(), 0),
        (sample(guard=""), 1),
        (sample(part=":after"), 1),
        (sample(guard="") + "-- differs: one row at a time\n-- name: extra\nSELECT 1", 1),
        (sample() + "-- name: extra\nSELECT 1", 1),
        (sample(guard="").replace("-- name: touch", "-- differs: one writer\n-- name: touch"), 0),
    ],
)
def test_disparity_between_the_stores(other: str, count: int) -> None:
    assert len(list(disparity(parse_statements("a", sample()), parse_statements("b", other)))) == count
