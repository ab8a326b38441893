"""Durations and moments as people write and read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
import typer

from tenure.cli.times import absolute, both, read_duration, read_moment, relative, span

NOW = datetime(2030, 1, 31, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("30s", 30), ("0.5s", 0.5), ("5m", 300), ("2h", 7200), (" 7d ", 604_800), ("0", 0)],
)
def test_reads_durations(text: str, seconds: float) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "1w", "s", "1 h", "1h30m", "nan", "1e3", "٣"])
def test_refuses_other_durations(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is no duration"):
        read_duration(text)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 s"), (0.44, "0.4 s"), (9.96, "10 s"), (42, "42 s"), (119, "119 s"), (180, "3 min"), (7199, "120 min"),
        (5 * 3600, "5 h"), (47 * 3600, "47 h"), (7 * 86_400, "7 d"),
    ],
)  # fmt: skip
def test_tells_spans_in_their_natural_unit(seconds: float, told: str) -> None:
    assert span(seconds) == span(-seconds) == told


def test_tells_moments_in_utc_and_from_now() -> None:
    there = datetime(2030, 1, 31, 14, 57, tzinfo=timezone(timedelta(hours=3)))
    assert absolute(there) == "2030-01-31 11:57:00 UTC"
    assert both(there, NOW) == "2030-01-31 11:57:00 UTC (3 min ago)"
    assert relative(NOW + timedelta(hours=2), NOW) == "in 2 h"
    assert both(None, NOW) == "-"


def test_reads_moments_with_a_time_zone_only() -> None:
    assert read_moment("2030-01-31T12:00:00Z") == NOW
    for text in ("2030-01-31T12:00:00", "noon"):
        with pytest.raises(typer.BadParameter):
            read_moment(text)
