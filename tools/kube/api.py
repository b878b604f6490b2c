"""Plain requests to an API server, for tests that look at it all the time.

kubectl needs a fifth of a second of a core to start and say what a connection that is open says in
milliseconds; on two cores a test that looks ten times a second would be the busiest program there.
What people type is tested with kubectl all the same.
"""

import http.client
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

TIMEOUT: Final = 60.0
MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"


class ApiError(Exception):
    """The API server said no."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Api:
    """One API server, spoken to over one connection per thread."""

    def __init__(self, server: str, tls: Callable[[], ssl.SSLContext]) -> None:
        address = urlsplit(server)
        self._host, self._port = address.hostname or "", address.port
        self._tls = tls
        self._mine = threading.local()
        self._all: list[http.client.HTTPSConnection] = []

    def close(self) -> None:
        """Close every connection; the next request opens one again."""
        for connection in self._all:
            connection.close()

    def get(self, path: str, **query: str) -> Any:
        """Read an object or a list."""
        query_text = f"?{urlencode(query)}" if query else ""
        return self.call("GET", path + query_text)

    def watch(self, path: str, version: str, seconds: int = 1, **query: str) -> Iterator[Any]:
        """Every change after a version, for so long; the next call goes on from the last one."""
        query_text = {
            "watch": "1",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
            **query,
        }
        line = http.client.HTTPSConnection(self._host, self._port, context=self._tls())
        with closing(line):
            line.request("GET", f"{path}?{urlencode(query_text)}")
            for event in line.getresponse():
                yield json.loads(event)

    def patch(self, path: str, body: Mapping[str, Any], kind: str = MERGE) -> Any:
        """Change an object."""
        return self.call("PATCH", path, body, kind)

    def delete(self, path: str, **options: Any) -> None:
        """Delete an object, or all of a folder."""
        self.call("DELETE", path, options)

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        kind: str = "application/json",
    ) -> Any:
        """One request, and once more where a connection was closed while it was idle."""
        text = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": kind}
        connection = self._connection()
        was_open = connection.sock is not None
        try:
            status, reply = self._exchange(connection, method, path, text, headers)
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLError):
            if not was_open:
                raise
            status, reply = self._exchange(connection, method, path, text, headers)
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise ApiError(status, f"{method} {path}: {status} {reply.decode()[:500]}")
        return json.loads(reply)

    def _exchange(
        self,
        connection: http.client.HTTPSConnection,
        method: str,
        path: str,
        text: str | None,
        headers: dict[str, str],
    ) -> tuple[int, bytes]:
        try:
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            # It may be half-way through an answer; closed, it is opened again by the next request.
            connection.close()
            raise

    def _connection(self) -> http.client.HTTPSConnection:
        connection: http.client.HTTPSConnection | None = getattr(self._mine, "connection", None)
        if connection is None:
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=TIMEOUT, context=self._tls()
            )
            self._mine.connection = connection
            self._all.append(connection)
        return connection
