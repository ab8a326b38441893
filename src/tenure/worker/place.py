"""Where a task can be found by a process that shares no memory with this one: in which module, under which name."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tenure.errors import BadSettings, Misuse
from tenure.loading import loading
from tenure.worker.channel import Module, Place

if TYPE_CHECKING:
    from tenure.task import Task
    from tenure.worker.program import Program

_SCRIPT = "__mp_main__"  # the name that multiprocessing, too, gives to a script that is imported by a child


def place_of(task: Task[Any, Any, Any]) -> Place:
    """Find where a child process will find `task`; raises BadSettings where it could not."""
    own = getattr(task.function, "__module__", None)
    found = _holder(task.app, own)
    if found is None:
        raise BadSettings(
            f"task {task.name} has isolation='process', and a child process must find its app by importing a module:"
            " keep the app in a variable at the top level of a module"
        )
    holder = _holder(task, own)
    names = [found[0], *([own] if own in sys.modules else []), *([holder[0]] if holder else [])]
    return Place(tuple(_importable(name, task.name) for name in dict.fromkeys(names)), found[1], tuple(sys.argv))


def find_task(place: Place, name: str) -> tuple[Program, Task[Any, Any, Any]]:
    """Import what `place` says and return the app and its task.

    Raises Misuse when the task is not there, and what an import raises.
    """
    sys.argv[:] = place.argv
    modules = [_load(module) for module in place.modules]
    app: Program = getattr(modules[0], place.app)
    task = app.tasks.get(name)
    if task is None:
        imported = ", ".join(module.name for module in place.modules)
        raise Misuse(
            f"task {name} is not registered in a process that imports {imported}: register it at the top level of one"
            " of these modules"
        )
    return app, task


def _holder(target: object, first: str | None) -> tuple[str, str] | None:
    """Find the module that calls `target` by a name of its own, and that name; look in the module `first` first."""
    modules = sorted(sys.modules.items(), key=lambda item: item[0] != first)
    for module, content in modules:
        for name, value in list(getattr(content, "__dict__", {}).items()):
            if value is target:
                return module, name
    return None


def _importable(name: str, task: str) -> Module:
    if name not in {"__main__", _SCRIPT}:
        return Module(name)
    main = sys.modules[name]
    if main.__spec__ is not None:
        return Module(main.__spec__.name)
    path = getattr(main, "__file__", None)
    if path is None or not Path(path).is_file():
        raise BadSettings(
            f"task {task} has isolation='process', and a child process cannot import an interactive session:"
            " write the task and its app into a module"
        )
    return Module(name, str(Path(path).absolute()))


def _load(module: Module) -> ModuleType:
    with loading(module.path or module.name):
        return importlib.import_module(module.name) if module.path is None else _load_script(module.path)


def _load_script(path: str) -> ModuleType:
    if _SCRIPT in sys.modules:
        return sys.modules[_SCRIPT]
    loader = SourceFileLoader(_SCRIPT, path)
    spec = spec_from_loader(_SCRIPT, loader, origin=path)
    if spec is None:
        raise Misuse(f"{path} cannot be imported")
    main = sys.modules["__main__"]
    script = module_from_spec(spec)
    sys.modules["__main__"] = sys.modules[_SCRIPT] = script
    try:
        loader.exec_module(script)
    except BaseException:
        sys.modules["__main__"] = main
        del sys.modules[_SCRIPT]
        raise
    return script
