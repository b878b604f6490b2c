"""What must hold once it has been quiet for a while: the fleet against the truth.

    L1   every row is met, or unmet with a reason that the fleet bears out
    L2   the shard's machines are the providers'; every cluster has its session and knows its nodes
    S9   no row is unmet while a lower one holds a machine that would serve it
    S10  a gang is in one place
    S11  a cluster whose rows are all met has machines enough for all of them
    S14  every machine has one owner, no move between shards is under way and no shard holds one

The truth is the models': providers for machines, clusters for demand. With several shards, each is
held against the machines that are its own and the clusters that call it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bigfleet.model import LABEL_CAPACITY_TYPE, LABEL_INSTANCE_TYPE, LABEL_ZONE, Resources
from bigfleet.model.amounts.penalty import PenaltyBucket
from bigfleet_lab.simcluster.rollup import row_key
from bigfleet_lab.simcluster.workload import WorkObject
from plain_rules import matchable_labels
from sim.handle import RowKey
from sim.hosts import Host
from sim.provider import TRANSITION_SECONDS
from sim.slots import KIND_OF, S, Slot
from sim.world import World

JUST_NOW: Final = 20.0
"""Seconds in which a shard may not have seen a change yet."""
WORKERS: Final = 100
TASKS_PER_CLUSTER: Final = 6
"""What a shard needs for its actions and providers, and for a session."""
OUTAGE_LEAST: Final = 3
OUTAGE_SHARE: Final = 0.3
REST: Final = 60.0
"""Seconds without an order after which nothing more is expected."""
_GI: Final = 1024**3 * 1000
_REASONS: Final = frozenset(
    {
        *("PRIORITY_STARVED", "NO_MATCHING_SUPPLY", "TOPOLOGY_UNSATISFIABLE"),
        *("PREEMPTION_EXHAUSTED", "QUOTA", "SPEND_LIMIT", "STOCK_OUT", "BOOTSTRAP_ERROR"),
    }
)
_HELD_BACK: Final = frozenset({"QUOTA", "SPEND_LIMIT", "STOCK_OUT", "BOOTSTRAP_ERROR"})


def unsettled(world: World) -> tuple[str, str] | None:
    """The first thing that does not hold in a world that should have come to rest."""
    for complaint in _moves(world):
        return "S14", complaint
    for host in world.hosts.values():
        if (found := Settled(world, host).complaint()) is not None:
            return found
    return None


def _moves(world: World) -> Iterator[str]:
    """Moves between shards that have not ended, and what became of the machines."""
    if world.coordinator is None:
        return
    for move in world.coordinator.stored_moves():
        if not move.phase.is_over:
            yield f"move {move.id} is {move.phase.value} for {move.tries} tries: {move.reason}"
    for name, host in world.hosts.items():
        for held in world.owners.of(host).transfers:
            yield f"{name} still holds move {held.move_id} as {held.role.value}"
    for provider in world.providers.values():
        for slot in provider.slots.values():
            machine = world.owners.machine(slot, provider.name)
            owners = [n for n, h in world.hosts.items() if world.owners.of(h).owns(machine)]
            if len(owners) != 1:
                yield f"{slot.id} is owned by {owners}"


class Settled:
    """A shard that should have come to rest."""

    def __init__(self, world: World, host: Host) -> None:
        self._world = world
        self._shard = host.life
        owner = world.owners.of(host)
        self._all = {
            slot.id: slot
            for provider in world.providers.values()
            for slot in provider.slots.values()
        }
        self._slots = {
            slot.id: slot
            for provider in world.providers.values()
            for slot in provider.slots.values()
            if owner.owns(world.owners.machine(slot, provider.name))
        }
        self._operators = {
            name: operator
            for name, operator in world.operators.items()
            if world.host_of(name) is host
        }
        self._verdicts = self._shard.verdicts()

    def complaint(self) -> tuple[str, str] | None:
        """The first thing that does not hold: its name, and what is wrong."""
        for name, complaints in (
            ("L2", self._inventory()),
            ("L2", self._sessions()),
            ("L2", self._nodes()),
            ("L2", self._phantoms()),
            ("L1", self._demand()),
            ("L1", self._rows()),
            ("L4", self._tasks()),
            ("L1", self._transitions()),
            ("S9", self._order()),
            ("S10", self._gangs()),
            ("S11", self._amounts()),
            ("L3", self._rest()),
        ):
            for complaint in complaints:
                return name, complaint
        return None

    # -- L2 --------------------------------------------------------------------------------------

    def _inventory(self) -> Iterator[str]:
        book, now = self._shard.book, self._world.loop.time()
        for slot in self._slots.values():
            known = book.get(slot.id)
            if now - slot.changed_at < JUST_NOW or book.busy(slot.id):
                continue
            truth = f"{slot.state.title} {slot.cluster}"
            seen = "unknown" if known is None else f"{known.state.title} {known.cluster}"
            if truth != seen:
                yield f"{slot.id} is {truth!r} since {slot.changed_at:.1f}, the shard says {seen!r}"
        for name in self._world.providers:
            for machine in book.ids_of_provider(name):
                if machine not in self._slots:
                    yield f"{machine} is not its own, and {self._shard.process.name} believes it is"

    def _sessions(self) -> Iterator[str]:
        for name, operator in self._operators.items():
            if not operator.connected or not self._shard.connected(name):
                yield f"{name} has no session: {operator.last_end}"
        if self._shard.waiting():
            yield f"{self._shard.waiting()} actions are still waiting"

    def _nodes(self) -> Iterator[str]:
        now = self._world.loop.time()
        for name, operator in self._operators.items():
            nodes = {node.machine_id: node for node in operator.cluster.nodes}
            for slot in self._all.values():
                if now - slot.changed_at < JUST_NOW:
                    continue
                node = nodes.get(slot.id)
                bound = slot.cluster == name and slot.state is S.CONFIGURED
                if bound and (node is None or not node.exists):
                    yield f"{name} was not told of its machine {slot.id}"
                moving = slot.cluster == name and slot.state in KIND_OF
                if not bound and not moving and node is not None and node.exists:
                    yield f"{name} believes in {slot.id}, which is {slot.state.title}"

    def _phantoms(self) -> Iterator[str]:
        """Nodes that died are replaced, unless so many did that it is the cluster's own outage.

        Where something is unmet there may be nothing to replace them with, and an older operator
        says nothing of its nodes.
        """
        if self._world.loop.time() < self._world.phantoms_until:
            yield "a node died, and its machine still counts"
        lacking = {key[0] for key, verdict in self._verdicts.items() if not verdict.satisfied}
        for name, operator in self._operators.items():
            if name in lacking or not operator.cluster.behaviour.knows_additions:
                continue
            there = [node for node in operator.cluster.nodes if node.exists]
            dead = [node for node in there if not node.ready]
            is_outage = len(dead) >= OUTAGE_LEAST and len(dead) > OUTAGE_SHARE * len(there)
            if dead and not is_outage:
                yield f"{dead[0].machine_id} is not a Ready node of {name}, and still its machine"

    # -- L1 --------------------------------------------------------------------------------------

    def _rows(self) -> Iterator[str]:
        for key, what in self._demanded():
            verdict = self._verdicts.get(key)
            if verdict is None:
                yield f"nothing is said of {what.name} of {key[0]}"
            elif not verdict.satisfied and verdict.reason not in _REASONS:
                yield f"{what.name} of {key[0]} is unmet for the reason {verdict.reason!r}"

    def _demand(self) -> Iterator[str]:
        """What was acknowledged last is what counts."""
        wanted: dict[RowKey, dict[str, int]] = {}
        for key, what in self._demanded():
            count = self._operators[key[0]].cluster.workload.replicas(what.name)
            row = wanted.setdefault(key, {})
            for resource, amount in what.request.items():
                row[resource] = row.get(resource, 0) + amount * count
        for name in self._operators:
            known = self._shard.demanded(name)
            mine = {key: amounts for key, amounts in wanted.items() if key[0] == name}
            if {key: dict(amounts) for key, amounts in known.items()} != mine:
                yield f"the shard believes in other demand of {name} than it has"

    def _tasks(self) -> Iterator[str]:
        left = self._shard.process.unfinished()
        most = WORKERS + TASKS_PER_CLUSTER * len(self._operators)
        if len(left) > most:
            yield f"{len(left)} tasks live in {self._shard.process.name}, where {most} would do"

    def _transitions(self) -> Iterator[str]:
        now = self._world.loop.time()
        for slot in self._slots.values():
            if slot.state in KIND_OF and now - slot.changed_at > TRANSITION_SECONDS:
                yield f"{slot.id} is {slot.state.title} since {slot.changed_at:.1f}"

    # -- S9 to S11 -------------------------------------------------------------------------------

    def _order(self) -> Iterator[str]:
        """Plain rows only: what a gang or a spread row could use depends on the others it has."""
        for key, what in self._demanded():
            verdict = self._verdicts[key]
            if verdict.satisfied or what.group or what.profile.spread:
                continue
            if verdict.reason in _HELD_BACK:
                continue
            for slot in self._slots.values():
                if self._could_take(what, slot) and self._fits(what, slot):
                    told = f"{slot.id} ({slot.state.title} {slot.cluster})"
                    yield f"{what.name} of {key[0]} is unmet ({verdict.reason}) beside {told}"

    def _could_take(self, what: WorkObject, slot: Slot) -> bool:
        known = self._shard.book.get(slot.id)
        if known is None or self._world.loop.time() - slot.changed_at < 60.0:
            return False
        if slot.state in (S.IDLE, S.SPECULATIVE):
            return known.stamp is None
        return False

    def _fits(self, what: WorkObject, slot: Slot) -> bool:
        labels = {
            **slot.offer.labels,
            LABEL_INSTANCE_TYPE: slot.offer.instance_type,
            LABEL_ZONE: slot.offer.zone,
            LABEL_CAPACITY_TYPE: slot.offer.capacity_type.label,
        }
        pinned = what.profile.interruption is PenaltyBucket.PINNED
        if pinned and slot.offer.interruption:
            return False
        offered = _offered(slot)
        return all(r.matches(labels) for r in what.profile.requirements) and all(
            offered.get(name, 0) >= amount for name, amount in what.request.items()
        )

    def _gangs(self) -> Iterator[str]:
        for key, what in self._demanded():
            (cluster, _, group, _), together = key, what.together
            verdict = self._verdicts.get(key)
            # One that found no place is on its way, and keeps what it holds wherever that is.
            if together is None or verdict is None or not verdict.satisfied:
                continue
            places = {
                matchable_labels(known).get(together.key)
                for slot in self._slots.values()
                if slot.state is S.CONFIGURED and slot.cluster == cluster
                if (known := self._shard.book.get(slot.id)) is not None
                if known.stamp is not None and known.stamp.group == group
                # A gang that moved leaves behind what must not be disturbed.
                if known.leaving is None and not known.do_not_disrupt
            }
            if len(places) > 1:
                yield f"gang {what.name} of {cluster} is in {sorted(map(str, places))}"

    def _amounts(self) -> Iterator[str]:
        for name, operator in self._operators.items():
            wanted: dict[str, int] = {}
            met = True
            for what in operator.cluster.workload:
                count = operator.cluster.workload.replicas(what.name)
                verdict = self._verdicts.get((name, *row_key(what)))
                met &= not count or (verdict is not None and verdict.satisfied)
                for resource, amount in what.request.items():
                    wanted[resource] = wanted.get(resource, 0) + amount * count
            mine = [
                slot
                for slot in self._all.values()
                if slot.cluster == name and slot.state in (S.CONFIGURED, S.CONFIGURING)
            ]
            for resource, amount in wanted.items():
                held = sum(_offered(slot).get(resource, 0) for slot in mine)
                if met and held < amount:
                    yield f"{name} is called met with {held} of {amount} milli of {resource}"

    def _rest(self) -> Iterator[str]:
        since = self._world.loop.time() - self._world.monitor.last_order_at
        if since < REST:
            yield f"the last order is {since:.1f} s old: it does not come to rest"
        for slot in self._slots.values():
            known = self._shard.book.get(slot.id)
            if known is not None and known.leaving is not None:
                yield f"{slot.id} is still leaving {known.cluster}"
            if slot.state in KIND_OF and slot.state is not S.DELETING:
                yield f"{slot.id} is still {slot.state.title}"

    def _demanded(self) -> Iterator[tuple[RowKey, WorkObject]]:
        for name, operator in self._operators.items():
            workload = operator.cluster.workload
            for what in workload:
                if workload.replicas(what.name):
                    yield (name, *row_key(what)), what


def _offered(slot: Slot) -> Resources:
    return {
        "cpu": slot.offer.cpu * 1000,
        "memory": slot.offer.memory_gi * _GI,
        "pods": 110_000,
    }
