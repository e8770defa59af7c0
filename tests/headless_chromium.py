"""A headless Chromium that is driven through its pipe of DevTools messages: no driver, no port."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe"),
)
SECONDS = 60.0


class Page:
    """One page of the browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, parameters, self._session)

    def open(self, file: Path, width: int, height: int, scheme: str) -> None:
        """Show a file on a screen of a size, in a colour scheme, and wait until it is loaded."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=file.as_uri())
        self._browser.wait_for("Page.loadEventFired")

    def evaluate(self, expression: str) -> Any:
        """Return what an expression of JavaScript is, of this process and not of the page's policy."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def screenshot(self, file: Path, *, whole: bool = True) -> None:
        """Write a picture of the page."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        file.write_bytes(base64.b64decode(data))

    @property
    def requests(self) -> list[str]:
        """The addresses that were asked for since the browser started."""
        return [
            one["params"]["request"]["url"]
            for one in self._browser.events
            if one["method"] == "Network.requestWillBeSent"
        ]

    @property
    def complaints(self) -> list[str]:
        """What the browser has to say: violations of the policy, errors of the page."""
        return [one["params"]["entry"]["text"] for one in self._browser.events if one["method"] == "Log.entryAdded"]


class Browser:
    """Reads and writes DevTools messages, each of which ends with a zero byte."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._rest = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, parameters: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": session} if session is not None else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (found := self._next()).get("id") != self._number:
            self.events.append(found)
        assert "error" not in found, found
        return dict(found["result"])

    def wait_for(self, method: str) -> None:
        known = len(self.events)
        while not any(one["method"] == method for one in self.events[known:]):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            found = os.read(self._read, 1 << 20)
            assert found, "the browser has ended"
            self._rest += found
        message, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(message))


@contextmanager
def page() -> Iterator[Page]:
    """Start a browser in an empty profile, and open a page in it."""
    assert PROGRAM is not None
    to_browser, from_us = os.pipe()
    from_browser, to_us = os.pipe()[0:2]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = f'exec "$0" "$@" 3<&{to_browser} 4>&{to_us}'
        arguments = [PROGRAM, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            ["/bin/bash", "-c", command, *arguments],
            pass_fds=(to_browser, to_us),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(to_us)
        try:
            browser = Browser(from_us, from_browser)
            target = browser.call("Target.createTarget", {"url": "about:blank"})["targetId"]
            session = browser.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
            yield Page(browser, session)
            browser.call("Browser.close", {})
        finally:
            os.close(from_us)
            os.close(from_browser)
            end = time.monotonic() + SECONDS
            while process.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
            if process.poll() is None:
                process.kill()
