"""The guards of the fence for object storage."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_ONE_BY_ONE = ("tests/fences/test_s3.py", "-k", "not crowd and not everywhere and not nothing_older")


def _s3(name: str, guard: str, old: str, new: str) -> Mutant:
    return Mutant(f"s3 fence: {name}", guard, "fences/s3.py", old, new, _ONE_BY_ONE)


S3_FENCE = (
    _s3(
        "unconditional write",
        "a manifest is written only as it was read (R31)",
        "text, changing=True, **condition) is not None",
        "text, changing=True) is not None",
    ),
    _s3(
        "rule not asked",
        "an older generation is refused at the destination (R31)",
        "mark = judge(found.mark, bid, leap=self._leap)",
        "mark = bid.mark",
    ),
    _s3(
        "any leap",
        "a generation that no store has issued is refused (R38)",
        "leap=self._leap)",
        "leap=10**15)",
    ),
    _s3(
        "not raised",
        "a new owner's announcement holds off the old one (R32)",
        "        self._alter(bid.scope, partial(self._marked, bid))",
        "        del bid",
    ),
    _s3(
        "own write not recognized",
        "a write whose answer was lost is recognized (R30)",
        'if nonce in {found.nonce, (found.pointer or "").rpartition(".")[2]}:',
        "if False:",
    ),
    _s3(
        "own write forgotten after a raise",
        "a write that the next owner has seen is recognized (R30)",
        'if nonce in {found.nonce, (found.pointer or "").rpartition(".")[2]}:',
        "if nonce == found.nonce:",
    ),
    _s3(
        "lost answer called an outage",
        "a lost answer is unknown (R30)",
        "                if lost is not None:\n                    raise lost from error\n",
        "",
    ),
    _s3(
        "conflict not tried again",
        "a conflict is tried again",
        "_PRECONDITION = {409, 412}",
        "_PRECONDITION = {412}",
    ),
    _s3(
        "same text twice",
        "every write changes the manifest, so that no ETag comes back",
        "msgspec.json.encode(replace(altered, nonce=nonce))",
        "msgspec.json.encode(altered)",
    ),
    _s3(
        "mark removed with the data",
        "the fence outlives the data (R35)",
        "found if found.pointer is None else replace(found, pointer=None)",
        "found if found.pointer is None else replace(found, pointer=None, mark=None)",
    ),
    _s3(
        "unreadable manifest taken for none",
        "what cannot be judged is refused (R37)",
        "        except (msgspec.DecodeError, UnicodeDecodeError) as error:\n",
        "        except (msgspec.DecodeError, UnicodeDecodeError) as error:\n            return None, None\n",
    ),
    _s3(
        "foreign manifest accepted",
        "a manifest belongs to one scope (R36)",
        "        if _name(found.scope) != name:",
        "        if False:",
    ),
    _s3(
        "sweep by age alone",
        "what may yet be published is not swept",
        "    return (int(era), int(generation), int(sequence)) <= (len(manifest.resets), *mark)",
        "    return bool(mark)",
    ),
    _s3(
        "sweep blind to resets",
        "what a reset lets through is not swept",
        'f"{len(found.resets):04}.',
        'f"{0:04}.',
    ),
    _s3(
        "sweep without patience",
        "readers have time between manifest and data",
        "if age >= older_than and manifest",
        "if manifest",
    ),
    _s3(
        "overtaken reader told of a loss",
        "a reader that a sweep overtook looks again",
        "            if pointer == gone:",
        "            if True:",
    ),
    _s3(
        "reset without a reason",
        "a reset is audited (R38)",
        "        check_reason(reason)\n",
        "",
    ),
    _s3(
        "store not tried out",
        "a store that ignores conditions is refused before the first write",
        "        if self._unchecked:",
        "        if False:",
    ),
    _s3(
        "If-None-Match not tried out",
        "a store that ignores If-None-Match is refused",
        '            self._fails(one, "an object that is there already", IfNoneMatch="*")\n',
        "",
    ),
    _s3(
        "If-Match not tried out",
        "a store that ignores If-Match is refused",
        '            self._fails(one, "an object that has changed", IfMatch=made)\n',
        "",
    ),
    _s3(
        "rivals not tried out",
        "a store that looks first and writes later is refused",
        "        if len(won) > 1:",
        "        if False:",
    ),
)
