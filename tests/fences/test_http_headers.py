"""What goes over the wire: one spelling for each name, and nothing else passes."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenure import BadToken, Effect, Misuse, Token
from tenure.fences.http.headers import (
    JOB,
    KEY,
    LONGEST_KEY,
    LONGEST_NAME,
    SCOPE,
    SEQUENCE,
    TOKEN,
    MissingHeader,
    encode_name,
    fencing_headers,
    read_headers,
)
from tenure.protocol.names import LONGEST, check_name

GOOD = fencing_headers(Effect("job-1", 8, 3), "account/7", "job-1:charge")


def is_name(text: str) -> bool:
    try:
        check_name("a name", text)
    except Misuse:
        return False
    return True


NAMES = st.text(min_size=1, max_size=LONGEST).filter(is_name)


def test_the_fields_read_as_they_are_documented() -> None:
    assert GOOD == {
        "Fencing-Token": "8",
        "Fencing-Job": "job-1",
        "Fencing-Scope": "account/7",
        "Fencing-Sequence": "3",
        "Idempotency-Key": '"job-1:charge"',
    }


def test_a_token_without_a_number_announces() -> None:
    fields = fencing_headers(Token("job-1", 8))
    assert fields == {"Fencing-Token": "8", "Fencing-Job": "job-1", "Fencing-Scope": "job-1"}
    assert read_headers(fields) == (Token("job-1", 8), "job-1", None)


@given(NAMES, NAMES)
def test_what_is_written_is_read(job: str, scope: str) -> None:
    fields = fencing_headers(Effect(job, 8, 3), scope, "key")
    assert all(value.isascii() and value.isprintable() and "," not in value for value in fields.values())
    assert len(fields[SCOPE]) <= LONGEST_NAME
    assert read_headers(fields) == (Effect(job, 8, 3), scope, "key")


@given(NAMES, NAMES)
def test_two_names_are_never_spelled_alike(one: str, other: str) -> None:
    assert (encode_name(one) == encode_name(other)) == (one == other)


@given(st.text(min_size=1, max_size=400), st.text(min_size=1, max_size=400))
@example("ä", "%C3%A4")
def test_two_keys_are_never_spelled_alike(one: str, other: str) -> None:
    token = Effect("job-1", 8, 3)
    read = [read_headers(fencing_headers(token, None, key)).key for key in (one, other)]
    assert (read[0] == read[1]) == (one == other)


@pytest.mark.parametrize(
    ("sent", "key"),
    [('"a b"', "a b"), (r'"a\"b\\c"', 'a"b\\c'), ('"100%25"', "100%25"), ('  "trimmed"\t', "trimmed")],
)
def test_a_key_is_a_structured_string_and_opaque(sent: str, key: str) -> None:
    assert read_headers(GOOD | {KEY: sent}).key == key


def test_the_longest_key_of_a_job_fits() -> None:
    longest = "日" * LONGEST + ":" + "\U0001f512" * LONGEST
    fields = fencing_headers(Effect("job-1", 8, 3), None, longest)
    assert read_headers(fields).key is not None
    with pytest.raises(Misuse):
        fencing_headers(Effect("job-1", 8, 3), None, "x" * (LONGEST_KEY + 1))


def test_the_names_of_fields_have_no_case() -> None:
    spelled = {name.upper(): value for name, value in GOOD.items()}
    assert read_headers(spelled) == read_headers({name.lower(): value for name, value in GOOD.items()})


@pytest.mark.parametrize("name", [TOKEN, JOB, SCOPE])
def test_r37_a_field_that_is_missing_is_missed(name: str) -> None:
    with pytest.raises(MissingHeader, match=name):
        read_headers({other: value for other, value in GOOD.items() if other != name})


@pytest.mark.parametrize("name", [TOKEN, JOB, SCOPE, SEQUENCE, KEY])
def test_r37_a_field_that_is_there_twice_is_refused(name: str) -> None:
    with pytest.raises(BadToken, match="twice"):
        read_headers([*GOOD.items(), (name.lower(), GOOD[name])])


NO_NUMBERS = [
    "",
    "0",
    "-8",
    "+8",
    "8.0",
    "08",
    "1" * 16,
    "8, 8",
    "8 8",
    "eight",
    "\u0668",
    "\uff18",
    "0x8",
    "1e3",
    "8;a=1",
    "1_0",
]
NO_NAMES = [
    "",
    "a,b",
    "a, a",
    "a b",
    "ä",
    "%e4",
    "%C3",
    "%c3%a4",
    "%61",
    "%zz",
    "%",
    "a%00",
    "%0A",
    "x" * (LONGEST + 1),
]
NO_KEYS = [
    "",
    '""',
    "bare",
    "'single'",
    '"open',
    '"a", "a"',
    '"a";b=1',
    '"ä"',
    r'"\x"',
    '"a"b"',
    '"' + "x" * 5000 + '"',
]


@pytest.mark.parametrize("name", [TOKEN, SEQUENCE])
@pytest.mark.parametrize("text", NO_NUMBERS)
def test_r37_what_is_no_number_is_refused(name: str, text: str) -> None:
    with pytest.raises(BadToken, match=name):
        read_headers(GOOD | {name: text})


@pytest.mark.parametrize("name", [JOB, SCOPE])
@pytest.mark.parametrize("text", NO_NAMES)
def test_r37_what_is_no_name_or_spelled_in_another_way_is_refused(name: str, text: str) -> None:
    with pytest.raises(BadToken, match=name):
        read_headers(GOOD | {name: text})


@pytest.mark.parametrize("text", NO_KEYS)
def test_r37_what_is_no_quoted_string_is_no_key(text: str) -> None:
    with pytest.raises(BadToken, match=KEY):
        read_headers(GOOD | {KEY: text})


@pytest.mark.parametrize("token", [None, "8", 8, Token("job-1", 0), Effect("job-1", 8, 0), Effect("job-1", 8, 10**15)])
def test_r37_what_cannot_be_judged_is_not_sent(token: Any) -> None:
    with pytest.raises(BadToken):
        fencing_headers(token)
