"""A headless Chromium and one page in it, spoken to over a pipe in the Chrome DevTools Protocol."""

from __future__ import annotations

import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
PATIENCE: Final = 60.0  # seconds for any one answer: the machine may be busy

# Descriptors 3 and 4 are where Chromium looks for the pipe. Root's browser has no sandbox of its own; it opens nothing
# but files that were written a moment ago.
_START: Final = 'exec "$@" 3<&{reads} 4>&{writes}'
_OPTIONS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
    "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1400,1000",
)  # fmt: skip


class BrowserError(Exception):
    """There is no browser, it ended, or it would not do what it was asked."""


class Page:
    """One page; it notes what the browser complains about and what it fetches."""

    def __init__(self, reads: int, writes: int) -> None:
        self.complaints: list[str] = []
        self.fetched: list[str] = []
        self._reads, self._writes = reads, writes
        self._rest = b""
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self._loaded = False
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def open(self, file: Path) -> None:
        """Open a file and wait until it is loaded."""
        self._loaded = False
        answer = self._ask("Page.navigate", url=file.resolve().as_uri())
        if "errorText" in answer:
            raise BrowserError(f"{file} could not be opened: {answer['errorText']}")
        until = time.monotonic() + PATIENCE
        while not self._loaded:
            self._note(self._message(until))

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page; raises BrowserError when it throws."""
        answer = self._ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails'].get('text')}")
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Press and release the mouse over the middle of the first element that a selector finds."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.value(f"{found}.scrollIntoView({{block: 'center', inline: 'center'}})")
        box = self.value(f"(r => [r.x + r.width / 2, r.y + r.height / 2])({found}.getBoundingClientRect())")
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def picture(self, file: Path) -> None:
        """Write what is to be seen now as a PNG file."""
        file.write_bytes(b64decode(self._ask("Page.captureScreenshot")["data"]))

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while (answer := self._message(until)).get("id") != number:
            self._note(answer)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def _message(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._reads], [], [], max(0.0, until - time.monotonic()))[0]:
                raise BrowserError(f"the browser said nothing for {PATIENCE:.0f} s")
            some = os.read(self._reads, 1 << 20)
            if not some:
                raise BrowserError("the browser has ended")
            self._rest += some
        line, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        told = event.get("params", {})
        match event.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Runtime.exceptionThrown":
                self.complaints.append(str(told["exceptionDetails"].get("exception", {}).get("description", told)))
            case "Runtime.consoleAPICalled":
                self.complaints.append(f"console.{told['type']}: {told['args']}")
            case "Log.entryAdded":
                self.complaints.append(f"{told['entry']['level']}: {told['entry']['text']}")
            case "Network.requestWillBeSent":
                self.fetched.append(told["request"]["url"])


@contextmanager
def browser() -> Iterator[Page]:
    """Start Chromium with an empty profile; it ends with the block. Raises BrowserError when there is none."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        raise BrowserError(f"none of {', '.join(NAMES)} is installed (on Debian: apt-get install chromium)")
    commands, answers = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(prefix="tenure-browser-", ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            ["bash", "-c", _START.format(reads=commands[0], writes=answers[1]), "bash", program, *_OPTIONS,
             f"--user-data-dir={profile}"],
            pass_fds=(commands[0], answers[1]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(commands[0])
        os.close(answers[1])
        try:
            yield Page(answers[0], commands[1])
        finally:
            os.close(commands[1])  # which ends it
            os.close(answers[0])
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
