"""Django, as a program without a project configures it: once in a process, with connections made by hand."""

from __future__ import annotations

from typing import Any

import django
from django.apps import apps
from django.conf import settings
from django.db.utils import ConnectionHandler


def django_connection(**database: Any) -> Any:
    """Open Django's wrapper of a connection to `database`, such as ENGINE="django.db.backends.sqlite3", NAME=path."""
    if not settings.configured:
        settings.configure(USE_TZ=True)
    if not apps.ready:
        django.setup()
    return ConnectionHandler({"default": database})["default"]
