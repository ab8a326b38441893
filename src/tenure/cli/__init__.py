"""The command `tenure`: it reads and acts through the client only; nothing else imports typer or rich."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (by default the process's own) and return its exit code; see `tenure.cli.exits`."""
    import typer

    from tenure.cli.root import app
    from tenure.cli.streams import own_streams

    words = sys.argv[1:] if arguments is None else list(arguments)
    with own_streams():
        return int(typer.main.get_command(app).main(words, prog_name="tenure", standalone_mode=False))
