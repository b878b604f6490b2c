"""A provider under test with its imitated cloud, and one machine's life on it."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bigfleet_fakecloud.behaviour.faults import Effect, Moment, Rule
from bigfleet_fakecloud.cloud import Cloud
from bigfleet_fakecloud.state.collection import Resource
from bigfleet_providerkit import RunningProvider, State
from bigfleet_providerkit.testing import Shard

BLOB = b"join " * 20_000


@dataclass(frozen=True)
class Subject:
    """`hosts` are those that are billed now; `machine_of` reads a host's machine, as tagged."""

    running: RunningProvider[Any]
    shard: Shard
    cloud: Cloud
    hosts: Callable[[], Sequence[Resource]]
    machine_of: Callable[[Resource], str]

    def doubled(self) -> list[str]:
        """Machines that are billed for more than one host."""
        counts = Counter(self.machine_of(host) for host in self.hosts())
        return sorted(machine for machine, count in counts.items() if count > 1)

    def leaked(self) -> list[str]:
        """Hosts that are billed and belong to no record."""
        known = {record.host for record in self.running.backend.ledger.inventory}
        return sorted(host.ref for host in self.hosts() if host.ref not in known)


async def through_a_life(shard: Shard, seconds: float = 30.0) -> str:
    """One machine created, configured, drained and deleted; its id."""
    machine = (await shard.machines(State.SPECULATIVE))[0].id
    await shard.create(machine)
    await shard.until(machine, State.IDLE, seconds)
    await shard.configure(machine, "cluster-a", {"key": "value"}, blob=BLOB)
    await shard.until(machine, State.CONFIGURED, seconds)
    await shard.drain(machine)
    await shard.until(machine, State.IDLE, seconds)
    await shard.delete(machine)
    await shard.until(machine, State.SPECULATIVE, seconds)
    return machine


async def lost_answers(subject: Subject, op: str) -> None:
    """The call takes effect and its answer is lost: the life goes on, and buys no second host."""
    made: set[str] = set()
    watch = Rule("*", Moment.BEFORE, Effect.HOOK, times=None,
                 hook=lambda: made.update(host.ref for host in subject.hosts()))  # fmt: skip
    subject.cloud.faults.add(watch)
    number = subject.cloud.faults.add(Rule(op, Moment.AFTER, Effect.DROP))
    await through_a_life(subject.shard)
    assert subject.cloud.faults.fired(number) == 1, f"{op} was never called"
    assert len(made) == 1, f"hosts {sorted(made)} were bought for one machine"
    assert not subject.hosts(), "a host is still billed"
