"""The gates that keep the code as it is meant to be: sizes, operations, docstrings, imports.

Each rule is a function that returns its findings, so that the end of this file can show that it bites. The rules for
SQL statements stand in test_structure_sql.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "src/tenure"

MODULE_LINES = 400
FUNCTION_LINES = 40

# Which parts of the package may import which library; everything else reaches it through them.
CLIENT_LIBRARIES = {
    "boto3": ("testing/", "demo/destinations/"),
    "botocore": ("fences/s3.py", "testing/", "demo/destinations/"),
    "django": ("contrib/", "fences/http/"),
    "flask": ("fences/http/",),
    "greenlet": ("testing/simulation/",),
    "httpx": ("fences/http/", "demo/destinations/"),
    "psycopg": ("store/postgres/", "testing/", "demo/destinations/"),
    "psycopg_pool": ("store/postgres/", "testing/"),
    "pymysql": ("testing/",),
    "redis": ("fences/redis/", "store/redis/", "testing/", "demo/destinations/"),
    "requests": ("fences/http/",),
    "rich": ("cli/",),
    "sqlalchemy": ("contrib/", "testing/"),
    "sqlite3": ("store/sqlite/", "fences/", "testing/", "demo/"),
    "starlette": ("fences/http/", "web/"),
    "typer": ("cli/",),
}

# The one file that may yield a request; elsewhere a bare yield belongs to these decorators or return types.
OPERATION_FILE = f"{PACKAGE}/protocol/op.py"
YIELDING_DECORATORS = {"asynccontextmanager", "contextmanager", "fixture"}
YIELDING_RETURNS = {"AsyncIterable", "AsyncIterator", "Iterable", "Iterator"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file: its path below the repository and its text."""

    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    def at(self, line: int, finding: str) -> str:
        return f"{self.path}:{line}: {finding}"


def python_files(*folders: str) -> list[Source]:
    """Read the Python files below `folders`; a folder without any is an error, so that no rule passes on nothing."""
    found: list[Source] = []
    for folder in folders:
        paths = sorted((ROOT / folder).rglob("*.py"))
        assert paths, f"{folder} holds no Python file"
        found += [Source(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")) for path in paths]
    return found


# -- the rules


def module_too_long(source: Source) -> Iterator[str]:
    """Refuse a module of more than 400 lines."""
    count = len(source.text.splitlines())
    if count > MODULE_LINES:
        yield source.at(1, f"{count} lines, and a module has at most {MODULE_LINES}: split it by what it is for")


def function_too_long(source: Source) -> Iterator[str]:
    """Refuse a function of more than 40 lines, not counting its docstring."""
    for function in functions(source.tree):
        count = lines(function) - docstring_lines(function)
        if count > FUNCTION_LINES:
            yield source.at(
                function.lineno, f"{function.name} has {count} lines, and a function has at most {FUNCTION_LINES}"
            )


def bare_yield(source: Source) -> Iterator[str]:
    """Let only op.py yield a request; an operation elsewhere uses `yield from`, which keeps the types."""
    if source.path == OPERATION_FILE:
        return
    for function in functions(source.tree):
        nodes = list(own_nodes(function))
        unused = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.Yield) and not (id(node) in unused and may_yield(function)):
                yield source.at(node.lineno, f"bare yield in {function.name}: write `yield from ask(...)`")


def undocumented(source: Source) -> Iterator[str]:
    """Ask every module, public class, function and method to say in a docstring what it is for."""
    tree = source.tree
    if ast.get_docstring(tree) is None:
        yield source.at(1, "the module has no docstring")
    for node in public_definitions(tree):
        if ast.get_docstring(node) is None:
            yield source.at(node.lineno, f"{node.name} is public and has no docstring")


def misplaced_import(source: Source) -> Iterator[str]:
    """Let a client library be imported only in the part of the package that is there for it."""
    inside = source.path.removeprefix(f"{PACKAGE}/")
    for node in ast.walk(source.tree):
        for library in imported_libraries(node):
            homes = CLIENT_LIBRARIES.get(library)
            if homes is not None and not inside.startswith(homes):
                yield source.at(getattr(node, "lineno", 1), f"{library} may be imported only in {', '.join(homes)}")


# -- how the rules look at code


def functions(tree: ast.AST) -> Iterator[Function]:
    """Yield every function, nested ones and methods included."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands in a function itself and not in another one inside it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.Lambda | ast.ClassDef):
            yield child
            yield from own_nodes(child)


def lines(node: ast.stmt) -> int:
    """Count the lines of a definition or a statement."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def docstring_lines(function: Function) -> int:
    """Count the lines of a function's docstring."""
    return 0 if ast.get_docstring(function) is None else lines(function.body[0])


def last_name(node: ast.expr | None) -> str:
    """Return `b` for `a.b`, `a.b[...]` and `a.b(...)`."""
    return "" if node is None else re.split(r"[\[(]", ast.unparse(node), maxsplit=1)[0].rpartition(".")[2]


def may_yield(function: Function) -> bool:
    """Tell context managers, fixtures and iterators, whose yields ask nothing, from operations."""
    decorators = {last_name(decorator) for decorator in function.decorator_list}
    return bool(decorators & YIELDING_DECORATORS) or last_name(function.returns) in YIELDING_RETURNS


def public_definitions(parent: ast.Module | ast.ClassDef) -> Iterator[Function | ast.ClassDef]:
    """Yield what a user can reach by a name without an underscore; an overload or a setter is part of another.

    What is named `test_…` in the shipped suites speaks by its name.
    """
    for node in parent.body:
        if not isinstance(node, Function | ast.ClassDef) or node.name.startswith(("_", "test_")):
            continue
        if not {last_name(decorator) for decorator in node.decorator_list} & {"overload", "setter", "deleter"}:
            yield node
        if isinstance(node, ast.ClassDef):
            yield from public_definitions(node)


def imported_libraries(node: ast.AST) -> list[str]:
    """Return the top-level packages that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module.partition(".")[0]]
    return []


# -- the code keeps the rules


def none_of(findings: list[str]) -> None:
    assert not findings, "\n" + "\n".join(findings)


@pytest.mark.parametrize("rule", [module_too_long, function_too_long])
def test_all_code_keeps_its_size(rule: Callable[[Source], Iterator[str]]) -> None:
    none_of([finding for source in python_files(PACKAGE, "tests", "examples", "bench") for finding in rule(source)])


@pytest.mark.parametrize("rule", [bare_yield, undocumented, misplaced_import])
def test_the_package_keeps(rule: Callable[[Source], Iterator[str]]) -> None:
    none_of([finding for source in python_files(PACKAGE) for finding in rule(source)])


def test_nothing_in_the_package_mentions_pickle() -> None:
    files = [path for path in (ROOT / PACKAGE).rglob("*") if path.suffix in {".py", ".sql", ".lua", ".html"}]
    none_of([f"{path.relative_to(ROOT)}: mentions pickle" for path in files if b"pickle" in path.read_bytes().lower()])


# -- the rules bite

BAD_CODE = [
    (module_too_long, "x = 1\n" * 401),
    (function_too_long, "def f():\n" + "    x = 1\n" * 40),
    (bare_yield, "def f() -> Op[int]:\n    answer = yield request"),
    (bare_yield, "def f() -> Op[int]:\n    yield request"),
    (bare_yield, "def f() -> Iterator[int]:\n    x = yield 1"),
    (bare_yield, "def f() -> Generator[Request, Any, int]:\n    yield request"),
    (undocumented, "x = 1"),
    (undocumented, '"""Doc."""\nclass C:\n    """Doc."""\n    def f(self): ...'),
    (misplaced_import, "def f():\n    import psycopg.rows"),
    (misplaced_import, "from sqlite3 import connect"),
]

GOOD_CODE = [
    (module_too_long, "x = 1\n" * 400),
    (function_too_long, 'def f():\n    """A\n\n    b."""\n' + "    x = 1\n" * 39),
    (bare_yield, "def f() -> Op[int]:\n    return (yield from ask(request))"),
    (bare_yield, "def f() -> Iterator[int]:\n    yield 1"),
    (bare_yield, "@contextlib.contextmanager\ndef f():\n    yield"),
    (bare_yield, "@pytest.fixture(scope='session')\nasync def f():\n    yield 1"),
    (undocumented, '"""Doc."""\nclass _C:\n    def f(self): ...\ndef g():\n    """Doc."""\n    def h(): ...'),
    (misplaced_import, "import json\nfrom . import sqlite3"),
]


@pytest.mark.parametrize(("rule", "text"), BAD_CODE)
def test_a_rule_finds_bad_code(rule: Callable[[Source], Iterator[str]], text: str) -> None:
    assert len(list(rule(Source(f"{PACKAGE}/sample.py", text)))) == 1


@pytest.mark.parametrize(("rule", "text"), GOOD_CODE)
def test_a_rule_accepts_good_code(rule: Callable[[Source], Iterator[str]], text: str) -> None:
    assert list(rule(Source(f"{PACKAGE}/sample.py", text))) == []
