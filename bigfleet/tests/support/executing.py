"""A small world for those who execute orders: one provider, some clusters, a journal, counters.

Everything is in memory and on the virtual loop's time. The provider keeps to the contract as far as
a shard can see it: acks show the machine, a machine that was taken on is finished at once or when a
test says so, and what a test tells it to refuse it refuses.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import grpc

from bigfleet.model import (
    HostRef,
    Machine,
    MachineState,
    Profile,
)
from bigfleet.model.columns import Symbols
from bigfleet.provider import CallError, ProviderClient, Providers, ProviderSite
from bigfleet.shard.act.actions import ActionContext
from bigfleet.shard.act.audit_log import AuditLog
from bigfleet.shard.act.executor import EnqueueResult, Executor, PoolSettings
from bigfleet.shard.machines.book import Book
from bigfleet.shard.machines.orders import Order
from bigfleet.shard.operators.errors import NoSessionError
from bigfleet.shard.operators.messages import Blob, Instruction
from bigfleet.shard.state.journal import Journal, JournalEntry
from bigfleet.wire.fencing import FencingStamps
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from coordinating import DictDisk, inline
from executing_values import S, machine, record_of
from sim.loop import virtual_loop
from sim.ports import SimClock

T = TypeVar("T")
_MOVES = {"Create": (2, 3), "Configure": (4, 5), "Drain": (6, 3), "Delete": (7, 1)}


def run(main: Callable[[], Coroutine[Any, Any, T]], seed: int = 0) -> T:
    """Run a test's coroutine on virtual time."""
    return virtual_loop(seed).run(main())


async def until(condition: Callable[[], bool], seconds: float = 3600.0) -> None:
    """Let time pass until something is so."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - time is virtual
            await asyncio.sleep(0.05)


async def passes(seconds: float) -> None:
    """Let virtual time pass."""
    await asyncio.sleep(seconds)


class Counted:
    """Metrics as lists and counters."""

    def __init__(self) -> None:
        self.passed: Counter[str] = Counter()
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.counts: Counter[str] = Counter()
        self.seconds: dict[str, list[float]] = {}
        self.suppressed: Counter[str] = Counter()
        self.dryrun: Counter[str] = Counter()
        self.queue = (0, 0)
        self.paused = False

    def action_passed(self, kind: str) -> None:
        self.passed[kind] += 1

    def action_ended(self, kind: str, outcome: str) -> None:
        self.outcomes[kind, str(outcome)] += 1

    def actions_deferred(self, count: int) -> None:
        self.counts["deferred"] += count

    def actions_dropped(self, count: int) -> None:
        self.counts["dropped"] += count

    def actions_deduped(self, count: int) -> None:
        self.counts["deduped"] += count

    def action_queue(self, depth: int, inflight: int) -> None:
        self.queue = (depth, inflight)

    def reclaims_capped(self, count: int) -> None:
        self.counts["capped"] += count

    def idle_released(self) -> None:
        self.counts["released"] += 1

    def create_failed(self, reason: str) -> None:
        self.counts[f"create {reason}"] += 1

    def actions_suppressed(self, counts: Mapping[str, int]) -> None:
        self.suppressed.update(counts)

    def actions_dryrun(self, counts: Mapping[str, int]) -> None:
        self.dryrun.update(counts)

    def actuation_paused(self, paused: bool) -> None:
        self.paused = paused

    def machine_rejected(self, reason: str) -> None:
        self.counts[f"rejected {reason}"] += 1

    def bootstrap_received(self, seconds: float) -> None:
        self._note("bootstrap", seconds)

    def configure_accepted(self, seconds: float) -> None:
        self._note("configure", seconds)

    def created(self, seconds: float) -> None:
        self._note("create", seconds)

    def joined(self, seconds: float) -> None:
        self._note("join", seconds)

    def drained(self, seconds: float) -> None:
        self._note("drain", seconds)

    def _note(self, name: str, seconds: float) -> None:
        self.seconds.setdefault(name, []).append(seconds)


class Cloud:
    """The provider: machines, how long calls take, and what is refused. A Transport."""

    def __init__(self) -> None:
        self.machines: dict[str, pb.Machine] = {}
        self.calls: list[tuple[str, str]] = []
        self.requests: list[object] = []
        self.refuse: dict[str, CallError] = {}
        self.swallow: dict[str, CallError] = {}
        """Methods that are done and answered with an error all the same."""
        self.finishes = True
        self.latency = 0.0
        self.under_way: Counter[str] = Counter()
        self.most_under_way: Counter[str] = Counter()
        self.change: Callable[[str, pb.Machine], None] = lambda method, machine: None
        """A last word on the record an ack shows."""
        self.shown_by_get: Callable[[str], pb.Machine] = lambda machine_id: self.machines[
            machine_id
        ]

    async def create(self, request: pb.CreateRequest, seconds: float) -> pb.TransitionAck:
        return await self._mutate("Create", request.machine_id, request)

    async def configure(self, request: pb.ConfigureRequest, seconds: float) -> pb.TransitionAck:
        return await self._mutate("Configure", request.machine_id, request)

    async def drain(self, request: pb.DrainRequest, seconds: float) -> pb.TransitionAck:
        return await self._mutate("Drain", request.machine_id, request)

    async def delete(self, request: pb.DeleteRequest, seconds: float) -> pb.TransitionAck:
        return await self._mutate("Delete", request.machine_id, request)

    async def get(self, request: pb.MachineRef, seconds: float) -> pb.Machine:
        self._answer("Get", request.id)
        return self.shown_by_get(request.id)

    async def list(self, request: pb.ListFilter, seconds: float) -> pb.MachineList:
        return pb.MachineList(machines=self.machines.values())

    async def close(self) -> None:
        return None

    def calls_of(self, method: str) -> Sequence[str]:
        """The machines a method was called for."""
        return [machine for called, machine in self.calls if called == method]

    def finish(self, machine_id: str, failed: str = "") -> None:
        """The transition of a machine ends."""
        machine = self.machines[machine_id]
        if failed:
            machine.state, machine.last_error = pb.MACHINE_STATE_FAILED, failed
            return
        machine.state = {2: 3, 4: 5, 6: 3, 7: 1}[machine.state]  # type: ignore[assignment]
        self._tidy(machine)

    async def _mutate(self, method: str, machine_id: str, request: object) -> pb.TransitionAck:
        self.under_way[machine_id] += 1
        self.most_under_way[machine_id] = max(
            self.most_under_way[machine_id], self.under_way[machine_id]
        )
        try:
            if self.latency:
                await asyncio.sleep(self.latency)
            self.requests.append(request)
            self._answer(method, machine_id)
            machine = self.machines[machine_id]
            machine.state = _MOVES[method][self.finishes]  # type: ignore[assignment]
            if isinstance(request, pb.ConfigureRequest):
                machine.cluster = request.cluster_id
                machine.shard_metadata.update(request.shard_metadata)
            self._tidy(machine)
            if method in self.swallow:
                raise self.swallow[method]
            shown = pb.Machine()
            shown.CopyFrom(machine)
            self.change(method, shown)
            return pb.TransitionAck(operation_id="op", machine=shown)
        finally:
            self.under_way[machine_id] -= 1

    def _answer(self, method: str, machine_id: str) -> None:
        self.calls.append((method, machine_id))
        if method in self.refuse:
            raise self.refuse[method]
        if machine_id not in self.machines:
            raise CallError(grpc.StatusCode.NOT_FOUND, "no such machine")

    def _tidy(self, machine: pb.Machine) -> None:
        if machine.state == pb.MACHINE_STATE_SPECULATIVE:
            machine.ClearField("host")
        elif not machine.host.ref:
            machine.host.provider, machine.host.ref = "p", f"h-{machine.id}"
        if machine.state == pb.MACHINE_STATE_IDLE:
            machine.ClearField("cluster")
            machine.ClearField("shard_metadata")


class Operators:
    """The clusters' side of sessions."""

    def __init__(self, clock: SimClock) -> None:
        self._clock = clock
        self.connected = {"c-1", "c-2"}
        self.asked: list[str] = []
        self.instructions: list[tuple[str, Instruction]] = []
        self.error: Exception | None = None
        self.latency = 0.0
        self.lives: list[float] = []
        """Seconds the next blobs can be used; without one a blob has no end."""

    async def bootstrap(
        self, cluster: str, profile: Profile, machine: Machine, seconds: float
    ) -> Blob:
        self.asked.append(machine.id)
        if cluster not in self.connected:
            raise NoSessionError(f"cluster {cluster!r} has no session")
        async with asyncio.timeout(seconds):
            if self.latency:
                await asyncio.sleep(self.latency)
        if self.error is not None:
            raise self.error
        life = self.lives.pop(0) if self.lives else None
        expires = 0 if life is None else self._clock.now() + int(life * 1e9)
        return Blob(f"join {cluster} {len(self.asked)}".encode(), expires)

    def send_reclaim(self, cluster: str, instruction: Instruction) -> bool:
        if cluster not in self.connected:
            return False
        self.instructions.append((cluster, instruction))
        return True


class MemoryJournal(Journal):
    """A journal without a disk."""

    def __init__(self) -> None:
        super().__init__(DictDisk(), inline)
        self.entries: dict[str, JournalEntry] = {}
        self.writes: list[tuple[str, str]] = []
        self.full = False

    async def remember(self, machine_id: str, entry: JournalEntry) -> None:
        await asyncio.sleep(0)
        self._check()
        self.entries[machine_id] = entry
        self.writes.append(("remember", machine_id))

    async def forget(self, machine_id: str) -> None:
        await asyncio.sleep(0)
        self._check()
        self.entries.pop(machine_id, None)
        self.writes.append(("forget", machine_id))

    def _check(self) -> None:
        if self.full:
            raise OSError(28, "No space left on device")


class World:
    """An executor and everything around it; `async with` it to let it work."""

    def __init__(
        self,
        *,
        settings: PoolSettings | None = None,
        seed: int = 1,
        audit: AuditLog | None = None,
        journal: Journal | None = None,
        cloud: Cloud | None = None,
        site: ProviderSite | None = None,
        epoch: int = 7,
    ) -> None:
        """With a `site` its provider is dialled; otherwise it is the cloud in memory."""
        self.clock = SimClock()
        self.book = Book(Symbols(), self.clock)
        self.metrics = Counted()
        self.cloud = cloud or Cloud()
        self.operators = Operators(self.clock)
        self.memory = MemoryJournal()
        self.journal = journal or self.memory
        self.refreshed: list[str] = []
        self.names: dict[str, str] = {}
        self.woken = 0
        self.may_act = True
        stamps = FencingStamps("shard-a", epoch)
        self.providers = Providers(
            lambda where: (
                ProviderClient(where, stamps, self.cloud)
                if site is None
                else ProviderClient.dial(where, stamps)
            )
        )
        self._site = site or ProviderSite("p", "in-memory:1")
        means = ActionContext(
            book=self.book,
            providers=self.providers,
            sessions=self.operators,
            lister=self,
            clock=self.clock,
            chance=random.Random(seed),
            metrics=self.metrics,
            node_name=lambda machine_id: self.names.get(machine_id, ""),
            wake=self._wake,
        )
        self.executor = Executor(
            means,
            self.journal,
            epoch=epoch,
            may_act=lambda: self.may_act,
            settings=settings,
            audit=audit,
        )
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> World:
        await self.providers.use([self._site])
        begun = asyncio.Event()

        async def work() -> None:
            begun.set()
            await self.executor.run()

        # A task that is cancelled before its first step ends nothing: see that it has begun.
        self._task = asyncio.get_running_loop().create_task(work())
        await begun.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.result()
        await self.providers.close()

    # -- what the rest of a shard does -----------------------------------------------------------

    def refresh(self, machine_id: str) -> None:
        self.refreshed.append(machine_id)

    def _wake(self) -> None:
        self.woken += 1

    def add(self, *machines: Machine) -> None:
        """Machines that the provider lists and the shard has seen."""
        for each in machines:
            self.cloud.machines[each.id] = record_of(each)
            self.book.take(each)

    def observe(self, machine_id: str) -> None:
        """A List came: what it says of a machine."""
        record = self.cloud.machines[machine_id]
        known = self.book.get(machine_id)
        assert known is not None
        state = S(record.state)
        host = HostRef("p", record.host.ref) if record.host.ref else None
        seen = machine(machine_id, state, cluster=record.cluster, zone=known.zone)
        self.book.take(replace(seen, host=host, last_error=record.last_error))

    def hand_over(self, *orders: Order, cycle: int = 1) -> EnqueueResult:
        """What a cycle does with orders."""
        taken = self.executor.enqueue(orders, cycle)
        self.book.begin(taken.accepted)
        return taken

    async def settled(self) -> None:
        """Until nothing waits and nothing runs."""
        await until(lambda: not self.executor.depth and not self.executor.inflight)

    def state(self, machine_id: str) -> MachineState:
        return self.known(machine_id).state

    def known(self, machine_id: str) -> Machine:
        found = self.book.get(machine_id)
        assert found is not None
        return found

    def outcomes(self) -> dict[tuple[str, str], int]:
        return dict(self.metrics.outcomes)
