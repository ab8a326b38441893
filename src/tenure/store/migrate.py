"""Migrations: numbered `.sql` files of a store, applied forward, each once, in order.

A file is named ``0001_what_it_does.sql``. A change that running workers could not bear is split in two numbers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of a schema: its number, its name (the file's, without ending) and its SQL."""

    number: int
    name: str
    sql: str


@cache
def load_migrations(package: str) -> tuple[Migration, ...]:
    """Read the migrations of a store's package in order."""
    folder = resources.files(package).joinpath("migrations")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    found = tuple(
        Migration(int(file.name.partition("_")[0]), file.name.removesuffix(".sql"), file.read_text(encoding="utf-8"))
        for file in files
    )
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"{package}: migrations are not numbered 1, 2, 3 …")
    return found


def pending(package: str, applied: Collection[int]) -> list[Migration]:
    """List the migrations of a package that are not among the `applied` numbers."""
    return [migration for migration in load_migrations(package) if migration.number not in applied]
