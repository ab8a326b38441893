"""What is computed: one `Entry` for every module of the running Python's standard library."""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TESTS = {"test", "tests", "idle_test"}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one module: counts, the packages that it imports, and the first line of its docstring."""

    module: str
    lines: int
    functions: int
    classes: int
    docstrings: int
    imports: str
    summary: str


def find_modules() -> dict[str, Path]:
    """Find every module of the standard library that is written in Python, sorted by name; its tests are left out."""
    library = Path(sysconfig.get_path("stdlib"))
    found = {}
    for name in sys.stdlib_module_names:
        for path in (library / f"{name}.py", *(library / name).rglob("*.py")):
            *packages, last = path.relative_to(library).with_suffix("").parts
            in_packages = all((folder / "__init__.py").exists() for folder in path.parents[: len(packages)])
            if path.exists() and in_packages and not _TESTS.intersection(packages):
                found[".".join(packages if last == "__init__" else [*packages, last])] = path
    return dict(sorted(found.items()))


def read_entry(module: str, path: Path) -> Entry:
    """Read and parse one module and count what is in it."""
    source = path.read_bytes()
    tree = ast.parse(source, module)
    nodes = list(ast.walk(tree))
    kinds = Counter(map(type, nodes))
    return Entry(
        module=module,
        lines=source.count(b"\n"),
        functions=kinds[ast.FunctionDef] + kinds[ast.AsyncFunctionDef],
        classes=kinds[ast.ClassDef],
        docstrings=sum(isinstance(node, _DOCUMENTED) and bool(ast.get_docstring(node, clean=False)) for node in nodes),
        imports=" ".join(sorted(set(_imports(nodes)))),
        summary=(ast.get_docstring(tree) or "").partition("\n")[0],
    )


def _imports(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
