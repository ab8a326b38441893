"""Finding the app that ``--app module:attribute`` names, and saying clearly why it cannot be found."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from tenure.app import App
from tenure.cli.safe import brief
from tenure.errors import Misuse

FORM = "--app is module:attribute, such as shop:app or shop.jobs:app"


def load_app(reference: str) -> App:
    """Import the app at `reference`, looking in the current directory first; raises Misuse saying what is wrong."""
    module_name, colon, attribute = reference.partition(":")
    is_file = module_name.endswith(".py")
    if not colon or not attribute or is_file or not all(part.isidentifier() for part in module_name.split(".")):
        raise Misuse(f"{reference!r} names no app: {_meant(reference)}{FORM}")
    found: object = _import(module_name)
    for name in attribute.split("."):
        found = _attribute(found, name, reference)
    if not isinstance(found, App):
        raise Misuse(f"{reference} is a {type(found).__name__}, not a tenure.App: {FORM}")
    return found


def _meant(reference: str) -> str:
    """Guess the module where a file was named."""
    path, _, attribute = reference.partition(":")
    module = path.removesuffix(".py").removeprefix("./").replace("/", ".")
    if module == path or not all(part.isidentifier() for part in module.split(".")):
        return ""
    return f"did you mean {module}:{attribute or 'app'}? "


def _import(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise Misuse(
                f"there is no module {error.name!r} in {here} or among the installed packages: {FORM}"
            ) from None
        raise _broken(name, error) from error
    except Exception as error:
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> Misuse:
    return Misuse(f"module {name} cannot be imported: {brief(error)}; add --traceback to see it whole")


def _attribute(owner: object, name: str, reference: str) -> object:
    try:
        return getattr(owner, name)
    except AttributeError:
        apps = sorted(name for name, value in vars(owner).items() if isinstance(value, App))
        known = f"; it has {', '.join(apps)}" if apps else f": {FORM}"
        raise Misuse(f"{reference}: {getattr(owner, '__name__', owner)} has no {name!r}{known}") from None
