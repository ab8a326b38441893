"""The destination side: what refuses a late worker's write where the effect happens.

Importing this package imports no client library. Each fence stands in a module of its own, with what it needs.
"""

from tenure.fences.rule import LEAP, Mark, Reset
from tenure.fences.sql import BoundSQLFence, RowFence, SQLFence

__all__ = ["LEAP", "BoundSQLFence", "Mark", "Reset", "RowFence", "SQLFence"]
