"""The service of http.py in Flask behind waitress, or in Django behind wsgiref: a program, for a process of its own.

python -m tests.fences.http_wsgi flask|django FILE PORT
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from socketserver import ThreadingMixIn
from types import ModuleType
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from tenure.fences.http import Call
from tenure.fences.http.wsgi import FenceResource
from tests.fences.http import FAILED, SQLiteValues


def flask_app(values: SQLiteValues) -> Any:
    from flask import Flask, request

    from tenure.fences.http.flask import fenced

    app = Flask(__name__)

    @app.put("/values")
    @fenced(values.service, values.begin, scope=lambda: request.args["scope"])
    def write(call: Call) -> Any:
        value = request.get_json()["value"]
        values.put(call.connection, call.scope, value)
        return {"value": value}, FAILED if value == "fail" else 201, {"Location": "/values"}

    return app


def django_view(values: SQLiteValues, using: str = "default") -> Any:
    from django.http import HttpRequest, JsonResponse

    from tenure.fences.http.django import fenced

    @fenced(values.service, using=using, scope=lambda request: request.GET["scope"])
    def write(request: HttpRequest, call: Call) -> JsonResponse:
        value = json.loads(request.body)["value"]
        with call.connection.cursor() as cursor:
            values.put(_Cursor(cursor), call.scope, value)
        return JsonResponse(
            {"value": value}, status=FAILED if value == "fail" else 201, headers={"Location": "/values"}
        )

    return write


def django_app(values: SQLiteValues) -> Any:
    import django
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application
    from django.urls import path

    urls = ModuleType("urls")
    urls.urlpatterns = [path("values", django_view(values))]  # type: ignore[attr-defined]  # what Django looks for
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": values.file}
    settings.configure(
        ALLOWED_HOSTS=["127.0.0.1"],
        DATABASES={"default": database | {"OPTIONS": {"transaction_mode": "IMMEDIATE"}}},
        ROOT_URLCONF=urls,
        SECRET_KEY="of a test",
        LOGGING_CONFIG=None,
    )
    django.setup()
    return get_wsgi_application()


class _Cursor:
    """Django's cursor with the parameter style of sqlite3."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def execute(self, statement: str, parameters: tuple[Any, ...]) -> None:
        self._cursor.execute(statement.replace("?", "%s"), parameters)


class _ThreadingServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _SilentHandler(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def dispatching(app: Any, fences: Any) -> Callable[..., Iterable[bytes]]:
    """Mount the fence resource beside an application."""

    def dispatch(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        prefix, path = "/fences", environ["PATH_INFO"]
        if not path.startswith(prefix + "/"):
            return app(environ, start_response)  # type: ignore[no-any-return]
        environ["SCRIPT_NAME"], environ["PATH_INFO"] = prefix, path.removeprefix(prefix)
        return fences(environ, start_response)  # type: ignore[no-any-return]

    return dispatch


def main(framework: str, file: str, port: str) -> None:
    """Serve until the end."""
    values = SQLiteValues(Path(file), largest=100_000)
    fences = FenceResource(values.service, values.begin)
    if framework == "flask":
        import waitress  # type: ignore[import-untyped]  # it ships no types

        waitress.serve(dispatching(flask_app(values), fences), host="127.0.0.1", port=int(port), threads=4)
    else:
        application = dispatching(django_app(values), fences)
        make_server("127.0.0.1", int(port), application, _ThreadingServer, _SilentHandler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
