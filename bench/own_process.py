"""Tenure's task with handlers in processes: a child process finds it, and its app, by importing this module."""

from __future__ import annotations

from bench.board import mark
from tenure import App

app = App()


@app.task(name="noop", isolation="process")
def noop(number: int) -> None:
    """Run in a child process."""
    mark(number)
