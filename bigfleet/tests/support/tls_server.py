"""A server with TLS in a process of its own: `python tls_server.py FOLDER`, until stdin closes.

What a process does about old protocols is decided before it imports gRPC, so it cannot be seen in
the process of the tests.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from bigfleet.wire.server import WireServer
from bigfleet.wire.server_tls import ServerTls
from bigfleet.wire.tls import TlsFiles


async def serve(folder: Path) -> None:
    files = TlsFiles(folder / "cert.pem", folder / "key.pem", folder / "ca.pem")
    server = WireServer([], ServerTls(files))
    sys.stdout.write(f"{await server.start('127.0.0.1:0')}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(0)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
