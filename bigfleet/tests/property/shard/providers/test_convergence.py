"""Whatever providers, clusters and actions do, the book comes to hold what providers say.

The oracle is the cloud itself: a minute after the last disturbance every machine is known as it is
there, and after the next full List nothing else is known.
"""

import asyncio
from dataclasses import dataclass, field
from random import Random

import grpc
import hypothesis.strategies as st
from hypothesis import given, settings

from bigfleet.model import MachineState
from bigfleet.model.lifecycle import is_legal_move
from bigfleet.provider import CallError
from reconciling import (
    CONFIGURED,
    CONFIGURING,
    CREATING,
    DELETING,
    DRAINING,
    FAILED,
    IDLE,
    SPECULATIVE,
    Cloud,
    Shard,
    record,
    shard_of,
)
from sim.loop import virtual_loop

S = MachineState
DOWN = CallError(grpc.StatusCode.UNAVAILABLE, "down")
STATES = (SPECULATIVE, CREATING, IDLE, CONFIGURING, CONFIGURED, DRAINING, DELETING, FAILED)
MOVES = (S.CREATING, S.CONFIGURING, S.DRAINING, S.DELETING)


@dataclass
class Story:
    """A cloud, a shard, and chance."""

    cloud: Cloud
    shard: Shard
    rng: Random
    unheard: dict[str, int] = field(default_factory=dict)
    """Machines of which an action was lost on the way, with their revision at that time."""

    async def step(self) -> None:
        """Something happens."""
        acts = (self.change, self.act, self.vanish, self.refresh, self.disturb, self.calm)
        (act,) = self.rng.choices(acts, (4, 6, 1, 1, 1, 3))
        act()
        if self.rng.random() < 0.7:
            await self.shard.after(self.rng.choice([0.0, 0.3, 1.0, 7.0, 30.0]))

    def change(self) -> None:
        busy = [name for name in sorted(self.shard.states()) if self.shard.book.busy(name)]
        name = self.rng.choice([f"m-{self.rng.randrange(12)}", *busy])
        cluster = self.rng.choice(["c-1", "c-2"])
        price = self.rng.choice([0.25, 0.75])
        self.cloud.put(record(name, self.rng.choice(STATES), cluster, price_per_hour=price))

    def vanish(self) -> None:
        if self.cloud.machines:
            self.cloud.remove(self.rng.choice(sorted(self.cloud.machines)))

    def act(self) -> None:
        """An action that is answered at once, later, or never reaches the cloud."""
        book = self.shard.book
        choices = [
            (machine.id, to)
            for machine in book
            for to in MOVES
            if is_legal_move(machine.state, to) and not book.busy(machine.id)
        ]
        if not choices:
            return
        name, to = self.rng.choice(choices)
        assert book.mark_busy(name)
        book.start(name, to, "c-1" if to is S.CONFIGURING else "")
        asyncio.get_running_loop().call_later(
            self.rng.random() * 5, self.end_action, name, int(to), self.cloud.revisions.get(name, 0)
        )

    def end_action(self, name: str, to: int, revision: int) -> None:
        fate = self.rng.random()
        book, cloud = self.shard.book, self.cloud
        if fate < 0.5 and name in cloud.machines:
            cloud.put(record(name, to))
        elif fate < 0.8:
            if name in book:
                book.revert(name)
        else:
            # It seemed to go well, and the peer has not received it.
            self.unheard[name] = revision
        book.free(name)
        if 0.5 <= fate < 0.8:
            self.shard.lister.refresh(name)

    def refresh(self) -> None:
        self.shard.lister.refresh_all()

    def disturb(self) -> None:
        trouble = self.rng.choice(["error", "garbage", "slow", "no cursors", "bad"])
        cloud = self.cloud
        cloud.error = DOWN if trouble == "error" else None
        cloud.garbage = b"\xff\xff" if trouble == "garbage" else None
        cloud.seconds = 2.5 if trouble == "slow" else 0.0
        cloud.has_cursors = trouble != "no cursors"
        if trouble == "bad" and cloud.machines:
            name = self.rng.choice(sorted(cloud.machines))
            cloud.put(record(name, IDLE, price_per_hour=-1.0))

    def calm(self) -> None:
        cloud = self.cloud
        cloud.error = cloud.garbage = None
        cloud.seconds, cloud.has_cursors = 0.0, True


async def play(seed: int, steps: int) -> None:
    rng, cloud = Random(seed), Cloud()
    cloud.echoes_head = rng.random() < 0.3
    async with shard_of(cloud, page=rng.choice([3, 5, 20_000])) as shard:
        story = Story(cloud, shard, rng)
        for number in range(12):
            cloud.put(record(f"m-{number}", rng.choice((SPECULATIVE, IDLE, CONFIGURED))))
        await shard.after(1)
        for _ in range(steps):
            await story.step()
        story.calm()
        for name, machine in list(cloud.machines.items()):
            if machine.price_per_hour < 0:
                cloud.put(record(name, IDLE))
        await shard.after(60)
        there = {
            m.id: m.state
            for m in cloud.machines.values()
            if cloud.revisions[m.id] != story.unheard.get(m.id)
        }
        assert there.items() <= shard.states().items()
        shard.lister.refresh_all()
        await shard.after(60)
        assert shard.states() == {m.id: m.state for m in cloud.machines.values()}
        for machine in cloud.machines.values():
            known = shard.known(machine.id)
            assert known.cluster == machine.cluster
            assert known.price_per_hour == machine.price_per_hour
        feed = shard.lister._feeds["cloud"]
        assert not feed.unresolved
        assert not feed.recheck
        assert feed.in_flight == {m.id for m in shard.book if m.state in (*MOVES, S.DRAINING)}


@settings(max_examples=100)
@given(st.integers(0, 2**32), st.integers(1, 30))
def test_the_book_converges_to_what_the_provider_says(seed: int, steps: int) -> None:
    virtual_loop(seed).run(play(seed, steps))
