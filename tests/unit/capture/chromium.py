"""A headless Chromium that opens a page, presses keys and answers questions, over two pipes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from itertools import count

_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--remote-debugging-pipe",
    "--no-first-run",
)
_KEYS = {
    "ArrowDown": 40,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "End": 35,
    "Home": 36,
    "Enter": 13,
    "Escape": 27,
}


class Browser:
    """One page; `ask` gives the value of a JavaScript expression."""

    def __init__(self, read, write):
        self._read, self._write = read, write
        self._numbers = count(1)
        self._rest = b""
        self._session = None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]

    def _call(self, method, **params):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def _receive(self):
        while b"\0" not in self._rest:
            piece = os.read(self._read, 1 << 16)
            assert piece, "Chromium has ended"
            self._rest += piece
        first, _, self._rest = self._rest.partition(b"\0")
        return json.loads(first)

    def open(self, path):
        self._call("Page.enable")
        self._call("Page.navigate", url=path.as_uri())
        while self.ask("document.readyState + location.protocol") != "completefile:":
            pass

    def ask(self, expression):
        done = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def press(self, key):
        code = _KEYS.get(key, ord(key.upper()[0]))
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self._call(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text
            )


@contextmanager
def chromium(folder):
    """Debian's Chromium, with a profile of its own in `folder`."""
    program = shutil.which("chromium")
    assert program, "the long run needs Debian's chromium: apt-get install chromium"
    # It reads commands from descriptor 3 and writes answers to 4.
    to_read, write = os.pipe()
    read, to_write = os.pipe()
    shell = f'exec "$@" 3<&{to_read} 4>&{to_write}'
    command = ["bash", "-c", shell, "-", program, *_OPTIONS, f"--user-data-dir={folder}"]
    process = subprocess.Popen(
        command, pass_fds=(to_read, to_write), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    os.close(to_read)
    os.close(to_write)
    try:
        yield Browser(read, write)
    finally:
        process.terminate()
        process.wait(30)
        os.close(read)
        os.close(write)
