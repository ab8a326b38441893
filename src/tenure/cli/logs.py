"""A worker's log: one line a record on standard error, without values of other people's errors (B30)."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import msgspec

from tenure.cli.safe import brief, one_line


class LineFormatter(logging.Formatter):
    """Write ``2030-01-31T09:00:00.123Z INFO tenure message``; an error is told by its type and place."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record as one line."""
        return f"{_moment(record)} {record.levelname} {record.name} {_message(record)}"


class JsonFormatter(logging.Formatter):
    """Write each record as one JSON document on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record as one line."""
        told = {"at": _moment(record), "level": record.levelname, "logger": record.name, "message": _message(record)}
        return msgspec.json.encode(told).decode()


def configure_logging(level: str, *, as_json: bool) -> None:
    """Log to standard error from `level` on, unless the app has set up logging of its own.

    Only Tenure goes to debug: what other libraries tell there is long, and may hold values.
    """
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonFormatter() if as_json else LineFormatter())
        root.addHandler(handler)
        root.setLevel(max(logging.INFO, logging.getLevelNamesMapping()[level.upper()]))
    logging.getLogger("tenure").setLevel(level.upper())


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _message(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    return one_line(record.getMessage() + (f" [{brief(error)}]" if error is not None else ""))
