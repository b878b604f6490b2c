"""Reading and running a shard over real gRPC: answers, refusals, and who may ask."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import grpc
import grpc.aio
import pytest
import trustme

from bigfleet.scenario.document import parse_scenario
from bigfleet.shard.act.decisions import Decision
from bigfleet.shard.errors import DrainRefusedError, NotActingError
from bigfleet.wire.channel import open_channel
from bigfleet.wire.server_tls import ServerTls
from bigfleet.wire.tls import TlsFiles
from bigfleet_api.v1alpha1 import provider_pb2
from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from certificates import write_files
from readable_shard import Caller, Code, Shard, all_of, called, refused, serving_shard
from worlds import NOW, A, B, S, machine, need, serving

# -- reading ---------------------------------------------------------------------------------------


async def test_needs_before_the_first_cycle_are_a_header_of_cycle_0() -> None:
    async with called(Shard(needs=[need()])) as to:
        (only,) = await all_of(to.read.InspectNeeds(pb.InspectNeedsRequest()))
    assert only.WhichOneof("frame") == "header"
    assert only.header.cycle == 0
    assert only.header.computed_at_unix_nanos == 0


async def test_needs_come_after_one_header_filtered_and_limited() -> None:
    shard = Shard(needs=[need(A, cpu=1, priority=p) for p in (1, 3, 2)] + [need(B, cpu=1)])
    shard.cycle()
    async with called(shard) as to:
        everything = await all_of(to.read.InspectNeeds(pb.InspectNeedsRequest()))
        of_a = await all_of(to.read.InspectNeeds(pb.InspectNeedsRequest(cluster_id=A, limit=2)))
        bad = await refused(all_of(to.read.InspectNeeds(pb.InspectNeedsRequest(limit=-1))))
    assert [f.WhichOneof("frame") for f in everything] == ["header"] + ["need"] * 4
    assert (everything[0].header.cycle, everything[0].header.total_needs) == (7, 4)
    assert everything[0].header.computed_at_unix_nanos == NOW
    assert of_a[0].header.total_needs == 3
    assert [f.need.need.priority for f in of_a[1:]] == [3, 2]
    assert bad[0] is Code.INVALID_ARGUMENT


async def test_machines_come_in_batches_by_id_through_the_filters() -> None:
    asked = need(A, cpu=4)
    machines = [machine(f"m-{n:04d}") for n in range(450)]
    machines += [serving("a-1", asked), machine("z-1", S.SPECULATIVE, cpu=8)]
    shard = Shard(machines=machines)

    async with called(shard) as to:

        async def ids(**filters: object) -> list[str]:
            request = pb.ListMachinesRequest(**filters)  # type: ignore[arg-type]
            batches = await all_of(to.read.ListMachines(request))
            assert all(len(batch.machines) <= 200 for batch in batches)
            return [m.id for batch in batches for m in batch.machines]

        assert await ids() == sorted(m.id for m in machines)
        assert await ids(limit=3) == ["a-1", "m-0000", "m-0001"]
        assert await ids(states=[provider_pb2.MACHINE_STATE_SPECULATIVE]) == ["z-1"]
        assert await ids(cluster_id=A) == ["a-1"]
        assert await ids(cluster_id="unknown") == []
        assert await ids(instance_type="t8") == ["z-1"]
        assert await ids(instance_type="t9") == []
        unknown = provider_pb2.MACHINE_STATE_UNSPECIFIED
        bad = await refused(all_of(to.read.ListMachines(pb.ListMachinesRequest(states=[unknown]))))
        assert bad[0] is Code.INVALID_ARGUMENT


async def test_a_machine_is_shown_with_all_that_is_known() -> None:
    bound = replace(
        serving("m-1", need(A)), allocatable={"cpu": 3500}, interruption_at_ns=9, last_error="x"
    )
    async with called(Shard(machines=[bound])) as to:
        (batch,) = await all_of(to.read.ListMachines(pb.ListMachinesRequest()))
    (record,) = batch.machines
    assert (record.cluster, record.host.ref, record.zone) == (A, "m-1", "z-1")
    assert dict(record.resources.resources) == {"cpu": "4"}
    assert dict(record.allocatable.resources) == {"cpu": "3500m"}
    assert record.interruption_unix_nanos == 9
    assert record.shard_metadata["bigfleet.lucy.sh/assigned-priority"] == "100"


def decision(number: int, cycle: int, outcome: str = "") -> Decision:
    return Decision(cycle, NOW, "Bootstrap", f"m-{number}", A, "f", "why", 0.5, outcome)


async def test_a_watcher_sees_what_comes_and_what_is_remembered() -> None:
    shard = Shard()
    for number in range(4):
        shard.decisions.append(decision(number, cycle=number))
    async with called(shard) as to:
        fresh = to.read.WatchDecisions(pb.WatchDecisionsRequest())
        since = to.read.WatchDecisions(pb.WatchDecisionsRequest(since_cycle=2))
        for expected in ("m-2", "m-3"):
            remembered = await since.read()
            assert isinstance(remembered, pb.Decision)
            assert remembered.machine_id == expected
        await fresh.initial_metadata()
        # Older than what was asked for, but news: the end of a decision taken before.
        shard.decisions.append(decision(0, cycle=0, outcome="success"))
        got = await fresh.read()
        assert isinstance(got, pb.Decision)
        assert (got.machine_id, got.outcome, got.cost_per_hour) == ("m-0", "success", 0.5)
        also = await since.read()
        assert isinstance(also, pb.Decision)
        assert also.outcome == "success"
        fresh.cancel()
        since.cancel()


async def test_the_state_can_be_taken_home_as_a_scenario() -> None:
    asked = need(A, cpu=8, unit=4)
    shard = Shard(machines=[serving("m-1", asked), machine("m-2")], needs=[asked])
    async with called(shard) as to:
        pieces = await all_of(to.read.ExportScenario(pb.ExportScenarioRequest()))
    scenario = parse_scenario(b"".join(piece.data for piece in pieces))
    assert scenario.name == "shard-a"
    assert scenario.machine_count == 2
    assert scenario.needs[0].profile == asked.profile


# -- running ---------------------------------------------------------------------------------------


async def test_pause_and_resume_reach_the_shard() -> None:
    shard = Shard()
    async with called(shard) as to:
        await to.admin.Pause(pb.PauseRequest(reason="storm"))
        await to.admin.Resume(pb.ResumeRequest())
    assert shard.done == [("pause", "storm"), ("resume",)]


async def test_what_cannot_be_written_down_is_refused_in_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shard = Shard(machines=[machine("m-1", S.IDLE)], disk_full=True)
    async with called(shard) as caller:
        for call, holds in (
            (caller.admin.Pause(pb.PauseRequest(reason="storm")), "a restart would not know"),
            (caller.admin.Resume(pb.ResumeRequest()), "nothing is changed"),
            (
                caller.admin.ForgetCluster(pb.ForgetClusterRequest(cluster_id=A, confirm=True)),
                "nothing is changed",
            ),
            (
                caller.admin.ExcludeMachine(pb.ExcludeMachineRequest(machine_id="m-1")),
                "nothing is changed",
            ),
        ):
            code, text = await refused(call)
            assert code is Code.UNAVAILABLE
            assert holds in text
            assert "no room left" in text
    said = [r for r in caplog.records if r.message.startswith("admin request not persisted")]
    assert len(said) == 4


async def test_a_cluster_is_forgotten_only_when_it_is_meant_known_and_away() -> None:
    shard = Shard(sessions={B})
    async with called(shard) as to:

        async def forget(cluster: str, confirm: bool = True) -> grpc.StatusCode:
            request = pb.ForgetClusterRequest(cluster_id=cluster, confirm=confirm)
            return (await refused(to.admin.ForgetCluster(request)))[0]

        assert await forget("") is Code.INVALID_ARGUMENT
        assert await forget(A, confirm=False) is Code.INVALID_ARGUMENT
        assert await forget(B) is Code.FAILED_PRECONDITION
        assert await forget("unknown") is Code.NOT_FOUND
        assert shard.done == []
        await to.admin.ForgetCluster(pb.ForgetClusterRequest(cluster_id=A, confirm=True))
    assert shard.done == [("forget", A)]


async def test_the_status_tells_all_of_it() -> None:
    async with called(Shard()) as to:
        status = await to.admin.GetStatus(pb.GetStatusRequest())
    assert (status.shard_id, status.epoch, status.cycle) == ("shard-a", 3, 7)
    assert (status.paused, status.pause_reason, status.dry_run) == (True, "because", False)
    assert list(status.sessions) == ["a", "b"]
    assert list(status.rails) == ["a rail"]
    (provider,) = status.providers
    assert (provider.name, provider.reachable, provider.last_list_unix_ns) == ("aws", True, 5)


async def test_a_configured_machine_is_drained_and_kept_out_if_asked() -> None:
    shard = Shard(machines=[serving("m-1", need(A)), machine("m-2")])
    async with called(shard) as to:

        async def drain(machine_id: str) -> grpc.StatusCode:
            request = pb.DrainMachineRequest(machine_id=machine_id)
            return (await refused(to.admin.DrainMachine(request)))[0]

        assert await drain("") is Code.INVALID_ARGUMENT
        assert await drain("m-9") is Code.NOT_FOUND
        assert await drain("m-2") is Code.FAILED_PRECONDITION
        assert shard.done == []
        await to.admin.DrainMachine(pb.DrainMachineRequest(machine_id="m-1", exclude=True))
        assert shard.done == [("exclude", "m-1", True), ("drain", "m-1")]


@pytest.mark.parametrize(
    ("refusal", "code", "changed"),
    [
        (NotActingError("it is paused: resume it"), Code.FAILED_PRECONDITION, []),
        (DrainRefusedError("it is busy: try again"), Code.ABORTED, [("exclude", "m-1", True)]),
    ],
)
async def test_a_drain_that_does_not_happen_is_refused_with_why(
    refusal: DrainRefusedError, code: grpc.StatusCode, changed: list[object]
) -> None:
    shard = Shard(machines=[serving("m-1", need(A))], refusal=refusal)
    async with called(shard) as to:
        request = pb.DrainMachineRequest(machine_id="m-1")
        assert await refused(to.admin.DrainMachine(request)) == (code, str(refusal))
        assert shard.done == []
        request.exclude = True
        also = " (it is excluded from now on)" if changed else ""
        assert await refused(to.admin.DrainMachine(request)) == (code, f"{refusal}{also}")
    assert shard.done == changed


async def test_a_machine_is_kept_out_and_let_in() -> None:
    shard = Shard(machines=[machine("m-1")])
    async with called(shard) as to:
        for exclude in (True, False):
            await to.admin.ExcludeMachine(
                pb.ExcludeMachineRequest(machine_id="m-1", exclude=exclude)
            )
        missing = await refused(to.admin.ExcludeMachine(pb.ExcludeMachineRequest(machine_id="x")))
    assert shard.done == [("exclude", "m-1", True), ("exclude", "m-1", False)]
    assert missing[0] is Code.NOT_FOUND


# -- who may ask -----------------------------------------------------------------------------------

CALLS: dict[str, Callable[[Caller], Awaitable[object]]] = {
    "InspectNeeds": lambda to: to.read.InspectNeeds(pb.InspectNeedsRequest()).read(),
    "ListMachines": lambda to: to.read.ListMachines(pb.ListMachinesRequest()).read(),
    "WatchDecisions": lambda to: to.read.WatchDecisions(
        pb.WatchDecisionsRequest(since_cycle=1)
    ).read(),
    "ExportScenario": lambda to: to.read.ExportScenario(pb.ExportScenarioRequest()).read(),
    "GetStatus": lambda to: to.admin.GetStatus(pb.GetStatusRequest()),
    "Pause": lambda to: to.admin.Pause(pb.PauseRequest()),
    "Resume": lambda to: to.admin.Resume(pb.ResumeRequest()),
    "ForgetCluster": lambda to: to.admin.ForgetCluster(
        pb.ForgetClusterRequest(cluster_id=A, confirm=True)
    ),
    "DrainMachine": lambda to: to.admin.DrainMachine(pb.DrainMachineRequest(machine_id="m-1")),
    "ExcludeMachine": lambda to: to.admin.ExcludeMachine(
        pb.ExcludeMachineRequest(machine_id="m-1", exclude=True)
    ),
}
READS = {"InspectNeeds", "ListMachines", "WatchDecisions", "ExportScenario"}
NAMES = {
    "cluster": ["bigfleet://cluster/c-a"],
    "shard": ["bigfleet://shard/shard-a"],
    "readonly": ["bigfleet://readonly"],
    "admin": ["bigfleet://admin"],
    "none": ["https://example.test/admin"],
    "two": ["bigfleet://admin", "bigfleet://readonly"],
}


def world() -> Shard:
    shard = Shard(machines=[serving("m-1", need(A))])
    shard.decisions.append(decision(1, cycle=1))
    return shard


@pytest.mark.parametrize("peer", [*NAMES, "plaintext"])
async def test_the_table_of_identities_cell_by_cell(
    tmp_path: Path, peer: str, caplog: pytest.LogCaptureFixture
) -> None:
    tls: ServerTls | None = None
    files: TlsFiles | None = None
    if peer != "plaintext":
        ca = trustme.CA()
        tls = ServerTls(write_files(tmp_path / "server", ca, ["bigfleet://shard/shard-a"]))
        files = write_files(tmp_path / "client", ca, NAMES[peer])
    allowed = {
        "plaintext": set(CALLS),
        "admin": set(CALLS),
        "readonly": READS | {"GetStatus"},
    }.get(peer, set())
    shard = world()
    caplog.set_level(logging.ERROR)
    async with (
        serving_shard(shard, tls) as address,
        open_channel(address, files.read() if files else None) as channel,
    ):
        to = Caller(channel)
        for name, call in CALLS.items():
            if name in allowed:
                assert await call(to) is not None, name
                continue
            code, text = await refused(call(to))
            assert code is Code.PERMISSION_DENIED, name
            assert name in text
    if "Pause" not in allowed:
        assert shard.done == []
    words = {
        (record.message, record.__dict__["method"])
        for record in caplog.records
        if "identity" in record.message
    }
    assert words == {
        (f"shard rejected {'read' if name in READS else 'admin'} identity", name)
        for name in set(CALLS) - allowed
    }
