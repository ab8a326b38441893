"""The guards of the fence in Redis."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_RULE = ("tests/fences/test_redis.py", "-k", "[valkey")
_WRITES = ("tests/fences/test_redis_writes.py",)
_MARKS = ("tests/fences/test_redis_marks.py",)
_CLIENTS = ("tests/fences/test_redis_clients.py",)


def _script(name: str, guard: str, old: str, new: str, tests: tuple[str, ...] = _RULE) -> Mutant:
    return Mutant(f"redis: {name}", guard, "fences/redis/scripts/fence.lua", old, new, tests)


def _commands(name: str, guard: str, old: str, new: str) -> Mutant:
    return Mutant(f"redis: {name}", guard, "fences/redis/scripts/commands.lua", old, new, _WRITES)


def _python(name: str, guard: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(f"redis: {name}", guard, f"fences/redis/{file}.py", old, new, tests)


FENCES_REDIS = (
    _script("stale passes", "an older generation is refused (R31)", "generation < met or", ""),
    _script(
        "two jobs compared", "tokens of two jobs are never compared (R36)", "(mark[1] or ARGV[1]) ~= ARGV[1] or", ""
    ),
    _script(
        "leap passes",
        "a generation that nobody issued is refused (R38)",
        "or generation - met > tonumber(ARGV[4]) then",
        "then",
    ),
    _script(
        "repeat passes",
        "a repeated write is refused (R33)",
        "if sequence <= applied then",
        "if sequence < applied then",
    ),
    _script(
        "overtaken passes",
        "an overtaken write is refused (R33)",
        "if sequence <= applied then",
        "if sequence == applied then",
    ),
    _script(
        "announced again",
        "an owner that announces itself again loses nothing (R33)",
        "  if sequence == 0 then\n    return {'announced'}\n  end\n  local applied",
        "  local applied",
    ),
    _script(
        "not raised",
        "an announcement holds the old owner off (R32)",
        "local kept = redis.pcall(\n",
        "local kept = sequence > 0 and redis.pcall(\n",
    ),
    _script(
        "expiry passes",
        "a fence with an expiry lets nothing in (R35)",
        "if redis.call('PTTL', fence) >= 0 then",
        "if false then",
        _MARKS,
    ),
    _script(
        "damage passes", "a damaged fence lets nothing in", "is_whole(mark[2]) and is_whole(mark[3])", "true", _MARKS
    ),
    _script(
        "missing job passes", "a fence without its job lets nothing in", "not (mark[1] and", "not (true and", _MARKS
    ),
    _script(
        "other kind passes",
        "something else in the fence's place lets nothing in",
        "if kind ~= 'none' and kind ~= 'hash' then",
        "if false then",
        _MARKS,
    ),
    _script(
        "malformed passes",
        "the script itself refuses a malformed token (R37)",
        "if not (is_whole(ARGV[2]) and is_whole(ARGV[3])) then",
        "if false then",
        _MARKS,
    ),
    _script("16 digits pass", "no number has more than 15 digits", "#text <= 15", "#text <= 16", _MARKS),
    _script(
        "sent again unknown",
        "the client's own repeat is known",
        "and mark[4] == ARGV[5] then",
        "and false then",
        _MARKS,
    ),
    _script("every repeat is known", "only the client's own repeat is known", "and mark[4] == ARGV[5] then", "then"),
    _script(
        "mark before write",
        "a write that failed leaves the mark as it was",
        "    return {'failed', problem or tostring(reply)}",
        "    redis.call('HSET', fence, 'job', ARGV[1], 'generation', ARGV[2], 'sequence', ARGV[3])\n"
        "    return {'failed', problem or tostring(reply)}",
        _WRITES,
    ),
    _script(
        "errors of a script pass",
        "a refusal of the user's script raises nothing",
        "if problem or not done then",
        "if not done then",
        _WRITES,
    ),
    _script(
        "full server forgets",
        "a mark that could not be kept is told",
        "if type(kept) == 'table' and kept.err then",
        "if false then",
        _MARKS,
    ),
    _commands(
        "half a write", "several commands are made whole or not at all", ".. put_back()}", ".. '; nothing was changed'}"
    ),
    _commands(
        "new keys stay",
        "what an undone write made is removed",
        "answer = redis.pcall('DEL', KEYS[place])",
        "answer = 0",
    ),
    _commands(
        "expiry lost", "an undone write leaves the expiry of a key", "copy[2] < 0 and 0 or math.max(copy[2], 1)", "0"
    ),
    _commands(
        "no right to undo",
        "what cannot be undone is not begun",
        "if redis.acl_check_cmd and not redis.acl_check_cmd('RESTORE', key, '0', '') then",
        "if false then",
    ),
    _python(
        "only first command undone",
        "all commands but the last can be undone",
        "fence",
        "if spec.writes and number < len(commands):",
        "if spec.writes and number == 1:",
        *_WRITES,
    ),
    _python(
        "untagged key passes",
        "fence and data share a slot",
        "keys",
        "if tagged and not",
        "if False and not",
        *_WRITES,
    ),
    _python(
        "unclosed tag taken for one",
        "a key is placed as the server does it",
        "keys",
        'return b"{" + inside + closed == own.encode()',
        'return b"{" + inside + b"}" == own.encode()',
        *_WRITES,
    ),
    _python(
        "later tag taken for one",
        "a key is placed as the server does it",
        "keys",
        'key.partition(b"{")[2]',
        'key.rpartition(b"{")[2]',
        *_WRITES,
    ),
    _python(
        "own key passes",
        "a write does not touch a fence's own keys",
        "keys",
        "if key.startswith((FENCE.encode(), RESETS.encode())):",
        "if False:",
        *_WRITES,
    ),
    _python(
        "keyless command passes",
        "a command without keys is not run",
        "keys",
        "if first == 0 or flags & _UNFIT:",
        "if flags & _UNFIT:",
        *_WRITES,
    ),
    _python(
        "escaping command passes",
        "a command that cannot be undone is not run",
        "keys",
        "if name in _ESCAPING or",
        "if",
        *_WRITES,
    ),
    _python(
        "copy into another database",
        "a command does not pass by the fence of another database",
        "keys",
        'any(as_text(word).upper() == "DB" for word in words[3:])',
        "False",
        *_WRITES,
    ),
    _python(
        "any command passes",
        "a command that hides its keys is not run",
        "keys",
        "if first == 0 or flags & _UNFIT:",
        "if first == 0:",
        *_WRITES,
    ),
    _python(
        "braces in a scope",
        "scopes with braces have tags of their own",
        "keys",
        '.replace("{", "%7B").replace("}", "%7D")',
        "",
        *_WRITES,
    ),
    _python("percent in a scope", "no two scopes share a tag", "keys", '.replace("%", "%25")', "", *_WRITES),
    _python(
        "untagged in a cluster",
        "a cluster needs the tag",
        "fence",
        "if self._link.cluster and not tagged:",
        "if False:",
        "tests/fences/test_redis.py",
        "-k",
        "cluster_needs",
    ),
    _python(
        "reset without reason",
        "a reset needs a reason (R38)",
        "fence",
        "(check_reason(reason).encode(),)",
        "(reason.encode(),)",
        *_RULE,
    ),
    _python(
        "mark in the client's encoding",
        "clients of every encoding meet at one mark",
        "keys",
        "return (kind + tag(scope)).encode()",
        "return kind + tag(scope)  # type: ignore[return-value]",
        *_CLIENTS,
    ),
    _python(
        "job in the client's encoding",
        "clients of every encoding compare one job",
        "fence",
        "arguments = (bid.job.encode(),",
        "arguments = (bid.job,",
        *_CLIENTS,
    ),
    _python(
        "other keys put back",
        "what is put back is what the client wrote",
        "connect",
        "encode(word) if isinstance(word, str) else word",
        "word.encode() if isinstance(word, bool) else word",
        *_CLIENTS,
    ),
    _python(
        "lost answer told as undone",
        "an answer that is lost is unknown (R30)",
        "connect",
        "if isinstance(error, _FULL) or not changes:",
        "if True:",
        *_MARKS,
    ),
    _python(
        "weak settings unseen",
        "a setting that can lose a fence is named (R42)",
        "durability",
        "        if value not in good:",
        "        if False:",
        *_CLIENTS,
    ),
    _python(
        "replicas unseen",
        "a failover can lose a fence (R42)",
        "durability",
        'if replication.get("connected_slaves", "0") != "0":',
        "if False:",
        *_CLIENTS,
    ),
    _python(
        "hidden settings pass",
        "settings that are not shown promise nothing (R42)",
        "durability",
        '        return [f"the server does not show its settings: {error.__cause__}"]',
        "        return []",
        *_CLIENTS,
    ),
    _python(
        "a pipeline for a client",
        "what keeps answers back is no client (R31)",
        "connect",
        "    if isinstance(client, _KEEPING_BACK):",
        "    if False:",
        *_CLIENTS,
    ),
    Mutant(
        "redis: reset forgets",
        "what was put aside is kept (R38)",
        "fences/redis/scripts/reset.lua",
        "redis.call('RPUSH', KEYS[2], cjson.encode({",
        "redis.call('ECHO', cjson.encode({",
        _RULE,
    ),
    Mutant(
        "testing: server outlives its owner",
        "a server for tests ends with the process that started it",
        "testing/process.py",
        "    read -r ended <&3 && exit\n",
        "    read -r ended <&3; exit\n",
        ("tests/unit/test_server_process.py",),
    ),
    Mutant(
        "redis: server without a password",
        "a server for tests is not open to other users",
        "testing/redis.py",
        '"requirepass": self.password}',
        '"requirepass": ""}',
        ("tests/fences/test_redis_server.py",),
    ),
)
