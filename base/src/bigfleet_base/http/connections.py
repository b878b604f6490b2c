"""Which connections of a server are open, and which one makes room for the next.

A connection waits for its request, or its request is being answered. The table never closes the
latter. When it is full, the connection that has waited longest is closed: a client that means it
sends its request at once, so a probe is answered beside any number of idle connections. When every
connection is being answered, the new one is refused.
"""

from __future__ import annotations

from typing import Protocol


class Evictable(Protocol):
    """A connection that can be closed to make room."""

    def evict(self) -> None:
        """Close without a response."""


class ConnectionTable:
    """The open connections of one server; used by the server's thread alone."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[Evictable, None] = {}
        """In the order in which they began to wait."""
        self._answering: set[Evictable] = set()
        self.evicted = 0
        self.refused = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._answering)

    def make_room(self) -> bool:
        """Whether one more connection may be opened, after closing another one if need be."""
        if len(self) < self._most:
            return True
        longest = next(iter(self._waiting), None)
        if longest is None:
            self.refused += 1
            return False
        del self._waiting[longest]
        self.evicted += 1
        longest.evict()
        return True

    def waits(self, connection: Evictable) -> None:
        """A connection begins to wait for a request."""
        self._answering.discard(connection)
        self._waiting[connection] = None

    def answers(self, connection: Evictable) -> None:
        """The request of a connection is complete, and its response is being made."""
        self._waiting.pop(connection, None)
        self._answering.add(connection)

    def closed(self, connection: Evictable) -> None:
        """A connection has ended."""
        self._waiting.pop(connection, None)
        self._answering.discard(connection)

    def evict_all(self) -> None:
        """Close every connection, because the server stops."""
        for connection in [*self._waiting, *self._answering]:
            connection.evict()
