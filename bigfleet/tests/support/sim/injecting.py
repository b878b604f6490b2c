"""What each kind of fault does to a running world, and how it ends.

A fault is a function that strikes and gives back what ends it, or nothing when it passes by itself.
When peace comes, whatever has not ended is ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Final

from bigfleet.model import CapacityType
from bigfleet.wire.machines import metadata_from_stamp
from bigfleet_lab.simcluster.behaviour import Behaviour
from bigfleet_lab.simcluster.cluster import SimCluster
from bigfleet_lab.simcluster.faults import Garbage
from sim.coordinators import NAME as COORDINATOR
from sim.coordinators import CoordinatorHost
from sim.faults import Fault, FaultKind
from sim.hosts import Host
from sim.network import Weather
from sim.provider import Habits, ModelProvider
from sim.slots import Kind, S, Slot

if TYPE_CHECKING:
    from sim.world import World

End = Callable[[], None] | None
K = FaultKind
_LIVE: Final = frozenset({S.IDLE, S.CONFIGURING, S.CONFIGURED, S.DRAINING})


class Injector:
    """Lets the faults of a plan happen."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = Random(f"faults-{world.plan.seed}")
        self._open: dict[int, Callable[[], None]] = {}

    async def run(self, faults: Iterable[Fault]) -> None:
        """All of them, each at its time."""
        loop = asyncio.get_running_loop()
        for number, fault in enumerate(faults):
            await asyncio.sleep(max(0.0, fault.at - loop.time()))
            self._world.trace.note("fault", str(fault))
            end = _STRIKES[fault.kind](self, fault)
            if end is not None:
                self._open[number] = end
                loop.call_later(fault.seconds, self._end, number)

    def peace(self) -> None:
        """Everything ends that has not."""
        for number in list(self._open):
            self._end(number)
        self._world.network.repair_all()

    def _end(self, number: int) -> None:
        end = self._open.pop(number, None)
        if end is not None:
            self._world.trace.note("fault", f"{number} ends")
            end()

    # -- network ---------------------------------------------------------------------------------

    def network_storm(self, fault: Fault) -> End:
        """Loss, stragglers, duplicates, resets."""
        network, share = self._world.network, 0.02 + 0.3 * fault.strength
        network.weather = Weather(
            delay=0.2 * fault.strength,
            lost_request=share / 2,
            lost_answer=share / 2,
            duplicate=share / 2,
            straggler=share / 4,
            reset=share / 30,
        )

        def end() -> None:
            network.weather = Weather()

        return end

    def cut_provider(self, fault: Fault) -> End:
        """Nothing passes between a shard and a provider."""
        return self._cut(self._host(fault).name, fault.target)

    def cut_cluster(self, fault: Fault) -> End:
        """Nothing passes between a cluster and its shard."""
        return self._cut(self._world.host_of(fault.target).name, fault.target)

    def cut_coordinator(self, fault: Fault) -> End:
        """Nothing passes between a shard and the coordinator."""
        return self._cut(self._host(fault).name, COORDINATOR)

    def _cut(self, one: str, other: str) -> End:
        network = self._world.network
        network.cut(one, other)
        return lambda: network.repair(one, other)

    def break_streams(self, fault: Fault) -> End:
        """Sessions break: one, or all."""
        shard = self._world.host_of(fault.target).name
        one = fault.target if fault.strength < 0.7 else shard
        self._world.board.break_streams(one)
        return None

    # -- the shard -------------------------------------------------------------------------------

    def shard_crash(self, fault: Fault) -> End:
        """At any step."""
        self._host(fault).life.process.crash_after(1 + int(fault.strength * 3000))
        return None

    def shard_crash_at_commit(self, fault: Fault) -> End:
        """Right when a provider accepts one of its next mutations."""
        self._host(fault).crash_at_mutation(1 + int(fault.strength * 5))
        return None

    def shard_crash_at_write(self, fault: Fault) -> End:
        """Around one of its next writes."""
        self._host(fault).crash_at_write(1 + int(fault.strength * 5))
        return None

    def shard_pause(self, fault: Fault) -> End:
        """It stands still; its peers do not."""
        process = self._host(fault).life.process
        process.pause()
        return lambda: self._world.loop.resume(process)

    def shard_zombie(self, fault: Fault) -> End:
        """It stands still, is replaced, and wakes up."""
        return self._host(fault).replace()

    def shard_loses_disk(self, fault: Fault) -> End:
        """It dies and its volume is gone, and with it for whom machines count since Configure."""
        host, world = self._host(fault), self._world
        for provider in world.providers.values():
            for slot in provider.slots.values():
                known = host.life.book.get(slot.id)
                stamp = None if known is None else known.stamp
                if slot.cluster and stamp and metadata_from_stamp(stamp) != slot.metadata:
                    world.monitor.excuse(slot.cluster, world.loop.time())
        host.life.process.crash()
        host.disk.lose()
        return None

    def disk_full(self, fault: Fault) -> End:
        """No write succeeds."""
        disk = self._host(fault).disk
        disk.full = True

        def end() -> None:
            disk.full = False

        return end

    def clock_jump(self, fault: Fault) -> End:
        """A person sets the shard's clock."""
        self._host(fault).clock.jump((fault.strength - 0.5) * 240.0)
        return None

    # -- the coordinator -------------------------------------------------------------------------

    def coordinator_crash(self, fault: Fault) -> End:
        """At any step."""
        self._coordinator.process.crash_after(1 + int(fault.strength * 200))
        return None

    def coordinator_away(self, fault: Fault) -> End:
        """It dies and does not come back for a while."""
        self._coordinator.go_away()
        return self._coordinator.peace

    def coordinator_zombie(self, fault: Fault) -> End:
        """It stands still, another one leads, and it wakes up."""
        if not self._coordinator.process.alive:
            return None
        old = self._coordinator.replace()

        def end() -> None:
            self._world.loop.resume(old)
            self._world.later(20.0, old.crash)

        return end

    def store_away(self, fault: Fault) -> End:
        """Writes fail, and some of them are there all the same."""
        shelf = self._coordinator.shelf
        shelf.is_away = True

        def end() -> None:
            shelf.is_away = False

        return end

    @property
    def _coordinator(self) -> CoordinatorHost:
        assert self._world.coordinator is not None
        return self._world.coordinator

    # -- providers -------------------------------------------------------------------------------

    def provider_restart(self, fault: Fault) -> End:
        """It is away for a while, in the middle of things."""
        provider = self._provider(fault)
        if not provider.up:
            return None
        provider.stop()
        return provider.start

    def provider_slow(self, fault: Fault) -> End:
        """Transitions take much longer."""
        factor = 2.0 + 6.0 * fault.strength
        slow = {kind: (least * factor, most * factor) for kind, (least, most) in _USUAL.items()}
        return self._habits(fault, seconds=slow)

    def provider_failing(self, fault: Fault) -> End:
        """Transitions end in Failed."""
        return self._habits(fault, failing=dict.fromkeys(Kind, 0.5 * fault.strength))

    def stock_out(self, fault: Fault) -> End:
        """Some offerings cannot be had."""
        provider = self._provider(fault)
        pools = sorted({slot.offer.pool for slot in provider.slots.values()})
        out = {pool for pool in pools if self._rng.random() < 0.2 + 0.6 * fault.strength}
        return self._habits(fault, out_of_stock=out)

    def quota(self, fault: Fault) -> End:
        """The account allows no more."""
        word = self._rng.choice(("QuotaExceeded", "Throttled", "Unauthorized"))
        return self._habits(fault, refused_create=word)

    def short_list(self, fault: Fault) -> End:
        """A full List lacks most machines."""
        self._world.monitor.lied_to(fault.at + fault.seconds)
        return self._habits(fault, listed=0.7 * fault.strength)

    def garbage_list(self, fault: Fault) -> End:
        """Lists hold records that cannot be used."""
        self._world.monitor.lied_to(fault.at + fault.seconds)
        return self._habits(fault, garbage="price" if fault.strength < 0.5 else "state")

    def price_jump(self, fault: Fault) -> End:
        """Prices move."""
        for slot in list(self._provider(fault).slots.values()):
            if slot.price and self._rng.random() < fault.strength:
                factor = self._rng.choice((0.5, 2.0, 5.0))
                self._provider(fault).reprice(slot, round(slot.offer.price * factor, 4))
        return None

    def retired_slots(self, fault: Fault) -> End:
        """Slots that no need uses leave the offerings."""
        provider = self._provider(fault)
        for slot in list(provider.slots.values()):
            if slot.state is S.SPECULATIVE and self._rng.random() < 0.2 * fault.strength:
                provider.retire(slot)
        return None

    def host_loss(self, fault: Fault) -> End:
        """One host dies."""
        self._lose(self._provider(fault), 1)
        return None

    def rack_loss(self, fault: Fault) -> End:
        """All hosts of a rack die within a few seconds."""
        provider = self._provider(fault)
        racks = sorted({slot.offer.rack for slot in provider.slots.values()})
        rack = self._rng.choice(racks)
        for slot in list(provider.slots.values()):
            if slot.offer.rack == rack and slot.state in _LIVE:
                self._world.later(self._rng.uniform(0.0, 5.0), _Losing(provider, slot))
        return None

    def spot_notice(self, fault: Fault) -> End:
        """Spot hosts are given two minutes."""
        provider = self._provider(fault)
        for slot in list(provider.slots.values()):
            if slot.offer.capacity_type is CapacityType.SPOT and self._rng.random() < 0.4:
                seconds = 120.0
                provider.announce_end(slot, self._world.true_clock.in_seconds(seconds), seconds)
        return None

    # -- clusters --------------------------------------------------------------------------------

    def bootstrap_errors(self, fault: Fault) -> End:
        """The operator cannot render bootstrap data, or takes forever."""
        if fault.strength < 0.5:
            return self._behave(fault, bootstrap_error_rate=1.0)
        slow = replace(self._cluster(fault).behaviour.bootstrap_seconds, most=60.0)
        return self._behave(fault, bootstrap_seconds=slow)

    def silent_cluster(self, fault: Fault) -> End:
        """The session stays open and nothing is said."""
        operator = self._world.operators[fault.target]
        operator.cluster.faults.silent = True

        def end() -> None:
            operator.cluster.faults.heal()
            if operator.session is not None:
                operator.session.wake()

        return end

    def slow_reader(self, fault: Fault) -> End:
        """Nothing is read any more."""
        faults = self._cluster(fault).faults
        faults.stop_reading()
        return faults.heal

    def garbage_frames(self, fault: Fault) -> End:
        """Frames that mean nothing."""
        session = self._world.operators[fault.target].session
        if session is not None:
            for kind in self._rng.sample(list(Garbage), 3):
                session.send_garbage(kind)
        return None

    def empty_rollup(self, fault: Fault) -> End:
        """The operator loses its demand and finds it again."""
        workload = self._cluster(fault).workload
        before = {name: workload.replicas(name) for name in workload.names}
        for name in workload.names:
            workload.scale(name, 0)

        def end() -> None:
            for name, count in before.items():
                if name in workload:
                    workload.scale(name, count)

        return end

    def second_operator(self, fault: Fault) -> End:
        """Another client calls with this cluster's id, says Hello and nothing more."""
        return self._world.impostor(fault.target)

    def node_loss(self, fault: Fault) -> End:
        """Kubelets die; the hosts do not."""
        cluster = self._cluster(fault)
        nodes = sorted(node.machine_id for node in cluster.nodes if node.ready)
        for machine in self._rng.sample(nodes, min(len(nodes), 1 + int(3 * fault.strength))):
            cluster.lose_node(machine)
        # What replaces them makes them surplus, after the deadline for readiness.
        now = self._world.loop.time()
        self._world.monitor.excuse(cluster.id, now)
        self._world.await_phantoms()
        return None

    # -- helpers ---------------------------------------------------------------------------------

    def _host(self, fault: Fault) -> Host:
        return self._world.host(fault.shard)

    def _provider(self, fault: Fault) -> ModelProvider:
        return self._world.providers[fault.target]

    def _cluster(self, fault: Fault) -> SimCluster:
        return self._world.operators[fault.target].cluster

    def _habits(self, fault: Fault, **changes: object) -> End:
        provider = self._provider(fault)
        usual = Habits()
        provider.habits = replace(provider.habits, **changes)  # type: ignore[arg-type]

        def end() -> None:
            back = {name: getattr(usual, name) for name in changes}
            provider.habits = replace(provider.habits, **back)

        return end

    def _behave(self, fault: Fault, **changes: object) -> End:
        cluster = self._cluster(fault)
        before: Behaviour = cluster.behaviour
        cluster.set_behaviour(**changes)
        back = {name: getattr(before, name) for name in changes}
        return lambda: cluster.set_behaviour(**back)

    def _lose(self, provider: ModelProvider, count: int) -> None:
        live = [slot for slot in provider.slots.values() if slot.state in _LIVE]
        for slot in self._rng.sample(live, min(count, len(live))):
            provider.lose_host(slot)


class _Losing:
    """A host that will die."""

    def __init__(self, provider: ModelProvider, slot: Slot) -> None:
        self._provider, self._slot = provider, slot

    def __call__(self) -> None:
        if self._slot.id in self._provider.slots:
            self._provider.lose_host(self._slot)


_USUAL: Final = Habits().seconds
_I = Injector
_STRIKES: Final[dict[FaultKind, Callable[[Injector, Fault], End]]] = {
    K.NETWORK_STORM: _I.network_storm,
    K.CUT_PROVIDER: _I.cut_provider,
    K.CUT_CLUSTER: _I.cut_cluster,
    K.BREAK_STREAMS: _I.break_streams,
    K.SHARD_CRASH: _I.shard_crash,
    K.SHARD_CRASH_AT_COMMIT: _I.shard_crash_at_commit,
    K.SHARD_CRASH_AT_WRITE: _I.shard_crash_at_write,
    K.SHARD_PAUSE: _I.shard_pause,
    K.SHARD_ZOMBIE: _I.shard_zombie,
    K.SHARD_LOSES_DISK: _I.shard_loses_disk,
    K.DISK_FULL: _I.disk_full,
    K.CLOCK_JUMP: _I.clock_jump,
    K.PROVIDER_RESTART: _I.provider_restart,
    K.PROVIDER_SLOW: _I.provider_slow,
    K.PROVIDER_FAILING: _I.provider_failing,
    K.STOCK_OUT: _I.stock_out,
    K.QUOTA: _I.quota,
    K.SHORT_LIST: _I.short_list,
    K.GARBAGE_LIST: _I.garbage_list,
    K.PRICE_JUMP: _I.price_jump,
    K.RETIRED_SLOTS: _I.retired_slots,
    K.HOST_LOSS: _I.host_loss,
    K.RACK_LOSS: _I.rack_loss,
    K.SPOT_NOTICE: _I.spot_notice,
    K.BOOTSTRAP_ERRORS: _I.bootstrap_errors,
    K.SILENT_CLUSTER: _I.silent_cluster,
    K.SLOW_READER: _I.slow_reader,
    K.GARBAGE_FRAMES: _I.garbage_frames,
    K.EMPTY_ROLLUP: _I.empty_rollup,
    K.SECOND_OPERATOR: _I.second_operator,
    K.NODE_LOSS: _I.node_loss,
    K.COORDINATOR_CRASH: _I.coordinator_crash,
    K.COORDINATOR_AWAY: _I.coordinator_away,
    K.COORDINATOR_ZOMBIE: _I.coordinator_zombie,
    K.CUT_COORDINATOR: _I.cut_coordinator,
    K.STORE_AWAY: _I.store_away,
}
