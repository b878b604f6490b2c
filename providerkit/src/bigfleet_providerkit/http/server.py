"""/metrics, /healthz and /readyz, on threads of their own: no scrape holds the event loop."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from bigfleet_providerkit.errors import StartError

Readiness = Callable[[], str]


class HttpServer:
    """Probes and metrics. `readiness` gives an empty text, or the reason for 503."""

    def __init__(self, addr: str, registry: CollectorRegistry, readiness: Readiness) -> None:
        host, _, port = addr.rpartition(":")
        try:
            self._server = _Server((host, int(port)), _handler(registry, readiness))
        except (OSError, ValueError, OverflowError) as error:
            raise StartError(
                f"cannot listen on {addr}: {error}; choose another --metrics-addr, or 0 for none"
            ) from error
        self.address = f"{host or '127.0.0.1'}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True


def _handler(registry: CollectorRegistry, readiness: Readiness) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Three pages. Whoever connects and says nothing is not waited for."""

        timeout = 10.0

        def do_GET(self) -> None:
            """Answer one request."""
            path = self.path.partition("?")[0]
            if path == "/metrics":
                encode, kind = choose_encoder(self.headers.get("Accept", ""))
                self._answer(200, encode(registry), kind)
            elif path == "/healthz":
                self._answer(200, b"ok\n")
            elif path == "/readyz":
                reason = readiness()
                self._answer(503 if reason else 200, f"{reason or 'ok'}\n".encode())
            else:
                self._answer(404, b"try /metrics, /healthz or /readyz\n")

        def _answer(self, status: int, body: bytes, kind: str = "text/plain") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Probes come every few seconds; nobody wants them in the log."""

    return Handler
