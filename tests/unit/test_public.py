"""The public names: imported when they are asked for, and the same to a checker as to a program."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tenure

HOMES = {name: f"tenure.{home}" for home, names in tenure._HOMES.items() for name in names}


def test_every_public_name_has_one_home() -> None:
    assert sorted(HOMES) == sorted(tenure.__all__)
    assert len(HOMES) == sum(map(len, tenure._HOMES.values()))


@pytest.mark.parametrize("name", tenure.__all__)
def test_a_public_name_is_what_its_home_keeps(name: str) -> None:
    assert getattr(tenure, name) is getattr(import_module(HOMES[name]), name)


def test_a_checker_sees_the_same_homes() -> None:
    tree = ast.parse(Path(tenure.__file__).read_text(encoding="utf-8"))
    (seen, *_) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in seen.body if isinstance(node, ast.ImportFrom)]
    assert {alias.asname or alias.name: node.module for node in imports for alias in node.names} == HOMES


def test_there_are_no_others() -> None:
    with pytest.raises(AttributeError, match="module 'tenure' has no attribute 'Apps'"):
        _ = tenure.Apps  # type: ignore[attr-defined] # it is not there, which is what is asked
    with pytest.raises(ImportError, match="cannot import name 'Apps'"):
        from tenure import Apps  # type: ignore[attr-defined] # the same  # noqa: F401


def test_a_name_is_listed_before_it_is_asked_for_and_costs_nothing() -> None:
    code = (
        "import sys, tenure\n"
        "assert set(tenure.__all__) < set(dir(tenure))\n"
        "tenure.__version__, tenure.LeaseLost\n"
        "assert not {'asyncio', 'msgspec', 'tenure.app', 'tenure.worker'} & set(sys.modules)\n"
        "from tenure import *\n"
        "assert 'tenure.app' in sys.modules and App is tenure.App\n"
    )
    environment = {"PYTHONPATH": str(Path(tenure.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
