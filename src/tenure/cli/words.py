"""Words of a command line that are no text: the bytes of an argument need not be any."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from inspect import Signature
from typing import Any

from tenure.errors import Misuse

_ADDRESSES = {"store"}
"""What may name a file, which may have any bytes as its name; so may every Path."""


def refuse_bytes(signature: Signature, given: Mapping[str, Any]) -> None:
    """Raise Misuse for a word that is no text and no file, naming its option or argument and never the word (B30)."""
    for name, value in given.items():
        words = value if isinstance(value, list | tuple) else [value]
        for number, word in enumerate(words, start=1):
            if name not in _ADDRESSES and isinstance(word, str) and not _is_text(word):
                label = _label(signature, name) + (f" number {number}" if len(words) > 1 else "")
                raise Misuse(f"{label} is not text: it holds bytes that are not {sys.getfilesystemencoding().upper()}")


def _is_text(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _label(signature: Signature, name: str) -> str:
    """Name a parameter as people type it: ``--after``, or the word that stands for an argument."""
    (info,) = signature.parameters[name].annotation.__metadata__
    # Typer takes the first name of an option for a default until it has read the signature.
    names = [said for said in (info.default, *(info.param_decls or ())) if isinstance(said, str)]
    return str(names[0] if names else info.metavar)
