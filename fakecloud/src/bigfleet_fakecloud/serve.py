"""Running a cloud: in a thread of a test, or as a process of its own.

A test takes `serving` and keeps the cloud in its hands; what kills and restarts its provider
takes `main`, because the cloud must outlive it. The socket listens before either returns or
starts, so a caller never meets a closed port.
"""

import argparse
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence

import uvicorn

from bigfleet_fakecloud.app import CuttingProtocol, application
from bigfleet_fakecloud.cloud import Cloud

STOP_LIMIT_S = 10.0


def _server(cloud: Cloud) -> uvicorn.Server:
    config = uvicorn.Config(
        application(cloud),
        http=CuttingProtocol,
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def _listen(host: str, port: int) -> socket.socket:
    # create_server sets SO_REUSEADDR: a cloud that is restarted gets its port back at once.
    return socket.create_server((host, port), backlog=1024)


@contextlib.contextmanager
def serving(cloud: Cloud, port: int = 0) -> Iterator[str]:
    """The address of a cloud that runs in a thread until the end of the block."""
    listener = _listen("127.0.0.1", port)
    server = _server(cloud)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listener]}, name=f"cloud-{cloud.name}", daemon=True
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(STOP_LIMIT_S)
        listener.close()


def main(build: Callable[[int], Cloud], arguments: Sequence[str] | None = None) -> None:
    """Run a cloud as a process; `build` makes it from a seed."""
    parser = argparse.ArgumentParser(description="An imitated cloud, for tests only.")
    parser.add_argument("--addr", default="127.0.0.1:0", help="host:port to listen on")
    parser.add_argument(
        "--seed", type=int, default=1, help="what looks like chance follows from it"
    )
    parser.add_argument(
        "--latency-ms", type=float, default=None, help="length of every transition and operation"
    )
    options = parser.parse_args(arguments)
    host, _, port = str(options.addr).rpartition(":")
    if not host or not port.isdecimal():
        parser.error(f"--addr is host:port, not {options.addr!r}")
    cloud = build(options.seed)
    if options.latency_ms is not None:
        cloud.knobs.turn({"transition": options.latency_ms / 1000})
    with _listen(host, int(port)) as listener:
        _server(cloud).run(sockets=[listener])
