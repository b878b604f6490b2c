"""Whatever happens in whatever order, an operator ends up believing what is true.

Machines live random lives while two operators come, stall, break off and come back, on a loop that
draws the order of everything. An operator keeps the newest frame of each machine and forgets those
that are withdrawn. When the dust has settled it must know exactly the machines that concern it, as
they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from bigfleet.model import Machine, MachineState
from bigfleet.shard.operators.errors import SessionEnd
from bigfleet.shard.operators.node_updates import concerns
from operators import Desk, SessionStream, hello, machine, stamp
from sim.loop import virtual_loop

S = MachineState
CLUSTERS = ("c-1", "c-2")
MACHINES = [f"m-{number}" for number in range(12)]


class Operator:
    """Opens sessions one after the other and believes what it is told."""

    def __init__(self, desk: Desk, cluster: str, rng: Random) -> None:
        self.desk = desk
        self.cluster = cluster
        self.rng = rng
        self.believed: dict[str, MachineState] = {}
        self.settled = asyncio.Event()
        self.line: SessionStream | None = None
        self.ends: list[str] = []

    async def live(self) -> None:
        while True:
            line = SessionStream(window=self.rng.randrange(3))
            self.line = line
            line.say(hello=hello(self.cluster))
            serving = asyncio.ensure_future(self.desk.sessions.serve(line))
            reading = asyncio.ensure_future(self.read(line))
            try:
                await serving
            except (SessionEnd, ConnectionResetError) as error:
                self.ends.append(type(error).__name__)
            reading.cancel()
            self.take(line)
            await asyncio.sleep(self.rng.random() * 5)

    async def read(self, line: SessionStream) -> None:
        while True:
            await asyncio.sleep(self.rng.random())
            line.reads(30 if self.settled.is_set() else 1)
            self.take(line)

    def take(self, line: SessionStream) -> None:
        for frame in line.heard():
            if frame.HasField("node_state_update"):
                update = frame.node_state_update
                assert update.cluster_id == self.cluster
                self.believed[update.machine_id] = S(update.state)
                if update.withdrawn:
                    del self.believed[update.machine_id]


def happen(desk: Desk, rng: Random) -> None:
    """One thing happens to one machine."""
    name, cluster = rng.choice(MACHINES), rng.choice(CLUSTERS)
    known = desk.book.get(name)
    if known is None:
        desk.book.take(machine(name, S.SPECULATIVE))
        return
    if rng.random() < 0.05:
        desk.book.vanish(name)
        return
    if rng.random() < 0.1 and known.state is not S.SPECULATIVE:
        desk.book.take(machine(name, S.FAILED, last_error="broken"))
        return
    NEXT[known.state](desk, known, cluster)


def _leave(desk: Desk, known: Machine, cluster: str) -> None:
    desk.book.leave(known.id, stamp(cluster))
    desk.book.start(known.id, S.DRAINING)


NEXT: dict[MachineState, Callable[[Desk, Machine, str], object]] = {
    S.SPECULATIVE: lambda desk, m, c: desk.book.start(m.id, S.CREATING, stamp=stamp(c)),
    S.CREATING: lambda desk, m, _: desk.book.take(machine(m.id, S.IDLE)),
    S.IDLE: lambda desk, m, c: desk.book.start(m.id, S.CONFIGURING, c, stamp(c)),
    S.CONFIGURING: lambda desk, m, c: (
        desk.book.revert(m.id)
        if c == "c-2"
        else desk.book.take(machine(m.id, S.CONFIGURED, cluster=m.cluster))
    ),
    S.CONFIGURED: _leave,
    S.DRAINING: lambda desk, m, _: desk.book.take(machine(m.id, S.IDLE)),
    S.FAILED: lambda desk, m, _: desk.book.take(machine(m.id, S.SPECULATIVE)),
}


async def story(seed: int) -> list[str]:
    rng = Random(seed)
    desk = Desk(outbox_bound=4)
    operators = [Operator(desk, cluster, rng) for cluster in CLUSTERS]
    living = [asyncio.ensure_future(operator.live()) for operator in operators]
    for _ in range(150):
        await asyncio.sleep(rng.random() * 0.2)
        happen(desk, rng)
        if rng.random() < 0.04:
            line = rng.choice(operators).line
            assert line is not None
            line.fail(ConnectionResetError("the network"))
    for operator in operators:
        operator.settled.set()
    await asyncio.sleep(60)
    machines = [desk.book.get(name) for name in MACHINES]
    failed = {m.id for m in machines if m is not None and m.state is S.FAILED}
    for operator in operators:
        true = {
            m.id: m.state for m in machines if m is not None and concerns(m) == operator.cluster
        }
        seen = {name: s for name, s in operator.believed.items() if name not in failed}
        assert seen == {name: s for name, s in true.items() if name not in failed}
        assert all(operator.believed[name] is S.FAILED for name in failed & set(operator.believed))
    for task in living:
        task.cancel()
    await asyncio.gather(*living, return_exceptions=True)
    return [end for operator in operators for end in operator.ends]


@pytest.mark.parametrize("part", range(4))
def test_operators_believe_what_is_true(part: int) -> None:
    ends: list[str] = []
    for seed in range(part * 15, part * 15 + 15):
        loop = virtual_loop(seed)
        try:
            ends += loop.run(story(seed))
        finally:
            loop.close()
    assert {"SessionEnd", "ConnectionResetError"} <= set(ends), "sessions overflow and break"
