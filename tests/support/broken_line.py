"""A way to an API server on which connections break when a test says so."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kube.plane import ControlPlane
from tcp_proxy import Proxy


class BrokenLine:
    """One port in front of one API server, and a kubeconfig that leads through it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, proxy: Proxy, kubeconfig: Path) -> None:
        self._loop, self._proxy = loop, proxy
        self.kubeconfig = kubeconfig

    def break_all(self) -> None:
        """End every open connection in the middle of whatever is said on it."""
        self._loop.call_soon_threadsafe(self._proxy.repair)


@contextmanager
def a_broken_line(plane: ControlPlane, folder: Path) -> Iterator[BrokenLine]:
    """A line that works, until it is broken."""
    loop = asyncio.new_event_loop()
    turning = threading.Thread(target=loop.run_forever, name="line", daemon=True)
    turning.start()
    proxy = Proxy(plane.server.removeprefix("https://"))
    asyncio.run_coroutine_threadsafe(proxy.__aenter__(), loop).result()
    kubeconfig = folder / f"{plane.name}-through-a-line"
    text = plane.kubeconfig.read_text().replace(plane.server, f"https://{proxy.address}")
    kubeconfig.write_text(text)
    try:
        yield BrokenLine(loop, proxy, kubeconfig)
    finally:
        asyncio.run_coroutine_threadsafe(proxy.__aexit__(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        turning.join()
        loop.close()
