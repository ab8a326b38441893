"""The tests that a page names, and whether they exist: found in the syntax of their files, without importing any."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

NAMED = re.compile(r"`((?:tests|src|spec)/[\w/]+\.(?:py|tla))(?:::([\w:]+))?`")
"""What a page names: a test by its file, alone or with ``::test``, or a part of the formal model."""

_SUITES = re.compile(r"src/tenure/testing/(conformance|fences)/\w+\.py")


def missing(text: str) -> Iterator[str]:
    """Look for each test that a text names; a shipped suite must also be run by a file of tests."""
    for file, test in NAMED.findall(text):
        if not (ROOT / file).is_file():
            yield f"there is no file {file}"
        elif test and test not in tests_in(file):
            yield f"there is no test {test} in {file}"
        elif not test and not file.startswith("spec/") and not tests_in(file):
            yield f"there is no test in {file}"
        elif _SUITES.fullmatch(file) and not runners(file):
            yield f"no file of tests runs {file}"


@cache
def tests_in(file: str) -> frozenset[str]:
    """Name the tests that a file defines, as ``test_name`` and ``TestClass::test_name``."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"), file)
    return frozenset(_tests(tree, ""))


@cache
def runners(suite: str) -> tuple[str, ...]:
    """Name the files of tests that import everything from a part of a shipped suite."""
    module = suite.removeprefix("src/").removesuffix(".py").replace("/", ".")
    text = f"from {module} import *"
    return tuple(
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if text in path.read_text(encoding="utf-8")
    )


def _tests(parent: ast.Module | ast.ClassDef, prefix: str) -> Iterator[str]:
    for node in parent.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield prefix + node.name
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _tests(node, f"{node.name}::")
