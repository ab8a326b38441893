"""Where a store is: the connection string taken apart, and what of it people may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tenure.errors import BadSettings

Parameters = dict[str, Any]

_SHORTEST_CONNECT = 2  # seconds; libpq knows no shorter limit


@dataclass(frozen=True, slots=True)
class Target:
    """A database to connect to. `label` and `name` carry no user data (B30)."""

    given: Parameters
    label: str
    name: str

    @classmethod
    def parse(cls, url: str) -> Target:
        """Take `url` (a libpq URI or connection string) apart; raises BadSettings, without showing it."""
        try:
            given = {key: value for key, value in conninfo_to_dict(url).items() if value is not None}
        except (psycopg.Error, ValueError):
            # libpq quotes the part that it cannot read, which may be the password: neither shown nor chained.
            raise BadSettings(
                "the PostgreSQL address cannot be read: it looks like postgresql://user:password@host:5432/database,"
                " with special characters of user and password percent-encoded"
            ) from None
        place = f"{_hosts(given)}/{given.get('dbname', given.get('user', ''))}"
        return cls(given, f"PostgreSQL at {place}", f"postgresql://{place}")

    def parameters(self, timeout: float) -> Parameters:
        """Lay out connection parameters; a connection attempt takes at most `timeout` seconds, and no less than 2."""
        milliseconds = round(timeout * 1000)
        defaults: Parameters = {
            "application_name": "tenure",
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": milliseconds,
        }
        if "," in str(self.given.get("host", "")):
            defaults["target_session_attrs"] = "read-write"  # of several hosts, the primary
        # Whatever address or environment say of the encoding: in SQL_ASCII psycopg would leave every text undecoded.
        ours: Parameters = {"connect_timeout": max(_SHORTEST_CONNECT, int(timeout)), "client_encoding": "utf8"}
        return defaults | self.given | ours

    def without_password(self, text: str) -> str:
        """Blot the password out of a text that a library wrote."""
        password = str(self.given.get("password", ""))
        return text.replace(password, "***") if password else text


def _hosts(given: Parameters) -> str:
    hosts = str(given.get("host") or given.get("hostaddr") or "localhost").split(",")
    ports = str(given.get("port") or "5432").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    return ",".join(f"{host}:{port}" for host, port in zip(hosts, ports, strict=False))
