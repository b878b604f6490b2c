"""A real Chromium, spoken to over its DevTools protocol: pages opened, looked at and typed into.

Only what the tests need: evaluate, keys, screenshots, and everything the page complained about.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
from skipped_tests import missing_program

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS: Final = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
    "--disable-background-networking", "--disable-dev-shm-usage", "--remote-debugging-port=0",
    "--force-color-profile=srgb",
)  # fmt: skip


def find_chromium() -> str | None:
    """Where a Chromium is, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


needs_chromium: Final = pytest.mark.skipif(
    find_chromium() is None,
    reason=missing_program("Chromium", "chromium"),
)


class Page:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.complaints: list[str] = []
        """Errors of the console, exceptions, and requests that failed or left the page's origin."""
        self.origin = ""
        self._reading = asyncio.create_task(self._read())

    async def call(self, method: str, **params: object) -> dict[str, Any]:
        """One call of the protocol."""
        number = next(self._numbers)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        await self._socket.send_json({"id": number, "method": method, "params": params})
        async with asyncio.timeout(60):
            answer = await future
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    async def start(self, width: int, height: int, scale: float = 1.0) -> None:
        """Listen to everything, in a window of this size."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        await self.resize(width, height, scale)

    async def resize(self, width: int, height: int, scale: float = 1.0) -> None:
        """Another window."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    async def dark(self, dark: bool) -> None:
        """What the system prefers."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def open(self, url: str) -> None:
        """Go somewhere."""
        self.origin = "/".join(url.split("/")[:3])
        await self.call("Page.navigate", url=url)

    async def value(self, expression: str) -> Any:
        """What an expression is on the page."""
        answer = await self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            said = answer["exceptionDetails"]
            raise RuntimeError(str(said.get("exception", said).get("description", said)))
        return answer["result"].get("value")

    async def until(self, expression: str, seconds: float = 30.0) -> None:
        """Wait until an expression is true."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    with contextlib.suppress(RuntimeError):
                        # An element as a value is an empty object, hence the two signs.
                        if await self.value(f"!!({expression})"):
                            return
                    await asyncio.sleep(0.1)
        except TimeoutError:
            text = await self.value("document.body.innerText.slice(0, 1500)")
            raise AssertionError(f"never true: {expression}\nthe page shows:\n{text}") from None

    async def press(self, *keys: str) -> None:
        """Keys, one after the other."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowRight": 39}
        for key in keys:
            about: dict[str, object] = {"key": key}
            if key in codes:
                about["windowsVirtualKeyCode"] = codes[key]
            if key == "Enter" or len(key) == 1:
                about["text"] = "\r" if key == "Enter" else key
            await self.call("Input.dispatchKeyEvent", type="keyDown", **about)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def screenshot(self, path: Path) -> None:
        """What is seen, as a PNG."""
        answer = await self.call("Page.captureScreenshot", format="png")
        await asyncio.to_thread(path.write_bytes, base64.b64decode(answer["data"]))

    async def close(self) -> None:
        """No more."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self._socket.close()

    async def _read(self) -> None:
        async for message in self._socket:
            document = message.json()
            if "id" in document:
                future = self._waiting.pop(document["id"], None)
                if future is not None and not future.done():
                    future.set_result(document)
            else:
                self._hear(document["method"], document["params"])

    def _hear(self, method: str, params: dict[str, Any]) -> None:
        match method:
            case "Runtime.exceptionThrown":
                said = params["exceptionDetails"]
                self.complaints.append(str(said.get("exception", said).get("description", said)))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "assert"):
                self.complaints.append(str([a.get("value") for a in params["args"]]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                entry = params["entry"]
                self.complaints.append(f"{entry['text']} {entry.get('url', '')}")
            case "Network.requestWillBeSent":
                url = params["request"]["url"]
                if self.origin and not url.startswith((self.origin, "data:", "about:")):
                    self.complaints.append(f"the page asks another server: {url}")


@contextlib.asynccontextmanager
async def chromium(width: int = 1440, height: int = 900, scale: float = 1.0) -> AsyncIterator[Page]:
    """A browser with one page, gone afterwards."""
    path = find_chromium()
    assert path is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            path,
            *_FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            port = await _port(Path(profile) / "DevToolsActivePort")
            async with aiohttp.ClientSession() as http:
                async with http.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    tabs = await answer.json()
                tab = next(each for each in tabs if each["type"] == "page")
                socket = await http.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0)
                page = Page(socket)
                await page.start(width, height, scale)
                try:
                    yield page
                finally:
                    await page.close()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), 5)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _port(path: Path) -> int:
    async with asyncio.timeout(30):
        while True:
            if path.exists() and (lines := path.read_text().splitlines()):  # noqa: ASYNC240
                return int(lines[0])
            await asyncio.sleep(0.05)
