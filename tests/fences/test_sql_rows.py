"""Rows that carry their own mark: one UPDATE is both the guard and the effect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from importlib import import_module
from typing import Any

import psycopg
import pytest

from tenure import BadToken, Misuse, OutOfSequence, StaleToken, Token
from tenure.fences import LEAP, Mark, RowFence, SQLFence
from tenure.protocol.lease import Effect
from tests.fences import sql_ways
from tests.fences.sql_servers import emptied, new_file
from tests.fences.sql_ways import BlockingWay, Dialect

SIX, SEVEN, EIGHT = (Token("job-1", generation) for generation in (6, 7, 8))
NAME_TYPES: dict[Dialect, str] = {"postgresql": "VARCHAR(200)", "sqlite": "VARCHAR(200)", "mysql": "VARBINARY(800)"}
QUOTES: dict[Dialect, str] = {"postgresql": '"', "sqlite": '"', "mysql": "`"}


class Reports:
    """A table of the user's own, whose column `text` is called as a word of SQL is: `order`."""

    def __init__(self, way: BlockingWay, connection: Any) -> None:
        self.way = way
        self.connection = connection
        self.fence: RowFence = SQLFence(way.database.dialect).row("reports", key="id")
        quote = QUOTES[way.database.dialect]
        self._order = f"{quote}order{quote}"
        name = NAME_TYPES[way.database.dialect]
        with way.transaction(connection):
            way.execute(connection, "DROP TABLE IF EXISTS reports")
            way.execute(
                connection,
                f"CREATE TABLE reports (id INTEGER PRIMARY KEY, {self._order} VARCHAR(50), pages INTEGER,"
                f" fence_job {name}, fence_generation BIGINT, fence_sequence BIGINT)",
            )
            way.execute(connection, f"INSERT INTO reports (id, {self._order}) VALUES (7, 'first'), (8, 'another')")

    def update(self, token: Token, text: str, sequence: int | None = None) -> None:
        with self.way.transaction(self.connection):
            self.fence.update(self.connection, token, 7, {"order": text, "pages": 3}, sequence=sequence)

    def raise_to(self, token: Token) -> None:
        with self.way.transaction(self.connection):
            self.fence.raise_to(self.connection, token, 7)

    @property
    def text(self) -> str:
        with self.way.transaction(self.connection):
            [(text,)] = self.way.execute(self.connection, f"SELECT {self._order} FROM reports WHERE id = 7")
        return str(text)

    @property
    def mark(self) -> Mark | None:
        with self.way.transaction(self.connection):
            return self.fence.current(self.connection, 7)


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
def reports(request: pytest.FixtureRequest) -> Iterator[Reports]:
    plain = {"postgresql": sql_ways.Psycopg, "mysql": sql_ways.PyMySQL}
    way = sql_ways.Sqlite3(new_file()) if request.param == "sqlite" else plain[request.param](emptied(request.param))
    with closing(way.connect()) as connection:
        yield Reports(way, connection)


def test_r31_an_older_generation_changes_nothing(reports: Reports) -> None:
    reports.update(EIGHT, "new")
    with pytest.raises(StaleToken) as stale:
        reports.update(SEVEN, "late", 99)
    assert (stale.value.current, reports.text, reports.mark) == (8, "new", Mark("job-1", 8, 1))


def test_r32_an_announcement_holds_off_the_owner_before(reports: Reports) -> None:
    reports.update(SEVEN, "old")
    reports.raise_to(EIGHT)
    with pytest.raises(StaleToken):
        reports.update(SEVEN, "late", 2)
    with pytest.raises(StaleToken):
        reports.raise_to(SIX)
    reports.raise_to(EIGHT)
    assert (reports.text, reports.mark) == ("old", Mark("job-1", 8, 0))
    reports.update(EIGHT, "new")
    assert reports.text == "new"


def test_r33_a_write_counts_once_and_in_order(reports: Reports) -> None:
    reports.update(Effect("job-1", 7, 3), "third")
    for sequence in (3, 2):
        with pytest.raises(OutOfSequence) as refused:
            reports.update(SEVEN, "again", sequence)
        assert refused.value.highest == 3
    reports.raise_to(SEVEN)
    with pytest.raises(OutOfSequence):
        reports.update(SEVEN, "again", 3)
    reports.update(EIGHT, "new")
    assert (reports.text, reports.mark) == ("new", Mark("job-1", 8, 1))


def test_r36_tokens_of_another_job_are_not_compared(reports: Reports) -> None:
    reports.update(SEVEN, "mine")
    with pytest.raises(BadToken, match="job-1"):
        reports.update(Token("job-2", 9), "theirs")
    assert reports.text == "mine"


def test_r37_r38_what_cannot_be_judged_changes_nothing(reports: Reports) -> None:
    for token in (None, Token("job-1", 0), Token("job-1", LEAP + 1)):
        with pytest.raises(BadToken):
            reports.update(token, "bad")  # type: ignore[arg-type]
    reports.update(Token("job-1", LEAP), "far")
    with pytest.raises(BadToken, match="reset"):
        reports.update(Token("job-1", 2 * LEAP + 1), "too far")
    assert reports.text == "far"


def test_only_the_one_row_is_written(reports: Reports) -> None:
    reports.update(SEVEN, "mine")
    with reports.way.transaction(reports.connection):
        assert reports.fence.current(reports.connection, 8) is None
        assert reports.way.execute(reports.connection, "SELECT pages FROM reports WHERE id = 8") == [(None,)]


def test_a_row_that_is_missing_is_told(reports: Reports) -> None:
    acts: list[Callable[[], object]] = [
        lambda: reports.fence.update(reports.connection, SEVEN, 9, {"pages": 1}),
        lambda: reports.fence.raise_to(reports.connection, SEVEN, 9),
        lambda: reports.fence.current(reports.connection, 9),
    ]
    for act in acts:
        with pytest.raises(Misuse, match="reports has no row whose id is 9"):
            act()


def test_values_are_bound(reports: Reports) -> None:
    text = "'; DROP TABLE reports; -- %s :job ?"
    reports.update(SEVEN, text)
    assert reports.text == text


def test_in_autocommit_it_is_one_step_too() -> None:
    with ExitStack() as stack:
        database = emptied("postgresql")
        kept = Reports(sql_ways.Psycopg(database), stack.enter_context(closing(psycopg.connect(database.address))))
        connection = stack.enter_context(closing(psycopg.connect(database.address, autocommit=True)))
        kept.fence.update(connection, EIGHT, 7, {"order": "new"})
        with pytest.raises(StaleToken):
            kept.fence.update(connection, SEVEN, 7, {"order": "late"})
        assert (kept.text, kept.mark) == ("new", Mark("job-1", 8, 1))


def test_the_asynchronous_methods_do_the_same() -> None:
    kinds: list[tuple[Dialect, type[BlockingWay], type[sql_ways.AsyncWay]]] = [
        ("postgresql", sql_ways.Psycopg, sql_ways.AsyncPG),
        ("mysql", sql_ways.PyMySQL, sql_ways.AioMySQL),
    ]
    for dialect, kind, driver in kinds:
        database = emptied(dialect)
        with closing(kind(database).connect()) as blocking:
            kept = Reports(kind(database), blocking)
            asyncio.run(_play(driver(database), kept.fence))
            assert (kept.text, kept.mark) == ("new", Mark("job-1", 8, 2))


async def _play(way: sql_ways.AsyncWay, fence: RowFence) -> None:
    connection = await way.connect()
    async with way.transaction(connection):
        await fence.raise_to_async(connection, EIGHT, 7)
        await fence.update_async(connection, EIGHT, 7, {"order": "new"}, sequence=2)
        assert await fence.current_async(connection, 7) == Mark("job-1", 8, 2)
        with pytest.raises(StaleToken):
            await fence.update_async(connection, SEVEN, 7, {"order": "late"})
    await way.close(connection)


def test_a_schema_may_stand_before_the_table() -> None:
    database = emptied("postgresql")
    with closing(psycopg.connect(database.address)) as connection:
        Reports(sql_ways.Psycopg(database), connection)
        SQLFence("postgresql").row("public.reports", key="id").update(connection, SEVEN, 7, {"pages": 1})
        connection.rollback()


@pytest.mark.parametrize("name", ["", "a b", 'a"b', "a`b", "1a", "a;", "ä", "a.b.", "a{b}", "a%b", None, 7])
def test_names_that_are_none_are_refused(name: Any) -> None:
    fence = SQLFence("sqlite")
    with pytest.raises(Misuse, match="is refused"):
        fence.row(name, key="id")
    with pytest.raises(Misuse, match="is refused"):
        fence.row("reports", key=name)
    row = fence.row("reports", key="id")
    with closing(import_module("sqlite3").connect(":memory:")) as connection, pytest.raises(Misuse, match="is refused"):
        row.update(connection, SEVEN, 7, {name: 1})


def test_the_columns_of_the_fence_are_its_own(reports: Reports) -> None:
    for name in ("fence_generation", "FENCE_GENERATION", "Fence_Generation"):
        with pytest.raises(Misuse, match=f"{name} by itself"):
            reports.fence.update(reports.connection, SEVEN, 7, {name: 1})
    with pytest.raises(Misuse, match="needs values"):
        reports.fence.update(reports.connection, SEVEN, 7, {})
