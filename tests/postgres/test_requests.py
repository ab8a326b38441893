"""Array literals come back as they were, whatever the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.errors import Misuse
from tenure.protocol.job import NewJob
from tenure.store.driver import SyncDriver
from tenure.store.postgres import PostgresStore
from tenure.store.postgres.requests import array
from tests.postgres.conftest import TIMEOUT

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | st.sampled_from(
    ["", "NULL", "null", '"', "\\", '\\"', "{}", "{,}", " a ", ",", "\n\t", "\x01"]
)


@pytest.fixture(scope="module")
def read(migrated: str) -> Iterator[Callable[[str, str], list[object]]]:
    with psycopg.connect(migrated) as connection:
        cursor = psycopg.RawCursor(connection)
        yield lambda literal, kind: cursor.execute(f"SELECT $1::{kind}[]", [literal]).fetchone()[0]  # type: ignore[index]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(values=st.lists(TEXT | st.none(), min_size=1))
def test_texts_come_back(read: Callable[[str, str], list[object]], values: list[str | None]) -> None:
    assert read(array(values), "text") == values


@settings(max_examples=50)
@given(values=st.lists(st.integers(-(2**63), 2**63 - 1) | st.none()))
def test_numbers_come_back(read: Callable[[str, str], list[object]], values: list[int | None]) -> None:
    assert read(array(values), "bigint") == values


def test_truths_come_back(read: Callable[[str, str], list[object]]) -> None:
    assert read(array((True, False, None)), "boolean") == [True, False, None]


@pytest.mark.parametrize("values", [["a\0b"], ["a\0b", None], ["a", "\0"]])
def test_a_nul_cannot_move_values_into_other_rows(values: list[str | None]) -> None:
    with pytest.raises(Misuse, match="NUL"):
        array(values)


@pytest.mark.parametrize("count", [1, 999, 5_000, 20_000])
def test_b35_many_jobs_are_stored_in_one_call(store: PostgresStore, driver: SyncDriver, count: int) -> None:
    """There is no limit on parameters, as there is one array for each column."""
    jobs = [NewJob(f"job {i:05}", "work", arguments=f'{{"n": {i}}}') for i in range(count)]
    assert [stored.created for stored in driver.do(store.verbs.enqueue, jobs)] == [True] * count
    assert driver.do(store.verbs.get, jobs[-1].id).arguments == jobs[-1].arguments


@pytest.mark.parametrize("text", ["x" * 7_898, "x" * 8_098, "😀" * 2_000, "😀" * 250_000, "x" * 50_000_000])
def test_b35_a_notice_carries_the_queue_and_nothing_of_what_it_is_about(
    store: PostgresStore, driver: SyncDriver, sql: psycopg.Connection, text: str
) -> None:
    """PostgreSQL takes no notice of 8,000 bytes or more; the limit that Tenure sets to payloads is the codec's."""
    sql.execute("LISTEN tenure")
    queue = "q" * 200
    driver.do(store.verbs.enqueue, [NewJob("large", "work", arguments=f'"{text}"', queue=queue)])
    assert [notice.payload for notice in sql.notifies(timeout=TIMEOUT, stop_after=1)] == [queue]
    assert driver.do(store.verbs.get, "large").arguments == f'"{text}"'
