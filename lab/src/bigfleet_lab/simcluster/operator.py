"""Keeps one cluster connected: session after session, with a growing pause between bad ones."""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random

from bigfleet.wire.session import SessionBackoff, StreamClosedError
from bigfleet_lab.simcluster.cluster import SimCluster
from bigfleet_lab.simcluster.demand_changes import Curve, Step
from bigfleet_lab.simcluster.ports import Dial
from bigfleet_lab.simcluster.session import Session


class SimOperator:
    """One cluster and its way to the shard."""

    def __init__(self, cluster: SimCluster, dial: Dial, rng: Random) -> None:
        self.cluster = cluster
        self.session: Session | None = None
        self.last_end = ""
        """How the last session ended: a status, and what was said with it."""
        self._dial, self._rng = dial, rng

    async def run(self, delay: float = 0.0, curve: Curve = ()) -> None:
        """Stay connected until cancelled, starting after a delay; demand follows the curve."""
        await asyncio.sleep(delay)
        for step in curve:
            self.cluster.agenda.after(step.at_seconds, partial(self._step, step))
        pauses = SessionBackoff(self._rng)
        try:
            while True:
                good, code, text = await self._converse()
                await asyncio.sleep(pauses.after(good=good, code=code, text=text))
        finally:
            self.cluster.stop()

    @property
    def connected(self) -> bool:
        """Whether the shard has acknowledged a session that is open."""
        return self.session is not None and self.session.greeted

    def disconnect(self) -> None:
        """Cut the line, as a crash would. It comes back by itself."""
        if self.session is not None:
            self.session.drop()

    async def _converse(self) -> tuple[bool, str, str]:
        line = await self._dial(self.cluster.id)
        session = self.session = Session(self.cluster, line)
        code, text = "OK", ""
        try:
            await session.run()
        except StreamClosedError as error:
            code, text = error.code, error.text
        finally:
            self.session = None
            if code == "OK":
                await line.close()
            else:
                line.drop()
        self.cluster.stats.sessions_ended[code] += 1
        self.last_end = f"{code}: {text}" if text else code
        return session.good, code, text

    def _step(self, step: Step) -> None:
        self.cluster.change(step.change, step.share)
