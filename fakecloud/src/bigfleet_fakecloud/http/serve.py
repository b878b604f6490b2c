"""Running a cloud: in a thread of a test, or as a process of its own.

A test takes `serving` and keeps the cloud in its hands; what kills and restarts its provider
takes `main`, because the cloud must outlive it. The socket listens before either returns or
starts, so a caller never meets a closed port. What a caller must know besides the address (the
file of the test authority, the port of SSH, a key) is in `cloud.facts`; a process writes these to
the file named by `--facts`, as JSON, before it answers.
"""

import argparse
import contextlib
import json
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import uvicorn

from bigfleet_fakecloud.cloud import Cloud
from bigfleet_fakecloud.http.app import CuttingProtocol, application
from bigfleet_fakecloud.http.tls import TestAuthority

STOP_LIMIT_S = 10.0


def _server(cloud: Cloud, authority: TestAuthority | None) -> uvicorn.Server:
    config = uvicorn.Config(
        application(cloud),
        http=CuttingProtocol,
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=1,
        ssl_certfile=authority.certificate if authority else None,
        ssl_keyfile=authority.key if authority else None,
    )
    return uvicorn.Server(config)


def _listen(host: str, port: int) -> socket.socket:
    # create_server sets SO_REUSEADDR: a cloud that is restarted gets its port back at once.
    return socket.create_server((host, port), backlog=1024)


def _endpoint(cloud: Cloud, listener: socket.socket, authority: TestAuthority | None) -> str:
    """The address of the cloud, noted among its facts."""
    host, port = listener.getsockname()[:2]
    endpoint = f"{'https' if authority else 'http'}://{host}:{port}"
    cloud.facts["endpoint"] = endpoint
    if authority is not None:
        cloud.facts["ca"] = str(authority.ca)
    return endpoint


@contextlib.contextmanager
def serving(cloud: Cloud, port: int = 0, authority: TestAuthority | None = None) -> Iterator[str]:
    """The address of a cloud that runs in a thread until the end of the block.

    With an authority it is served over TLS and the address begins with https.
    """
    listener = _listen("127.0.0.1", port)
    server = _server(cloud, authority)
    endpoint = _endpoint(cloud, listener, authority)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listener]}, name=f"cloud-{cloud.name}", daemon=True
    )
    thread.start()
    try:
        yield endpoint
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
    parser.add_argument("--tls", action="store_true", help="serve with a test authority's TLS")
    parser.add_argument("--facts", default=None, help="file for what callers must know, as JSON")
    options = parser.parse_args(arguments)
    host, _, port = str(options.addr).rpartition(":")
    if not host or not port.isdecimal():
        parser.error(f"--addr is host:port, not {options.addr!r}")
    cloud = build(options.seed)
    if options.latency_ms is not None:
        cloud.delays.turn({"transition": options.latency_ms / 1000})
    # uvicorn sends the signal that ended it once more; by then its services have stopped.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    with (
        tempfile.TemporaryDirectory(prefix="bigfleet-cloud-") as folder,
        _listen(host, int(port)) as listener,
    ):
        authority = TestAuthority.make(Path(folder)) if options.tls else None
        _endpoint(cloud, listener, authority)
        if options.facts:
            _write(Path(options.facts), json.dumps(cloud.facts))
        _server(cloud, authority).run(sockets=[listener])


def _write(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    part.write_text(text, "utf-8")
    part.replace(path)
