"""The client over real connections: leaders, deadlines, and a transfer from end to end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from random import Random

import grpc
import grpc.aio
import pytest

from bigfleet.shard.peers.client import CoordinatorClient, ReportIntervals
from bigfleet.shard.peers.coordinator_caller import GrpcCaller
from bigfleet.shard.peers.errors import ReportError
from bigfleet.shard.peers.report import Reports
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from coordinating import Shard, machine, transfer

Context = grpc.aio.ServicerContext[pb.ShardReport, pb.ReportAck]
QUICK = ReportIntervals(interval=0.05, deadline=5.0, least_gap=0.005)


class Replica:
    """One coordinator: takes reports while it leads, repeats instructions until acknowledged."""

    def __init__(self, leader: str = "") -> None:
        self.leader = leader
        """Whom it names when it does not lead; empty while it leads."""
        self.names_leader = True
        self.reports: list[pb.ShardReport] = []
        self.waiting: dict[str, list[pb.CoordinatorInstruction]] = {}
        self.acks: dict[str, pb.InstructAck] = {}
        self.silent = False

    async def report_shard(self, request: pb.ShardReport, context: Context) -> pb.ReportAck:
        if self.silent:
            await asyncio.sleep(60)
        if self.leader:
            trailing = (("bigfleet-leader", self.leader),) if self.names_leader else ()
            await context.abort(
                grpc.StatusCode.FAILED_PRECONDITION, "coordinator: not leader", trailing
            )
        self.reports.append(request)
        for ack in request.instruction_acks:
            self.acks[ack.instruction_id] = ack
        waiting = [
            one
            for one in self.waiting.get(request.shard_id, [])
            if one.instruction_id not in self.acks
        ]
        return pb.ReportAck(coordinator_term=1, acknowledged=True, instructions=waiting)


@contextlib.asynccontextmanager
async def serving(
    replica: Replica, written: Callable[[pb.ReportAck], bytes] = pb.ReportAck.SerializeToString
) -> AsyncIterator[str]:
    server = grpc.aio.server()
    # The rest of the service is not for shards.
    handler = grpc.unary_unary_rpc_method_handler(
        replica.report_shard, pb.ShardReport.FromString, written
    )
    service = "bigfleet.v1alpha1.Coordinator"
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(service, {"ReportShard": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@contextlib.asynccontextmanager
async def reporting(shard: Shard, *addresses: str) -> AsyncIterator[CoordinatorClient]:
    reports = Reports(
        shard.id, 1, "host:7780", "", shard.clock, shard.book.snapshot,
        list, list, lambda: shard.ownership.transfers,
    )  # fmt: skip
    client = CoordinatorClient(
        addresses, GrpcCaller(), reports, shard.instructions, shard.tally, Random(1), QUICK
    )
    running = asyncio.create_task(client.run())
    try:
        yield client
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def holds(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the state is of many parts
            await asyncio.sleep(0.01)


async def test_a_follower_names_the_leader_and_the_report_reaches_it() -> None:
    leader = Replica()
    async with serving(leader) as there, serving(Replica(there)) as follower:
        shard = Shard(machines=[machine("m-1")])
        async with reporting(shard, follower):
            await holds(lambda: len(leader.reports) >= 3)
        assert leader.reports[0].summary.total_machines == 1
        assert shard.tally.reports[:2] == ["not_leader", "success"]
        assert shard.tally.reports.count("not_leader") == 1, "the leader is remembered"


async def test_a_follower_without_a_word_sends_callers_nowhere_but_another_answers() -> None:
    silent = Replica("other")
    silent.names_leader = False
    leader = Replica()
    async with (
        serving(silent) as one,
        serving(leader) as other,
        reporting(Shard(), one, "127.0.0.1:1", other),
    ):
        await holds(lambda: len(leader.reports) >= 2)


async def test_no_peer_there_at_the_start_is_an_ordinary_state() -> None:
    shard = Shard()
    async with reporting(shard, "127.0.0.1:1"):
        await holds(lambda: shard.tally.reports.count("error") >= 2)


async def test_a_call_ends_at_its_deadline() -> None:
    stuck = Replica()
    stuck.silent = True
    async with serving(stuck) as address:
        caller = GrpcCaller()
        with pytest.raises(ReportError, match="DEADLINE_EXCEEDED"):
            await caller.report(address, pb.ShardReport(shard_id="s-1"), 0.2)
        await caller.close()


async def test_an_answer_that_cannot_be_decoded_is_a_report_that_failed() -> None:
    odd = Replica()
    async with serving(odd, lambda answer: b"\xff" * 20) as address:
        shard = Shard()
        async with reporting(shard, address):
            await holds(lambda: shard.tally.reports.count("error") >= 2)
        caller = GrpcCaller()
        with pytest.raises(ReportError, match="cannot be decoded"):
            await caller.report(address, pb.ShardReport(shard_id="s-1"), 5.0)
        await caller.close()


async def test_machines_move_from_one_shard_to_another() -> None:
    leader = Replica()
    fleet = [machine(f"m-{n}") for n in range(5)]
    donor, recipient = Shard("s-1", fleet), Shard("s-2")
    await recipient.ownership.assign_domain(("zone", "elsewhere"))
    leader.waiting["s-1"] = [transfer("m-1/pick", count=2)]
    async with (
        serving(leader) as address,
        reporting(donor, address) as client,
        reporting(recipient, address),
    ):
        await holds(lambda: "m-1/pick" in leader.acks)
        picked = list(leader.acks["m-1/pick"].machine_ids)
        assert len(picked) == 2
        leader.waiting["s-2"] = [transfer("m-1/adopt", picked)]
        await holds(lambda: "m-1/adopt" in leader.acks)
        await holds(lambda: any(report.transfers for report in leader.reports))
        for name in ("s-1", "s-2"):
            leader.waiting[name].append(transfer(f"m-1/settle-{name}", picked))
        await holds(lambda: {"m-1/settle-s-1", "m-1/settle-s-2"} <= set(leader.acks))
        await holds(lambda: len(client._acks) == 0)
    owners = {
        one.id: [shard.id for shard in (donor, recipient) if shard.ownership.owns(one)]
        for one in fleet
    }
    assert owners == {one.id: ["s-2" if one.id in picked else "s-1"] for one in fleet}
    assert not donor.ownership.transfers
    assert not recipient.ownership.transfers
