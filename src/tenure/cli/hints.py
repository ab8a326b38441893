"""What somebody may have meant whose command line was refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_APP = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_EXTRA = "unexpected extra argument"
_UNKNOWN = "No such option: "


def hint(message: str, words: Sequence[str], *, common: Iterable[str], before_command: bool) -> str | None:
    """Say what was meant by `words`, which were refused with `message`; None where nothing can be guessed.

    `common` are the options of every command; `before_command` tells that none had been read yet.
    """
    if _EXTRA in message:
        apps = [word for word in words if _APP.fullmatch(word) and word in message]
        return f"an app is named with --app {apps[0]}" if apps else None
    option = message.partition(_UNKNOWN)[2].split(" ")[0].rstrip(".")
    if before_command and option in common:
        return "it stands behind the command"
    return None
