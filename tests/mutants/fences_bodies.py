"""The guards of what a fenced service reads of a request, and of the transactions in which it answers."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_BODIES = "tests/fences/test_http_bodies.py"
_ROLLBACKS = "tests/fences/test_http_rollbacks.py"


def _body(name: str, guard: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(f"http: {name}", guard, f"fences/http/{file}.py", old, new, tests or (_BODIES,))


BODIES = (
    _body(
        "a body without an end",
        "what is read of a request has a bound, whatever its length is said to be",
        "bodies",
        "if len(self._bytes) > self._largest:",
        "if False:",
    ),
    _body(
        "a body without an end in Starlette",
        "the decorator counts what arrives",
        "starlette",
        "body = Body(largest)",
        "body = Body(1 << 40)",
    ),
    _body(
        "a body without an end in FastAPI",
        "what FastAPI reads by itself has a bound",
        "asgi",
        "body = await read_body(receive, self._largest)",
        "body = await read_body(receive, 1 << 40)",
    ),
    _body(
        "announced too large and read",
        "what is announced too large is not read",
        "bodies",
        "if len(digits) > len(str(largest)) or int(digits) > largest:",
        "if False:",
    ),
    _body(
        "whatever int() takes",
        "a length is digits (R37)",
        "bodies",
        "    if not (text.isascii() and text.isdecimal()):\n",
        "    if False:\n",
    ),
    _body(
        "digits of any script",
        "a length is digits of ASCII (R37)",
        "bodies",
        "text.isascii() and text.isdecimal()",
        "text.isdecimal()",
    ),
    _body(
        "a length that Django reads itself",
        "a length is digits in Django, too (R37)",
        "django",
        'length = read_length(request.META.get("CONTENT_LENGTH"), largest)',
        'length = int(request.META.get("CONTENT_LENGTH") or 0)',
    ),
    _body(
        "a body of another length",
        "half a request is none",
        "bodies",
        "    if length and len(body) != length:\n",
        "    if False:\n",
    ),
    _body(
        "more of a body than announced",
        "a body in chunks is not cut off at what else was announced",
        "bodies",
        "left = largest + 1 if endless else length",
        "left = length or largest + 1",
    ),
    _body(
        "half a body in Django",
        "half a request is none, though Django does not say so",
        "django",
        "check_length(request.body, length)",
        "request.body",
    ),
    _body(
        "Django's own bound is a failure",
        "what Django finds too large is told as such",
        "django",
        "except RequestDataTooBig as error:",
        "except ZeroDivisionError as error:",
    ),
    _body(
        "a body that somebody read before",
        "a request whose body is gone is not taken for one without",
        "flask",
        '    if len(body) < read_length(request.environ.get("CONTENT_LENGTH"), largest):\n',
        "    if False:\n",
    ),
    _body(
        "after a rollback in Django",
        "what SQLite would commit by itself is not executed (R31)",
        "django",
        '    if connection.vendor == "sqlite" and _is_in_autocommit(connection.connection):\n',
        "    if False:\n",
        _ROLLBACKS,
    ),
    _body(
        "after a rollback, asynchronously",
        "an answer is kept in the transaction that passed the fence, also asynchronously (R31)",
        "service",
        "            await self._executor.arun(connection, responses.finish(call.asked, answer))",
        "            pass",
        _ROLLBACKS,
    ),
    _body(
        "transactions of the other colour",
        "a handler says which transactions it needs",
        "serve",
        "    if hasattr(transaction, entered):\n",
        "    if hasattr(transaction, entered) or entered:\n",
        "tests/fences/test_http_frameworks.py",
    ),
)
