"""Simulated clusters over real connections, against a small shard that only listens."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from random import Random

import grpc
import grpc.aio
import pytest

from bigfleet.wire.session import StreamClosedError
from bigfleet_api.v1alpha1 import provider_pb2 as provider
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_api.v1alpha1 import shard_pb2_grpc as rpc
from bigfleet_lab.simcluster import Behaviour, SimFleet
from bigfleet_lab.simcluster.errors import RunError
from bigfleet_lab.simcluster.faults import Garbage
from bigfleet_lab.simcluster.lines import GrpcDial
from bigfleet_lab.simcluster.run import RunOptions, WallClock, simulate

Context = grpc.aio.ServicerContext[pb.OperatorMessage, pb.ShardMessage]
QUICK = Behaviour(rollup_seconds=0.05, prompt_seconds=0)


class ListeningShard(rpc.ShardServicer):
    """Acknowledges, gives each new cluster a machine, and ends sessions when told to."""

    def __init__(self) -> None:
        self.hellos: list[str] = []
        self.rollups: dict[str, int] = {}
        self.answers: list[str] = []
        self.refuse = grpc.StatusCode.OK
        self.heard = asyncio.Event()
        self._newest: dict[str, int] = {}

    async def Session(  # noqa: N802 - the contract's name
        self, frames: AsyncIterator[pb.OperatorMessage], context: Context
    ) -> AsyncIterator[pb.ShardMessage]:
        cluster, number = "", 0
        async for frame in frames:
            self.heard.set()
            kind = frame.WhichOneof("payload")
            if kind == "hello":
                cluster = frame.hello.cluster_id
                self.hellos.append(cluster)
                number = self._newest[cluster] = self._newest.get(cluster, 0) + 1
                if (refuse := self.refuse) is not grpc.StatusCode.OK:
                    # The library calls a stream that ends under a write INTERNAL: let it end.
                    await anext(frames)
                    await context.abort(refuse, "as told")
                yield pb.ShardMessage(ack=pb.Acknowledgement(echo="hello"))
                request = pb.BootstrapRequest(request_id=f"r-{number}", cluster_id=cluster)
                yield pb.ShardMessage(bootstrap_request=request)
                yield pb.ShardMessage(node_state_update=configured(f"{cluster}-m"))
            elif kind == "rollup":
                if self._newest[cluster] != number:
                    await context.abort(grpc.StatusCode.ABORTED, "a newer session")
                self.rollups[cluster] = self.rollups.get(cluster, 0) + 1
                stamp = frame.rollup.timestamp_unix_nanos
                ack = pb.Acknowledgement(echo="rollup", rollup_timestamp_unix_nanos=stamp)
                yield pb.ShardMessage(ack=ack)
            elif kind == "bootstrap_response":
                self.answers.append(frame.bootstrap_response.request_id)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                self.heard.clear()
                await self.heard.wait()


def configured(machine: str) -> pb.NodeStateUpdate:
    return pb.NodeStateUpdate(
        machine_id=machine,
        state=provider.MACHINE_STATE_CONFIGURED,
        provider_id=f"h-{machine}",
        labels={"node.kubernetes.io/instance-type": "t", "topology.kubernetes.io/zone": "a"},
        resources=provider.Resources(resources={"cpu": "64", "memory": "512Gi"}),
    )


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[tuple[ListeningShard, str]]:
    shard, server = ListeningShard(), grpc.aio.server()
    rpc.add_ShardServicer_to_server(shard, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield shard, f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@contextlib.asynccontextmanager
async def fleet_at(address: str, clusters: int = 3) -> AsyncIterator[SimFleet]:
    dial = GrpcDial(address)
    fleet = SimFleet.make(dial, WallClock(), Random(1), clusters=clusters, rows=5, behaviour=QUICK)
    running = asyncio.create_task(fleet.run())
    try:
        yield fleet
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await dial.close()


async def holds(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the state is of many parts
            await asyncio.sleep(0.01)


async def test_many_clusters_connect_are_acknowledged_and_run_pods() -> None:
    async with listening() as (shard, address), fleet_at(address) as fleet:
        await shard.until(lambda: len(shard.rollups) == 3 and min(shard.rollups.values()) >= 3)
        await holds(lambda: fleet.connected == 3 and fleet.stats.bootstraps_answered == 3)
        await holds(lambda: all(op.cluster.placing.waiting_pods() == 0 for op in fleet))
        assert fleet.stats.rollups_acknowledged >= 6
        p50 = fleet.stats.latency(0.5)
        assert p50 is not None
        assert 0 < p50 < 5


async def test_a_line_that_was_cut_comes_back() -> None:
    async with listening() as (shard, address), fleet_at(address) as fleet:
        await shard.until(lambda: len(shard.rollups) == 3)
        await holds(lambda: fleet.connected == 3)
        await fleet.storm(share=1.0, times=1, every_seconds=0)
        await shard.until(lambda: len(shard.hellos) == 6)
        assert fleet.stats.sessions_ended["CANCELLED"] == 3


async def test_a_line_whose_reader_was_stopped_still_ends_in_order() -> None:
    async with listening() as (_, address):
        dial = GrpcDial(address)
        line = await dial("c-1")
        await line.send(pb.OperatorMessage(hello=pb.Hello(cluster_id="c-1")))
        for _ in range(3):
            assert await line.receive() is not None
        reading = asyncio.create_task(line.receive())
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await line.close()
        with pytest.raises(StreamClosedError) as raised:
            await line.send(pb.OperatorMessage())
        assert raised.value.code == "OK"
        await dial.close()


async def test_a_refused_session_says_why_and_is_tried_again() -> None:
    async with listening() as (shard, address):
        shard.refuse = grpc.StatusCode.INVALID_ARGUMENT
        async with fleet_at(address, 1) as fleet:
            operator = next(iter(fleet))
            await shard.until(lambda: len(shard.hellos) >= 2)
            await holds(lambda: operator.last_end == "INVALID_ARGUMENT: as told")
            shard.refuse = grpc.StatusCode.OK
            await holds(lambda: operator.connected)


async def test_of_two_processes_of_one_cluster_the_newer_stays() -> None:
    async with listening() as (_, address), fleet_at(address, 1) as first:
        await holds(lambda: first.connected == 1)
        async with fleet_at(address, 1) as second:
            await holds(lambda: second.connected == 1)
            await holds(lambda: first.stats.sessions_ended["ABORTED"] >= 1)


async def test_a_shard_that_is_away_is_waited_for() -> None:
    async with fleet_at("127.0.0.1:1", 1) as fleet:
        await holds(lambda: fleet.stats.sessions_ended["UNAVAILABLE"] >= 2)
        assert fleet.connected == 0


async def test_unreadable_bytes_end_one_session_and_no_other() -> None:
    async with listening() as (shard, address), fleet_at(address) as fleet:
        await holds(lambda: fleet.connected == 3)
        broken = next(iter(fleet))
        assert broken.session is not None
        broken.session.send_garbage(Garbage.BYTES)
        await holds(lambda: sum(fleet.stats.sessions_ended.values()) == 1)
        await holds(lambda: fleet.connected == 3)
        assert len(shard.hellos) == 4


async def test_a_run_ends_by_itself_and_sums_up() -> None:
    said: list[str] = []
    async with listening() as (shard, address):
        options = RunOptions(
            address, clusters=4, rows=3, interval_seconds=0.1, duration_seconds=2.0, churn=0.5
        )
        summary = await simulate(options, said.append)
        assert set(shard.hellos) == {f"sim-{n:04d}" for n in range(4)}
    assert summary.ok
    document = json.loads(json.dumps(summary.document()))
    assert (document["clusters"], document["connected"]) == (4, 4)
    assert document["rollups_acknowledged"] >= 4
    assert document["rollup_to_ack_ms"]["p99"] > 0
    assert document["bootstraps_answered"] == 4
    assert document["nodes"] == {"ready": 4, "all": 4}
    assert document["trouble"] == ""
    assert dict(summary.lines())["clusters connected"] == "4 of 4"
    assert "4/4 connected" in said[-1]


async def test_a_run_without_a_shard_says_what_is_wrong() -> None:
    options = RunOptions("127.0.0.1:1", clusters=2, rows=1, duration_seconds=1.0)
    summary = await simulate(options, lambda line: None)
    assert not summary.ok
    assert summary.trouble == "no process listens there"
    assert ("last trouble", summary.trouble) in summary.lines()


@pytest.mark.parametrize(
    "wrong",
    [{"shard": ""}, {"clusters": 0}, {"rows": -1}, {"interval_seconds": 0.0},
     {"duration_seconds": 0.0}, {"churn": 2.0}],
    ids=lambda wrong: next(iter(wrong)),
)  # fmt: skip
def test_options_that_make_no_sense_are_refused_by_name(wrong: dict[str, object]) -> None:
    given = {"shard": "host:1", **wrong}
    with pytest.raises(RunError, match="--"):
        RunOptions(**given)  # type: ignore[arg-type]
