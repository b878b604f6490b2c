"""A probe: one behaviour's view of one provider instance, in the words of the domain.

It hands out fresh machines, waits for states, looks whether something stays as it is, and gives
shard ids and random numbers that belong to this behaviour alone. It judges nothing by itself
beyond "did not get there in time".
"""

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.errors import CannotRunError, Finding, NoFreeSlotError, check
from bigfleet_conformance.harness.calls import Binding, Calls, Link
from bigfleet_conformance.harness.evidence import Evidence, short
from bigfleet_conformance.harness.oracles import FAILED, SPECULATIVE, TRANSITIONAL, word
from bigfleet_conformance.harness.walker import Walker
from bigfleet_conformance.harness.watch import Trace
from bigfleet_conformance.registry import Capability

if TYPE_CHECKING:
    from bigfleet_conformance.runner.workshop import Workshop

FAULT_LABEL = "conformance.fault/"
BURST = 16


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things may take, and how long the suite looks."""

    settle_s: float = 30.0
    poll_s: float = 0.02
    unchanged_s: float = 0.25
    soak_s: float = 10.0
    scale_seed: int = 8_000
    large_seed: int = 100_000
    substrate_s: float = 0.5
    loss_window_s: float = 30.0
    interrupted_s: float = 30.0
    few_rounds: bool = False


class SlotPool:
    """The SPECULATIVE machines of one instance that no behaviour has taken yet."""

    def __init__(self, machines: Sequence[pb.Machine]) -> None:
        plain = [
            machine.id
            for machine in machines
            if machine.state == SPECULATIVE
            and not any(label.startswith(FAULT_LABEL) for label in machine.labels)
        ]
        self.found = len(plain)
        self.size = len(machines)
        self.faulty = {
            value: [m.id for m in machines if m.labels.get(f"{FAULT_LABEL}create") == value]
            for value in ("error", "stockout")
        }
        self.taken: list[str] = []
        self._free = list(reversed(plain))

    def take(self) -> str:
        """One slot that no machine has touched."""
        if not self._free:
            raise NoFreeSlotError(len(self.taken))
        self.taken.append(self._free.pop())
        return self.taken[-1]

    def take_faulty(self, kind: str) -> str:
        """One slot whose launch fails on purpose."""
        if not self.faulty.get(kind):
            raise CannotRunError(f"no slot labelled {FAULT_LABEL}create={kind} is left")
        return self.faulty[kind].pop()


@dataclass(slots=True)
class Names:
    """Shard ids that no other run and no other behaviour uses."""

    prefix: str
    _counter: "itertools.count[int]" = field(default_factory=itertools.count)

    def next(self) -> str:
        """A new shard id."""
        return f"{self.prefix}-{next(self._counter)}"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a probe needs to know about the instance it looks at."""

    link: Link
    pool: SlotPool
    names: Names
    pace: Pace
    claims: frozenset[Capability]
    workshop: "Workshop"
    slow: bool = False
    mutual_tls: bool = False
    spot_demanded: bool = False
    owned: bool = False


class Probe(Calls):
    """See the module's head."""

    def __init__(self, setting: Setting, behaviour: str, seed: int, evidence: Evidence) -> None:
        super().__init__(setting.link, evidence)
        self.setting = setting
        self.behaviour = behaviour
        self.pace = setting.pace
        self.slow = setting.slow
        self.workshop = setting.workshop
        self.random = random.Random(f"{seed}/{behaviour}")
        self.seed = seed

    def claims(self, capability: Capability) -> bool:
        """Whether the provider offers something."""
        return capability in self.setting.claims

    @property
    def owned(self) -> bool:
        """Whether this is owned hardware, on which every valid Delete is UNIMPLEMENTED."""
        return self.setting.owned

    def shard(self) -> str:
        """A shard id that was not used before."""
        return self.setting.names.next()

    def slot(self) -> Walker:
        """A fresh SPECULATIVE machine."""
        return Walker(self, self.setting.pool.take(), self.shard())

    def faulty_slot(self, kind: str) -> Walker:
        """A fresh machine whose launch fails on purpose."""
        return Walker(self, self.setting.pool.take_faulty(kind), self.shard())

    def machine(self, id: str) -> Walker:
        """A machine that is known by its id."""
        return Walker(self, id, self.shard())

    async def idle(self) -> Walker:
        """A fresh machine, walked to IDLE."""
        walker = self.slot()
        await walker.create()
        return walker

    async def bound(self, binding: Binding | None = None) -> Walker:
        """A fresh machine, walked to CONFIGURED."""
        walker = await self.idle()
        await walker.configure(binding or self.binding())
        return walker

    def binding(self, cluster: str = "", **metadata: str) -> Binding:
        """A binding of this behaviour."""
        return Binding(cluster or f"cluster-{self.behaviour.lower()}", metadata or {"k": "v"})

    def watch(self, machine: str, every_s: float = 0.001) -> Trace:
        """Sample a machine for the length of a block."""
        return Trace(self, machine, every_s)

    async def until(
        self, machine: str, *states: int, within_s: float | None = None, why: str = ""
    ) -> pb.Machine:
        """Poll until the machine shows one of the states."""
        limit = self.pace.settle_s if within_s is None else within_s
        ends = time.monotonic() + limit
        while True:
            record = await self.see(machine)
            if record.state in states:
                return record
            goal = " or ".join(word(state) for state in states)
            if record.state == FAILED:
                raise Finding(
                    f"{short(machine)} became FAILED on the way to {goal}: {record.last_error!r}"
                )
            if time.monotonic() >= ends:
                because = f" ({why})" if why else ""
                raise Finding(
                    f"{short(machine)} is {word(record.state)} and did not reach {goal} within "
                    f"{limit:g} s{because}"
                )
            await asyncio.sleep(self.pace.poll_s)

    async def until_true(
        self, holds: Callable[[], Awaitable[bool]], within_s: float, what: str
    ) -> None:
        """Poll a condition."""
        ends = time.monotonic() + within_s
        while True:
            if await holds():
                return
            check(time.monotonic() < ends, f"{what} did not happen within {within_s:g} s")
            await asyncio.sleep(self.pace.poll_s)

    async def stays(self, machine: str, for_s: float | None = None) -> pb.Machine:
        """Look for a while that state, host, cluster and metadata do not change."""
        window = self.pace.unchanged_s if for_s is None else for_s
        first = await self.see(machine)
        ends = time.monotonic() + window
        while time.monotonic() < ends:
            now = await self.see(machine)
            check(
                now.state == first.state,
                f"{short(machine)} moved from {word(first.state)} to {word(now.state)} by itself",
            )
            check(
                now.host == first.host
                and now.cluster == first.cluster
                and now.shard_metadata == first.shard_metadata
                and now.last_error == first.last_error,
                f"{short(machine)} changed host, cluster, metadata or last_error while resting",
            )
            await asyncio.sleep(self.pace.poll_s)
        return first

    async def untouched(self, before: pb.Machine, for_s: float | None = None) -> None:
        """A refused call left everything as it was."""
        now = await self.stays(before.id, for_s)
        check(
            now.state == before.state
            and now.host == before.host
            and now.cluster == before.cluster
            and now.shard_metadata == before.shard_metadata,
            f"{short(before.id)} was {word(before.state)} and is {word(now.state)} with cluster "
            f"{now.cluster!r} after a call that was refused",
        )

    async def sweep(self) -> list[pb.Machine]:
        """Every machine there is; none at all is nothing to judge."""
        machines = list((await self.list()).machines)
        if not machines:
            raise CannotRunError("List shows no machine; there is nothing to sweep")
        return machines

    async def listed_once(self, machine: str) -> pb.Machine:
        """The one record of a machine in List."""
        found = [m for m in (await self.list()).machines if m.id == machine]
        check(len(found) == 1, f"{short(machine)} is in List {len(found)} times")
        return found[0]

    @asynccontextmanager
    async def background(self, work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        """Run something beside a block; a finding in it counts."""
        task = asyncio.ensure_future(work())
        try:
            yield
        finally:
            finished = task.done()
            task.cancel()
            result = (await asyncio.gather(task, return_exceptions=True))[0]
        if finished and isinstance(result, Exception):
            raise result


def is_clean(machine: pb.Machine) -> None:
    """At rest without a binding: no cluster, no metadata, no error."""
    check(not machine.cluster, f"{machine.id} still has cluster {machine.cluster!r}")
    left = len(machine.shard_metadata)
    check(not left, f"{machine.id} still has {left} metadata keys")
    check(not machine.last_error, f"{machine.id} is not FAILED and has {machine.last_error!r}")


def is_resting(machine: pb.Machine) -> None:
    """No transitional state."""
    check(
        machine.state not in TRANSITIONAL,
        f"{machine.id} shows {word(machine.state)} although it has settled",
    )
