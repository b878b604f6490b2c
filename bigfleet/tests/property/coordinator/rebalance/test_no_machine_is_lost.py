"""Three shards and their coordinator, any of which may die at any moment; messages may be lost.

The shards' side is the real one: books, ownership, instructions, on disks that outlive a crash. So
is the coordinator's: reports, queues, planning, moves, on a store that outlives a leader. After
every step each machine has one owner, or is on its way and some shard's disk says so. Once the
faults end, every move ends and every machine has exactly one owner.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from bigfleet.coordinator.errors import CoordinatorError
from bigfleet.coordinator.leadership.leader_state import LeaderState
from bigfleet.coordinator.rebalance import FleetRebalancer
from bigfleet.coordinator.server.report_handler import handle_report
from bigfleet.coordinator.state import AddShard, AssignDomain, MovePhase, SetQuota
from bigfleet.coordinator.store.errors import StoreUnavailableError
from bigfleet.coordinator.store.interface import RowKey
from bigfleet.model import Machine, MachineState, PenaltyBucket, Profile
from bigfleet.model.machine import LABEL_ZONE
from bigfleet.observe.coordinator import CoordinatorMetrics
from bigfleet.shard.peers.report import Reports
from bigfleet.shard.state.ownership import OwnershipFile, TransferRole
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from clocks import HandClock
from coordinating import DictDisk, Shard, inline, machine, stamp
from memory_store import MemoryStore
from sizes import many

S = MachineState
SHARDS = ("s-1", "s-2", "s-3")
ZONES = {"s-1": "z-1", "s-2": "z-2", "s-3": "z-3"}


class Died(BaseException):
    """A process ends in the middle of something."""


class FragileDisk(DictDisk):
    """A disk whose owner may die just before or just after a write."""

    def __init__(self) -> None:
        super().__init__()
        self.dies_in: int | None = None
        """So many half-steps from now: even before a write, odd after it."""

    def replace(self, name: str, content: bytes) -> None:
        self._perhaps()
        super().replace(name, content)
        self._perhaps()

    def _perhaps(self) -> None:
        if self.dies_in is not None:
            self.dies_in -= 1
            if self.dies_in < 0:
                self.dies_in = None
                raise Died


@dataclass(frozen=True)
class Lack:
    """Demand that a shard cannot meet."""

    profile: Profile
    deficit: dict[str, int]
    age_cycles: int
    min_unit: dict[str, int]
    clusters: tuple[str, ...] = ("c-1",)


class World:
    """Everybody, and what faults there are."""

    def __init__(self, machines: list[Machine], lacking: str, tier_cpu: int, age: int) -> None:
        self.clock = HandClock()
        self.metrics = CoordinatorMetrics(self.clock.now, version="1")
        self.machines = {one.id: one for one in machines}
        self.disks = {shard: FragileDisk() for shard in SHARDS}
        self.epochs: Counter[str] = Counter()
        self.cycles: Counter[str] = Counter()
        self.acks: dict[str, dict[str, pb.InstructAck]] = {}
        self.shards: dict[str, Shard] = {}
        self.store = MemoryStore()
        self.saved: dict[RowKey, bytes] = {}
        self.lacks = {
            lacking: [
                Lack(
                    Profile.of(priority=10, interruption=PenaltyBucket(5)),
                    {"cpu": tier_cpu},
                    age,
                    {"cpu": 1_000},
                )
            ]
        }
        self.leader_state: LeaderState
        self.rebalancer: FleetRebalancer

    async def begin(self) -> None:
        await self.lead()
        for shard in SHARDS:
            await self.leader_state.apply(AddShard(shard, f"{shard}:7780"))
            await self.leader_state.apply(AssignDomain(LABEL_ZONE, ZONES[shard], shard))
        await self.leader_state.apply(SetQuota("p", "r", dict.fromkeys(SHARDS, 50)))
        machines, self.machines = self.machines, {}
        for shard in SHARDS:
            self.start(shard)
            await self.report(shard)
        self.machines = machines
        self.saved = dict(self.store.shared.rows)
        for shard in SHARDS:
            self.reconcile(shard)

    # -- processes -------------------------------------------------------------------------------

    async def lead(self) -> None:
        """Another leader, with nothing but the store."""
        await self.store.shared.depose()
        leadership = await self.store.campaign("c")
        self.leader_state = LeaderState(
            leadership, await self.store.load(), self.store, self.clock, self.metrics
        )
        self.rebalancer = FleetRebalancer(inline, self.metrics)

    async def restore(self) -> None:
        """The store is as it was when it was last saved; terms go on."""
        self.store.shared.rows = dict(self.saved)
        await self.lead()

    def start(self, shard: str) -> None:
        """A shard begins, with nothing but its disk."""
        self.disks[shard].dies_in = None
        self.epochs[shard] += 1
        self.cycles[shard] = 0
        self.acks[shard] = {}
        self.shards[shard] = Shard(shard, disk=self.disks[shard], clock=self.clock)
        self.reconcile(shard)

    def reconcile(self, shard: str) -> None:
        """A shard lists its provider: what it owns it has, anything else it has not."""
        life = self.shards[shard]
        for one in self.machines.values():
            known = life.book.get(one.id)
            if life.ownership.owns(one) and known is None:
                life.book.take(one)

    def drain(self, shard: str) -> None:
        """Machines a shard was asked to drain become Idle."""
        life = self.shards[shard]
        for name, _ in life.preempted:
            known = life.book.get(name)
            if known is None or known.state is not S.CONFIGURED:
                continue
            life.book.vanish(name)
            idle = machine(name, zone=known.zone)
            self.machines[name] = idle
            life.book.take(replace(idle, excluded=known.excluded))
        life.preempted.clear()

    # -- messages --------------------------------------------------------------------------------

    async def report(
        self, shard: str, *, is_lost: bool = False, is_unanswered: bool = False, dies_in: int = -1
    ) -> None:
        """A report and what follows from the answer; either may get lost, the shard may die."""
        life = self.shards[shard]
        self.reconcile(shard)
        self.cycles[shard] += 1
        reports = Reports(
            shard, self.epochs[shard], f"{shard}:7780", "", self.clock,
            life.book.snapshot, lambda: self.lacks.get(shard, []), lambda: ["c-1"],
            lambda: life.ownership.transfers,
        )  # fmt: skip
        report = reports.build(life.instructions.revision, self.acks[shard].values())
        report.cycle = self.cycles[shard]
        if is_lost:
            return
        report = pb.ShardReport.FromString(report.SerializeToString())
        answer = await handle_report(self.leader_state, report, self.rebalancer, self.metrics)
        if is_unanswered:
            return
        self.acks[shard] = {}
        self.disks[shard].dies_in = dies_in if dies_in >= 0 else None
        try:
            for ack in await life.instructions.take(answer.to_proto()):
                self.acks[shard].setdefault(ack.instruction_id, ack)
        except Died:
            self.start(shard)
        except OSError:
            # Assignments could not be kept: the next answer brings them again.
            assert self.disks[shard].fails
        self.disks[shard].dies_in = None
        self.disks[shard].fails = False

    async def look(self, fault: int) -> None:
        """The leader moves things along; its store may fail, before or after a write."""
        if fault == 1:
            self.store.before_commit.append(StoreUnavailableError("away"))
        if fault == 2:
            self.store.after_commit.append(StoreUnavailableError("no answer"))
        with contextlib.suppress(CoordinatorError):
            await self.rebalancer.look(self.leader_state)
        self.store.before_commit.clear()
        self.store.after_commit.clear()

    # -- what must hold --------------------------------------------------------------------------

    def check(self) -> None:
        disks = {shard: OwnershipFile(self.disks[shard], inline) for shard in SHARDS}
        for owned in disks.values():
            owned.load()
        given = {
            name
            for owned in disks.values()
            for transfer in owned.transfers
            if transfer.role is TransferRole.DONOR
            for name in transfer.machine_ids
        }
        for name, one in self.machines.items():
            owners = [shard for shard, owned in disks.items() if owned.owns(one)]
            assert len(owners) <= 1, f"{name} has two owners: {owners}"
            assert owners or name in given, f"{name} is lost"
            booked = [shard for shard in SHARDS if self.shards[shard].book.get(name) is not None]
            assert len(booked) <= 1, f"{name} is in two books: {booked}"

    async def settle(self) -> None:
        """No more faults and no more demand: everything ends."""
        self.lacks = {}
        for _ in range(100):
            for shard in SHARDS:
                self.drain(shard)
                await self.report(shard)
                self.check()
            await self.rebalancer.look(self.leader_state)
            self.clock.advance(30)
            if self.is_quiet():
                break
        moves = self.leader_state.state.moves.values()
        assert self.is_quiet(), [(move.id, move.phase, move.reason) for move in moves]
        for name, one in self.machines.items():
            owners = [shard for shard in SHARDS if self.shards[shard].ownership.owns(one)]
            assert len(owners) == 1, f"{name}: {owners}"
        quota = self.leader_state.state.quotas["p", "r"]
        assert sum(quota.values()) == 50 * len(SHARDS)
        assert min(quota.values()) >= 0

    def is_quiet(self) -> bool:
        return all(
            move.phase.is_over for move in self.leader_state.state.moves.values()
        ) and not any(self.shards[shard].ownership.transfers for shard in SHARDS)


SHARD = st.sampled_from(SHARDS)
DIES = st.integers(-6, 5)
ACTIONS = st.one_of(
    st.tuples(st.just("report"), SHARD, DIES),
    st.tuples(st.just("report"), SHARD, DIES),
    st.tuples(st.just("report"), SHARD, DIES),
    st.tuples(st.just("lost"), SHARD, st.booleans()),
    st.tuples(st.just("look"), st.just(""), st.integers(0, 2)),
    st.tuples(st.just("look"), st.just(""), st.just(0)),
    st.tuples(st.just("round"), st.just(""), st.just(0)),
    st.tuples(st.just("crash"), SHARD, st.just(0)),
    st.tuples(st.just("lead"), st.just(""), st.just(0)),
    st.tuples(st.just("drain"), SHARD, st.just(0)),
    st.tuples(st.just("time"), st.just(""), st.sampled_from([1, 10, 30, 90, 400])),
    st.tuples(st.just("lack"), SHARD, st.just(0)),
    st.tuples(st.just("full"), SHARD, st.just(0)),
    st.tuples(st.sampled_from(["save", "restore"]), st.just(""), st.just(0)),
)


async def act(world: World, kind: str, shard: str, how: int) -> None:
    match kind:
        case "report":
            await world.report(shard, dies_in=how)
        case "lost":
            await world.report(shard, is_lost=bool(how), is_unanswered=not how)
        case "look":
            await world.look(how)
        case "round":
            await world.rebalancer.begin_round(world.leader_state)
        case "crash":
            world.start(shard)
        case "lead":
            await world.lead()
        case "drain":
            world.drain(shard)
        case "time":
            world.clock.advance(how)
        case "full":
            world.disks[shard].fails = True
            await world.report(shard)
        case "save":
            world.saved = dict(world.store.shared.rows)
        case "restore":
            await world.restore()
        case "lack":
            (lacks,) = world.lacks.values()
            world.lacks = {shard: lacks}


def fleet(state: MachineState) -> list[Machine]:
    kept = stamp(priority=1) if state is S.CONFIGURED else None
    machines = [
        machine(f"m-{number}-{n}", state, zone=ZONES[shard], stamp=kept)
        for number, shard in enumerate(SHARDS)
        for n in range(6)
    ]
    if state is S.CONFIGURED:
        # A single Idle one is its shard's margin, and tells everybody how large the type is.
        machines.append(machine("m-margin", zone=ZONES["s-2"]))
    return machines


def mixed_fleet() -> list[Machine]:
    states = {"i": S.IDLE, "s": S.SPECULATIVE, "c": S.CONFIGURED}
    return [
        replace(one, id=f"{name}{one.id}")
        for name, state in states.items()
        for one in fleet(state)[::2]
    ]


async def story(world: World, actions: list[tuple[str, str, int]]) -> World:
    await world.begin()
    for shard in SHARDS:
        await world.report(shard)
    await world.rebalancer.begin_round(world.leader_state)
    for kind, shard, how in actions:
        await act(world, kind, shard, how)
        world.check()
    await world.settle()
    return world


@settings(max_examples=many(20, 60, 20, everything=60), deadline=None)
@given(st.lists(ACTIONS, max_size=60))
async def test_idle_machines_move_or_stay_but_are_never_lost_nor_owned_twice(
    actions: list[tuple[str, str, int]],
) -> None:
    await story(World(fleet(S.IDLE), "s-1", 8_000, 6), actions)


@settings(max_examples=many(15, 40, 15, everything=40), deadline=None)
@given(st.lists(ACTIONS, max_size=60))
async def test_speculative_machines_move_with_their_quota_whatever_dies(
    actions: list[tuple[str, str, int]],
) -> None:
    await story(World(fleet(S.SPECULATIVE), "s-1", 8_000, 6), actions)


@settings(max_examples=many(15, 40, 15, everything=40), deadline=None)
@given(st.lists(ACTIONS, max_size=60))
async def test_drained_machines_move_or_stay_whatever_dies(
    actions: list[tuple[str, str, int]],
) -> None:
    await story(World(fleet(S.CONFIGURED), "s-1", 8_000, 13), actions)


@settings(max_examples=many(15, 40, 15, everything=40), deadline=None)
@given(st.lists(ACTIONS, max_size=60))
async def test_all_kinds_of_moves_at_once_whatever_dies(
    actions: list[tuple[str, str, int]],
) -> None:
    await story(World(mixed_fleet(), "s-1", 40_000, 13), actions)


async def test_without_faults_each_tier_delivers() -> None:
    for state, age in ((S.IDLE, 6), (S.SPECULATIVE, 6), (S.CONFIGURED, 13)):
        world = await story(World(fleet(state), "s-1", 8_000, age), [])
        done = [m for m in world.leader_state.state.moves.values() if m.phase is MovePhase.DONE]
        assert sum(len(move.machine_ids) for move in done) == 2, state
        mine = [m for m in world.machines.values() if world.shards["s-1"].ownership.owns(m)]
        assert len(mine) == 8
