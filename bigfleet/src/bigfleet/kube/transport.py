"""One request to an API server: sent within the client's own rate, tried again where that is safe,
and ended by a deadline.

Tried again, with jittered back-off and never sooner than the server asks: what never left (no
connection), what was refused unseen (429, and 5xx with Retry-After), and any trouble of requests
that may be repeated. All of it, waiting included, ends at the deadline. What a path or a body means
is left to `client`.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Protocol, Self

import aiohttp
from aiohttp.connector import AddrInfoType

from bigfleet.kube.config import ClusterConfig
from bigfleet.kube.errors import (
    ApiError,
    DeadlineError,
    DecodeError,
    ServerError,
    ThrottledError,
    UnauthorizedError,
    UnreachableError,
    api_error,
)
from bigfleet.kube.ports import KubeClock, KubeSystemClock, NullObserver, Observer
from bigfleet.wire.backoff import Backoff

# The client's own limit of requests a second, so that it never is the cluster's problem.
#
# A bucket of `burst` tokens refills at `qps`; who finds it empty waits for its turn, first come,
# first served. Watches take a token when they start and none while they last.


class RateLimit:
    """A token bucket that hands out turns in order."""

    def __init__(self, qps: float, burst: int, clock: KubeClock) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(
                f"qps={qps} and burst={burst}: give a rate above 0 and a burst of 1 or more"
            )
        self._qps = qps
        self._burst = burst
        self._clock = clock
        # Tokens are counted as time: a turn may be taken once this moment is not in the future.
        self._next_turn = clock.monotonic() - burst / qps

    async def turn(self) -> None:
        """Wait for a turn and take it."""
        now = self._clock.monotonic()
        self._next_turn = max(self._next_turn, now - self._burst / self._qps) + 1 / self._qps
        wait = self._next_turn - now
        if wait > 0:
            await self._clock.sleep(wait)


# Cuts a stream of bytes into lines, which is how a watch sends its events.

LONGEST_LINE: Final = 16 * 2**20
"""An object is at most 1.5 MiB in etcd; ten times that is not an object."""


class Chunks(Protocol):
    """Bytes as they arrive."""

    def iter_any(self) -> AsyncIterator[bytes]:
        """Whatever is there, as soon as it is."""


async def lines_of(chunks: Chunks, longest: int = LONGEST_LINE) -> AsyncIterator[bytes]:
    """Complete lines, without their ends; what follows the last end is dropped."""
    pieces: list[bytes] = []
    size = 0
    async for chunk in chunks.iter_any():
        first, *rest = chunk.split(b"\n")
        pieces.append(first)
        size += len(first)
        if size > longest:
            raise DecodeError(f"a line of a watch has more than {longest} bytes")
        if not rest:
            continue
        whole = b"".join(pieces)
        if whole:
            yield whole
        for line in rest[:-1]:
            if line:
                yield line
        pieces = [rest[-1]]
        size = len(rest[-1])


DEADLINE: Final = 30.0
UNLIMITED: Final = frozenset({"leases"})
"""Resources that wait for no turn: who leads must not depend on how much there is to do."""
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_BROKEN = (aiohttp.ClientError, ConnectionError, asyncio.IncompleteReadError)
_READ_BUFFER: Final = 2**20


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """What is to be sent, and how it counts."""

    method: str
    path: str
    verb: str
    resource: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    repeatable: bool = False
    """Whether doing it twice is as good as once."""
    refusal_is_final: Callable[[ApiError], bool] = lambda _error: False
    """Tells refusals that are answers, although their status says `later`."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class ApiTransport:
    """Connections to one API server."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        qps: float = 50.0,
        burst: int = 100,
        connections: int = 100,
        user_agent: str = "bigfleet",
        clock: KubeClock | None = None,
        chance: random.Random | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.config = config
        self.clock: KubeClock = clock or KubeSystemClock()
        self.chance = chance or random.Random()
        self.observer: Observer = observer or NullObserver()
        self._rate = RateLimit(qps, burst, self.clock)
        self._connections = connections
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; running requests end with an UnreachableError."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(self, request: ApiRequest, deadline: float = DEADLINE) -> bytes:
        """Send a request and return the answer's body, or raise what stopped it."""
        last: Exception | None = None
        backoff = Backoff(first=0.1, longest=5.0, chance=self.chance)
        try:
            async with asyncio.timeout(deadline):
                while True:
                    token = self.config.token()
                    try:
                        return await self._send(request, token)
                    except UnauthorizedError:
                        # The token may have been replaced since; if not, it will not get better.
                        if self.config.token() == token:
                            raise
                        continue
                    except (ApiError, UnreachableError) as error:
                        last = error
                        if not _try_again(request, error):
                            raise
                    await self.clock.sleep(backoff.next(getattr(last, "retry_after", None)))
        except TimeoutError:
            seen = f"; the last try said: {last}" if last else ""
            raise DeadlineError(f"{request}: no answer within {deadline:g} s{seen}") from last

    async def _send(self, request: ApiRequest, token: str) -> bytes:
        if request.resource not in UNLIMITED:
            await self._rate.turn()
        started = self.clock.monotonic()
        code = 0
        try:
            async with self._open(request, token) as response:
                code = response.status
                body = await response.read()
                if code >= 400:
                    raise _refusal(response, body)
                return body
        except _NEVER_SENT as error:
            raise _NeverSentError(f"{request}: {error}") from error
        except _BROKEN as error:
            code = 0
            raise UnreachableError(f"{request}: {_words(error)}") from error
        finally:
            seconds = self.clock.monotonic() - started
            self.observer.requested(request.verb, request.resource, code_class(code), seconds)

    @asynccontextmanager
    async def stream(
        self, request: ApiRequest, *, lasts: float, deadline: float = DEADLINE
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Lines of an answer that goes on for up to `lasts` seconds; it has to begin by the
        deadline."""
        started = self.clock.monotonic()
        code = 0
        try:
            async with asyncio.timeout(deadline) as limit:
                await self._rate.turn()
                async with self._open(request, self.config.token()) as response:
                    code = response.status
                    if code >= 400:
                        raise _refusal(response, await response.read())
                    self.observer.requested(
                        request.verb,
                        request.resource,
                        code_class(code),
                        self.clock.monotonic() - started,
                    )
                    limit.reschedule(asyncio.get_running_loop().time() + lasts)
                    yield lines_of(response.content)
        except TimeoutError as error:
            raise DeadlineError(f"{request}: not ended within {lasts:g} s") from error
        except _BROKEN as error:
            raise UnreachableError(f"{request}: {_words(error)}") from error
        finally:
            if not 200 <= code < 300:
                seconds = self.clock.monotonic() - started
                self.observer.requested(request.verb, request.resource, code_class(code), seconds)

    def _open(
        self, request: ApiRequest, token: str
    ) -> aiohttp.client._RequestContextManager:  # what request() returns has no public name
        headers = {"Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return self._connected().request(
            request.method,
            f"{self.config.server}{request.path}",
            params=request.params or None,
            data=request.body,
            headers=headers,
            server_hostname=self.config.server_name,
            allow_redirects=False,
        )

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    ssl=self.config.tls() or True,
                    limit=self._connections,
                    socket_factory=_socket,
                ),
                headers={"User-Agent": self._user_agent},
                # Deadlines are ours, over all tries; only connecting has a limit of its own.
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0),
                read_bufsize=_READ_BUFFER,
                trust_env=False,
            )
        return self._session


class _NeverSentError(UnreachableError):
    """There was no connection: nothing was done."""


def code_class(code: int) -> str:
    """How metrics call a status; 0 means no answer."""
    if code == 0:
        return "error"
    if code in (409, 410, 429):
        return str(code)
    return f"{code // 100}xx"


def _try_again(request: ApiRequest, error: ApiError | UnreachableError) -> bool:
    match error:
        case _NeverSentError():
            return True
        case ApiError() if request.refusal_is_final(error):
            return False
        case ThrottledError():
            return True
        case ServerError():
            return request.repeatable or error.retry_after is not None
        case UnreachableError():
            return request.repeatable
        case _:
            return False


def _refusal(response: aiohttp.ClientResponse, body: bytes) -> ApiError:
    retry_after = response.headers.get("Retry-After", "")
    seconds = float(retry_after) if retry_after.isdecimal() else None
    return api_error(response.status, body, retry_after=seconds)


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _socket(address: AddrInfoType) -> socket.socket:
    """A socket that notices within half a minute that the other side is gone."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made
