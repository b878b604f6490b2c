"""Keeps the operator connected: session after session, with a growing pause between bad ones."""

from __future__ import annotations

import asyncio
import logging
from random import Random
from typing import Protocol

from bigfleet.operator.ports import Dial
from bigfleet.operator.session.session import SessionDelegate, SessionIntervals, ShardSession
from bigfleet.wire.session import SessionBackoff, StreamClosedError
from bigfleet_api.v1alpha1 import shard_pb2 as pb

_log = logging.getLogger(__name__)


class Listener(Protocol):
    """Who wants to know about sessions."""

    def closed(self) -> None:
        """A session that had been greeted ended."""

    def reconnecting(self) -> None:
        """Another attempt is made after a session ended or failed."""


class Connection:
    """The way to the shard."""

    def __init__(
        self,
        host: SessionDelegate,
        listener: Listener,
        dial: Dial,
        rng: Random,
        rhythm: SessionIntervals,
    ) -> None:
        self._host, self._listener = host, listener
        self._dial, self._rng, self._rhythm = dial, rng, rhythm
        self.session: ShardSession | None = None
        self.last_end = "not tried yet"
        """How the last session ended, for people."""

    @property
    def is_open(self) -> bool:
        """Whether the shard has acknowledged a session that is open."""
        return self.session is not None and self.session.greeted

    @property
    def is_acknowledged(self) -> bool:
        """Whether this session has had a roll-up acknowledged."""
        return self.session is not None and self.session.acknowledged

    @property
    def refusal(self) -> str:
        """Why the shard refuses our roll-ups; empty where it does not."""
        return "" if self.session is None else self.session.refusal

    def post(self, message: pb.OperatorMessage) -> None:
        """An answer for the shard; lost where there is no session, and then asked for again."""
        if self.session is not None:
            self.session.post(message)

    def demand_changed(self) -> None:
        """Tell the shard soon."""
        if self.session is not None:
            self.session.demand_changed.set()

    def nodes_changed(self) -> None:
        """Tell the shard soon."""
        if self.session is not None:
            self.session.nodes_changed.set()

    async def run(self) -> None:
        """Stay connected until cancelled."""
        pauses = SessionBackoff(self._rng)
        try:
            while True:
                good, code, text = await self._converse()
                pause = pauses.after(good=good, code=code, text=text)
                _log.warning(
                    "session to the shard ended",
                    extra={"error": self.last_end, "again_in": round(pause, 2)},
                )
                await asyncio.sleep(pause)
                self._listener.reconnecting()
        finally:
            await self._dial.close()

    async def _converse(self) -> tuple[bool, str, str]:
        stream = await self._dial()
        session = self.session = ShardSession(self._host, stream, self._rhythm)
        code, text = "OK", ""
        try:
            await session.run()
        except StreamClosedError as error:
            code, text = error.code, error.text
        finally:
            self.session = None
            if session.greeted:
                self._listener.closed()
            if code == "OK":
                # Also when we are stopped: the shard then knows that nothing is lost.
                await stream.close()
            else:
                stream.drop()
        self.last_end = f"{code}: {text}" if text else code
        return session.good, code, text
