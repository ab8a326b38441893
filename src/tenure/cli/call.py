"""`Call`: one call of a command; and the decorator that gives every command its common options and its end.

A command is a function of a `Call` and its own options. It answers through `call.screen`, acts through `call.client`,
and returns an exit code, or nothing when all is done. It raises errors; what becomes of them is decided here, once.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from functools import cached_property
from typing import Annotated, Any, Concatenate, ParamSpec

import typer

from tenure.app import App
from tenure.cli.apps import load_app
from tenure.cli.exits import Exit
from tenure.cli.screen import Screen
from tenure.cli.streams import Unheard
from tenure.cli.there import onlooker, refuse_missing
from tenure.cli.words import refuse_bytes
from tenure.client import Client
from tenure.errors import BadSettings
from tenure.store.address import FORMS
from tenure.store.contract import Store

P = ParamSpec("P")

_OPTIONS: dict[str, tuple[Any, Any]] = {
    "store": (
        Annotated[
            str | None,
            typer.Option(
                "--store",
                metavar="URL",
                help="The store, such as sqlite:///shop.db or postgresql://host/shop. Without it: the app's own,"
                " or $TENURE_STORE, which keeps passwords out of the list of processes.",
                rich_help_panel="Common options",
            ),
        ],
        None,
    ),
    "app": (
        Annotated[
            str | None,
            typer.Option(
                "--app",
                metavar="MODULE:ATTRIBUTE",
                help="The app, such as shop:app; the current directory is looked at first.",
                rich_help_panel="Common options",
            ),
        ],
        None,
    ),
    "json": (
        Annotated[
            bool,
            typer.Option(
                "--json",
                help="Answer in JSON: one document, or one line an item for lists; errors too, on standard error.",
                rich_help_panel="Common options",
            ),
        ],
        False,
    ),
    "traceback": (
        Annotated[
            bool,
            typer.Option("--traceback", help="Show where an error was raised.", rich_help_panel="Common options"),
        ],
        False,
    ),
}

EVERYWHERE = ("store", "app", "json", "traceback")


class Call:
    """What a command works with: the screen, and the app and client of the store that was named."""

    def __init__(self, *, store: str | None = None, app: str | None = None, json: bool = False) -> None:
        self.address = store
        self.app_name = app
        self.screen = Screen(as_json=json)

    @cached_property
    def app(self) -> App:
        """The app that was named, or one without tasks, over the store that was named."""
        app = App() if self.app_name is None else load_app(self.app_name)
        if self.address is not None:
            app.use_store(self.address)
        elif self.app_name is None and not os.environ.get("TENURE_STORE"):
            raise BadSettings(f"no store was named: add --store or --app, or set TENURE_STORE to one of {FORMS}")
        return app

    @property
    def store(self) -> Store:
        """The open store."""
        return self.app.store

    @property
    def client(self) -> Client:
        """The client of a store that is there; a command that may make one goes through the app."""
        refuse_missing(self.store)
        return self.app.client

    @cached_property
    def onlooker(self) -> Client:
        """The client of a command that only looks."""
        return onlooker(self.app)

    def close(self) -> None:
        """Close the connections that were opened."""
        if "app" in self.__dict__:
            self.app.close()


def command(*options: str) -> Callable[[Callable[Concatenate[Call, P], Exit | None]], Callable[..., Exit]]:
    """Make a function of a `Call` a command with these common `options`; errors become one line and an exit code."""

    def decorate(function: Callable[Concatenate[Call, P], Exit | None]) -> Callable[..., Exit]:
        signature = _signature(function, options)

        @functools.wraps(function)
        def run(*, traceback: bool = False, **given: Any) -> Exit:
            said = dict(given)
            call = Call(**{name: given.pop(name) for name in options if name in given})
            try:
                refuse_bytes(signature, said)
                return function(call, **given) or Exit.DONE  # type: ignore[call-arg]  # typer read the signature below
            except KeyboardInterrupt:
                call.screen.complain("Interrupted", "interrupted", Exit.INTERRUPTED)
                return Exit.INTERRUPTED
            except Unheard:
                raise  # told where the call ends, as for what no command has said
            except Exception as error:  # noqa: BLE001 -- the end of every command: told in one line, never thrown
                return call.screen.fail(error, traceback=traceback)
            finally:
                call.close()

        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
        return run

    return decorate


def _signature(function: Callable[..., Any], options: tuple[str, ...]) -> inspect.Signature:
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _OPTIONS.items()
        if name in options
    ]
    return inspect.Signature([*own, *common])
