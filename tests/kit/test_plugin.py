"""The plugin as pytest meets it: named in the package, light, and true to its page."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import tenure
from tenure import App
from tenure.store.sqlite import SqliteStore
from tenure.testing.plugin.kit import Kit
from tests.unit.test_docs import ROOT, program, text_of
from tests.unit.test_structure import CLIENT_LIBRARIES

PLUGIN = ["-p", "no:tenure", "-p", "tenure.testing.plugin"]  # by its module, whether the package is installed or not


def pytest_run(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run pytest on a project of its own, whose only plugin this is, and return what it said."""
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *PLUGIN, *arguments]
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(Path(tenure.__file__).parents[1]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout


def test_the_package_names_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plugins = project["entry-points"]["pytest11"]
    assert plugins == {"tenure": "tenure.testing.plugin"}
    assert hasattr(import_module(plugins["tenure"]), "tenure_kit")


def test_loading_the_plugin_imports_nothing_but_itself() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import tenure.testing.plugin\n"
        "assert set(sys.modules) - before == {'tenure', 'tenure.testing', 'tenure.testing.plugin'}"
    )
    environment = {"PYTHONPATH": str(Path(tenure.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


LIGHT = f"""
import sys

CLIENTS = {sorted(CLIENT_LIBRARIES)!r}


def test_nothing_is_imported():
    assert "tenure.testing.plugin" in sys.modules
    assert [name for name in ["msgspec", "tenure.app", *CLIENTS] if name in sys.modules] == []


def test_nothing_heavy_is_needed(tenure_inline, tenure_app):
    ran = []
    tenure_app.task(name="work")(lambda: ran.append(1))
    tenure_app.tasks["work"].enqueue()
    assert ran == [1]
    assert [name for name in CLIENTS if name in sys.modules] == []
"""


def test_a_project_that_uses_no_fixture_imports_nothing_for_it(tmp_path: Path) -> None:
    (tmp_path / "test_light.py").write_text(LIGHT, encoding="utf-8")
    assert "2 passed" in pytest_run(tmp_path)


def test_importing_the_package_imports_neither_plugin_nor_pytest() -> None:
    code = "import sys, tenure; assert not {'pytest', 'tenure.testing', 'tenure.testing.plugin'} & set(sys.modules)"
    environment = {"PYTHONPATH": str(Path(tenure.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


def test_the_page_is_a_file_of_tests_that_passes(tmp_path: Path) -> None:
    page = program(text_of("docs/testing.md"))
    (tmp_path / "test_shop.py").write_text(page, encoding="utf-8")
    assert f"{page.count('def test_')} passed" in pytest_run(tmp_path)


def unindented(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


def test_what_the_page_says_of_the_hasty_handler_is_what_the_kit_says(tmp_path: Path) -> None:
    text = text_of("docs/testing.md")
    page = program(text).replace('with pytest.raises(AssertionError, match="Effect 2, bank.send"):', "if True:")
    (tmp_path / "test_shop.py").write_text(page, encoding="utf-8")
    said = pytest_run(tmp_path, "-k", "hasty", code=1)
    told = text.partition("```text\n")[2].partition("```")[0]
    assert unindented(told) in unindented(said.replace("\nE ", "\n"))


def test_an_app_gets_its_own_store_back() -> None:
    app = App("memory://")
    before, client = app.store, app.client
    with Kit(app) as kit:
        assert kit.app is app
        assert app.store is not before
    assert app.store is before
    assert app.client is client


def test_an_app_without_a_store_has_none_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENURE_STORE", raising=False)
    app = App()
    with Kit(app):
        assert app.client.queues() == []
    with pytest.raises(tenure.BadSettings):
        app.store.check()


@pytest.mark.parametrize("opened", [True, False])
def test_only_a_store_that_the_kit_opened_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: bool
) -> None:
    address = f"sqlite:///{tmp_path}/shop.db"
    own = App(address).store
    closed: list[object] = []
    really = type(own).close

    def close(store: SqliteStore) -> None:
        closed.append(store)
        really(store)

    monkeypatch.setattr(SqliteStore, "close", close)
    with Kit(App(), own if opened else address) as kit:
        kit.app.client.queues()
    assert (len(closed), own in closed) == (0 if opened else 1, False)
    own.close()
