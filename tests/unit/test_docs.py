"""The papers keep their word: code blocks run, the drawing is current, and everything public is told of.

Each rule is a function that returns its findings, so that the end of this file can show that it bites.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import MISSING, Field, fields
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

import tenure
from tenure import errors
from tenure.cli.reference import walk
from tenure.cli.root import app
from tenure.options import Options
from tenure.protocol.events import LEVELS, Kind
from tenure.worker.settings import Settings
from tests.proof import places
from tests.support.processes import Processes, wait_for

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAPERS = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))]
PROGRAMS = ["README.md", "DEVELOPMENT.md", "docs/quickstart.md", "docs/tasks.md", "docs/testing.md", "docs/prove.md"]

# Blocks that are pieces of an example's files; tests/demo/test_payments.py compares them and runs what the page shows.
QUOTING = {"docs/tutorial.md"}

FENCE = re.compile(r"^```(\w*).*?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)
TEST_NAME = re.compile(r"`(test_\w+)`")
COMMAND = re.compile(r"(?:`|^\$ )tenure ([a-z][^`\n]*)", re.MULTILINE)

HOSTS = {"keepachangelog.com", "semver.org"}
MACHINE_PATH = re.compile(r"(?<![\w.:/-])/(?:home|root|work|opt|mnt|srv|Users)/")
SYNONYMS = re.compile(
    r"\b(heartbeats?|visibility timeout|dequeued?|re-?claim(?:s|ed)?|steals?|ack(?:s|ed)?)\b", re.IGNORECASE
)


def text_of(paper: str | Path) -> str:
    return (ROOT / paper).read_text(encoding="utf-8")


@cache
def all_docs() -> str:
    return "\n".join(text_of(paper) for paper in PAPERS)


def none_of(findings: list[str]) -> None:
    assert not findings, "\n" + "\n".join(findings)


# -- code blocks run


def program(text: str) -> str:
    """Put the Python blocks of a page together, in order."""
    return "\n\n".join(code for language, code in FENCE.findall(text) if language == "python")


@pytest.mark.parametrize("paper", PROGRAMS)
def test_the_code_blocks_run_as_one_program(paper: str, tmp_path: Path) -> None:
    script = tmp_path / "shop.py"
    script.write_text(program(text_of(paper)), encoding="utf-8")
    command = [sys.executable, "-W", "error", script.name]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def environment() -> dict[str, str]:
    """Let a program find the package where this process found it."""
    return {"PYTHONPATH": str(Path(tenure.__file__).parents[1]), "PATH": "/usr/bin:/bin"}


def test_the_first_use_runs_as_the_readme_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(program(text_of("README.md")), encoding="utf-8")
    with Processes(tmp_path) as processes, closing(tenure.App("sqlite:///shop.db")) as shop:
        enqueued = processes.python("shop.py", environment=environment())
        assert enqueued.wait() == 0
        (job,) = enqueued.lines()
        arguments = re.search(r"^\$ tenure (worker .+)$", text_of("README.md"), re.MULTILINE)
        assert arguments is not None
        worker = processes.python("-m", "tenure", *arguments[1].split(), environment=environment())
        wait_for(lambda: shop.client.get(job).state is tenure.State.COMPLETED, 30, "the job to complete")
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    with closing(sqlite3.connect("ledger.db")) as ledger:
        assert ledger.execute("SELECT * FROM charges").fetchall() == [(7, 1200)]


def test_every_page_with_python_is_tried() -> None:
    with_python = {str(paper.relative_to(ROOT)) for paper in PAPERS if program(paper.read_text(encoding="utf-8"))}
    assert with_python == {*PROGRAMS, *QUOTING}


def test_the_destination_that_is_shown_is_the_one_that_is_tried() -> None:
    quoted = [inspect.getsource(places.Careful), inspect.getsource(places.refuse_late)]
    shown = [code for language, code in FENCE.findall(text_of("docs/prove.md")) if language == "python"]
    assert [block.partition("\n\n\n")[2] for block in shown] == quoted  # what comes before are imports


# -- the drawing and the table are current


@pytest.fixture(scope="module")
def draw() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw", DOCS / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a dataclass looks for its module
    spec.loader.exec_module(module)
    return module


def test_the_drawing_is_that_of_the_table(draw: ModuleType) -> None:
    assert draw.DRAWING.read_text(encoding="utf-8") == draw.drawing(), "run: python docs/draw.py"


def test_the_page_shows_the_table(draw: ModuleType) -> None:
    page = draw.PAGE.read_text(encoding="utf-8")
    assert draw.with_table(page) == page, "run: python docs/draw.py"


def test_the_drawing_knows_a_way_for_every_move(draw: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = next(iter(draw.grouped()))
    monkeypatch.delitem(draw.WAYS, pair)
    with pytest.raises(LookupError, match="add it to WAYS"):
        draw.drawing()


# -- everything is told of


def undocumented(names: set[str], page: str, form: str) -> Iterator[str]:
    """Ask for each name on a page, in the form in which it stands there."""
    text = text_of(page)
    for name in sorted(names):
        if not re.search(form.format(re.escape(name)), text, re.MULTILINE):
            yield f"{page} does not tell of {name}"


def error_names() -> set[str]:
    return {name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)}


REFERENCE = r"^\.\. auto\w+:: tenure\.{}$"
ROW = r"^\| `{}` \|"

TOLD = [
    (set(tenure.__all__), "docs/api.md", REFERENCE),
    (error_names(), "docs/api.md", REFERENCE),
    ({str(kind) for kind in Kind}, "docs/workers.md", ROW),
    ({field.name for field in fields(Settings)}, "docs/workers.md", ROW),
    ({field.name for field in fields(Options)}, "docs/tasks.md", ROW),
    ({"name", "backoff", "isolation"}, "docs/tasks.md", ROW),
]


@pytest.mark.parametrize(("names", "page", "form"), TOLD)
def test_everything_public_is_told_of(names: set[str], page: str, form: str) -> None:
    none_of(list(undocumented(names, page, form)))


def test_events_are_told_with_their_level() -> None:
    for kind in Kind:
        level = {10: "debug", 20: "info", 40: "error"}.get(LEVELS.get(kind, 30), "warning")
        assert f"| `{kind}` | {level} |" in text_of("docs/workers.md")


def default_of(field: Field[Any]) -> str | None:
    """Write a default as the tables do; None where it must be told in words."""
    if field.default is MISSING or field.default is None:
        return None
    value = field.default
    return f'("{value[0]}",)' if value == ("default",) else f'"{value}"' if isinstance(value, str) else repr(value)


@pytest.mark.parametrize(("owner", "page"), [(Settings, "docs/workers.md"), (Options, "docs/tasks.md")])
def test_defaults_are_told_as_they_are(owner: Any, page: str) -> None:
    for field in fields(owner):
        default = default_of(field)
        if default is not None:
            assert f"| `{field.name}` | `{default}` |" in text_of(page), f"{page}: the default of {field.name}"


def test_tests_that_are_named_exist() -> None:
    sources = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "src/tenure/testing").rglob("*.py")]
    written = "\n".join(source.read_text(encoding="utf-8") for source in sources)
    there = set(re.findall(r"^(?:async )?def (test_\w+)", written, re.MULTILINE)) | {path.stem for path in sources}
    none_of([f"there is no test {name}" for name in TEST_NAME.findall(all_docs()) if name not in there])


@cache
def commands() -> dict[str, set[str]]:
    """Name every command of the command line and its options."""
    root: Any = typer.main.get_command(app)
    return {
        path.removeprefix("tenure "): {"--help", *(name for option in command.params for name in option.opts)}
        for path, command in walk("tenure", root)
    }


def unknown_commands(_paper: Path, text: str) -> Iterator[str]:
    """Ask whether each command that a page shows exists, with the options that it is shown with."""
    for line in COMMAND.findall(text):
        words = line.split()
        path = next((known for known in commands() if words[: len(known.split())] == known.split()), None)
        if path is None:
            yield f"there is no command tenure {line}"
        else:
            yield from (
                f"tenure {path} has no {word}" for word in words if word[0] == "-" and word not in commands()[path]
            )


# -- links lead somewhere, and nothing leads out that should not


def anchors(text: str) -> set[str]:
    """Name the headings of a page as its links do."""
    bare = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(FENCE.sub("", text))]
    return {heading.strip().replace(" ", "-") for heading in bare}


def broken_links(paper: Path, text: str) -> Iterator[str]:
    """Follow the links of a page: to files and headings here, or to one of the few hosts allowed."""
    for target in LINK.findall(FENCE.sub("", text)):
        path, _, anchor = target.partition("#")
        if "://" in path:
            if path.split("/")[2] not in HOSTS:
                yield f"{paper.name}: {target} leads to a host that is not allowed: {', '.join(sorted(HOSTS))}"
            continue
        file = paper.parent / path if path else paper
        if not file.is_file():
            yield f"{paper.name}: {target} leads nowhere"
        elif anchor and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield f"{paper.name}: {target} names no heading"


def forbidden_words(paper: Path, text: str) -> Iterator[str]:
    """Refuse paths of somebody's machine, links outside of Markdown's form, and other words for the glossary's."""
    for found in MACHINE_PATH.finditer(text):
        yield f"{paper.name}: {found[0]} is a path of one machine"
    for host in re.findall(r"https?://([^/\s)]+)", text):
        if host not in HOSTS:
            yield f"{paper.name}: {host} is not among the hosts that pages lead to"
    for found in SYNONYMS.finditer(text):
        yield f"{paper.name}: {found[0]!r} is another word for one of the glossary"


@pytest.mark.parametrize("rule", [broken_links, forbidden_words, unknown_commands])
def test_papers_keep(rule: Any) -> None:
    none_of([finding for paper in PAPERS for finding in rule(paper, paper.read_text(encoding="utf-8"))])


# -- the rules bite


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (broken_links, "[x](nowhere.md)"),
        (broken_links, "[x](README.md#no-such-heading)"),
        (broken_links, "[x](https://example.invalid/)"),
        (forbidden_words, "see /home/somebody/file"),
        (forbidden_words, "<https://example.invalid/>"),
        (forbidden_words, "a heartbeat"),
        (unknown_commands, "`tenure dance`"),
        (unknown_commands, "$ tenure worker --no-such-option"),
    ],
)
def test_a_rule_finds_a_bad_page(rule: Any, text: str) -> None:
    assert len(list(rule(ROOT / "page.md", text))) == 1


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (broken_links, "[x](README.md#install) and ![y](docs/lifecycle.svg)"),
        (unknown_commands, "`tenure jobs list --app shop:app` and `tenure.App`"),
        (broken_links, "```text\n[x](nowhere.md)\n```\n"),
        (forbidden_words, "sqlite:////var/lib/shop.db and acknowledged, [y](https://semver.org/)"),
    ],
)
def test_a_rule_accepts_a_good_page(rule: Any, text: str) -> None:
    assert list(rule(ROOT / "page.md", text)) == []


def test_a_missing_name_is_found() -> None:
    assert list(undocumented({"no_such_setting"}, "docs/workers.md", ROW)) == [
        "docs/workers.md does not tell of no_such_setting"
    ]
