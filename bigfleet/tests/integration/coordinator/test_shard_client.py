"""The shard's own client against the coordinator: assignments, domains, moves, fail-over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from random import Random

from bigfleet.coordinator.state import AssignDomain, ProviderEntry, RegisterProvider, UnassignDomain
from bigfleet.shard.peers.client import CoordinatorClient, ReportIntervals
from bigfleet.shard.peers.coordinator_caller import GrpcCaller
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinating import Shard, machine
from coordinator_calls import holds, served
from coordinators import Fleet
from memory_store import MemoryStore, Shared

QUICK = ReportIntervals(interval=0.05, deadline=5.0, least_gap=0.005)


class Words:
    """Reports that say who a shard is and what it holds, without counting machines."""

    def __init__(self, shard: Shard, clusters: tuple[str, ...]) -> None:
        self._shard, self._clusters = shard, clusters

    def build(self, revision: int, acks: Iterable[pb.InstructAck]) -> pb.ShardReport:
        roles = {"donor": pb.HeldTransfer.ROLE_DONOR, "recipient": pb.HeldTransfer.ROLE_RECIPIENT}
        return pb.ShardReport(
            shard_id=self._shard.id,
            shard_epoch=1,
            shard_address=f"{self._shard.id}:7780",
            instruction_acks=acks,
            assignments_revision=revision,
            known_clusters=self._clusters,
            transfers=[
                pb.HeldTransfer(
                    move_id=one.move_id, role=roles[one.role.value], machine_ids=one.machine_ids
                )
                for one in self._shard.ownership.transfers
            ],
        )


@asynccontextmanager
async def reporting(
    shard: Shard, *addresses: str, clusters: tuple[str, ...] = ()
) -> AsyncIterator[CoordinatorClient]:
    client = CoordinatorClient(
        addresses, GrpcCaller(), Words(shard, clusters), shard.instructions, shard.tally,
        Random(1), QUICK,
    )  # fmt: skip
    life = asyncio.create_task(client.run())
    try:
        yield client
    finally:
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)


async def test_a_shard_learns_what_is_its_own_and_when_that_changes() -> None:
    fleet, one, two = Fleet(), Shard("s-1"), Shard("s-2")
    async with served(fleet) as address, reporting(one, address, clusters=("c-1",)):
        await holds(lambda: one.ownership.domains.is_default and bool(one.assigned))
        async with reporting(two, address):
            await holds(lambda: bool(two.assigned))
            assert not two.ownership.domains.is_default
            leader_state = fleet.coordinator.lead()
            assert leader_state.state.clusters["c-1"].shard == "s-1"
            await fleet.coordinator.apply(AssignDomain("zone", "a", "s-2"))
            await fleet.coordinator.apply(RegisterProvider(ProviderEntry("p", "p:9001", "eu")))
            await holds(lambda: ("zone", "a") in two.ownership.domains.own)
            await holds(lambda: ("zone", "a") in one.ownership.domains.foreign)
            await holds(lambda: [p.name for p in one.assigned[-1].providers] == ["p"])
            await holds(lambda: not list(leader_state.instructions))
            await fleet.coordinator.apply(UnassignDomain("zone", "a"))
            await holds(lambda: ("zone", "a") not in two.ownership.domains.own)
            await holds(lambda: ("zone", "a") not in one.ownership.domains.foreign)
            assert one.instructions.revision == leader_state.state.revision
            # Up to date, nothing is sent again.
            told = len(one.assigned)
            heard = leader_state.reports.get("s-1")
            assert heard is not None
            cycle = heard.cycle + 3
            await holds(lambda: getattr(leader_state.reports.get("s-1"), "cycle", 0) > cycle)
            assert len(one.assigned) == told


async def test_an_instruction_is_done_once_and_its_picks_come_back() -> None:
    fleet, donor = Fleet(), Shard("s-1", [machine(f"m-{number}") for number in range(3)])
    async with served(fleet) as address, reporting(donor, address):
        await holds(lambda: bool(donor.assigned))
        leader_state = fleet.coordinator.lead()
        pick = pb.TransferOwnership(from_shard_id="s-1", to_shard_id="s-2", count=2)
        leader_state.instructions.give("s-1", pick, "m-1/pick")
        await holds(lambda: not list(leader_state.instructions))
        await holds(lambda: bool(getattr(leader_state.reports.get("s-1"), "transfers", ())))
        assert donor.tally.instructions == [("transfer_ownership", "done")]
        assert donor.tally.moved == [("out", 2)]
        heard = leader_state.reports.get("s-1")
        assert heard is not None
        (held,) = heard.transfers
        assert (held.move_id, held.role) == ("m-1", pb.HeldTransfer.ROLE_DONOR)
        assert len(held.machine_ids) == 2


async def test_a_shard_that_knows_a_follower_alone_reaches_the_leader_and_the_next() -> None:
    shared = Shared()
    one, two = Fleet(MemoryStore(shared), "c-1"), Fleet(MemoryStore(shared), "c-2")
    shard = Shard("s-1")
    async with served(one), served(two) as two_address:
        await holds(lambda: one.coordinator.election.is_leader)
        async with reporting(shard, two_address):
            await holds(lambda: bool(shard.assigned))
            assert one.coordinator.lead().reports.get("s-1") is not None
            assert "not_leader" in shard.tally.reports
            await shared.depose()
            await holds(lambda: shard.instructions.term == 2)
            leader = one if one.coordinator.election.is_leader else two
            await holds(lambda: leader.coordinator.lead().reports.get("s-1") is not None)
            assert leader.value("raft_term") == 2
