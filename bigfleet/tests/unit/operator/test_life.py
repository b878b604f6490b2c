"""What an operator does between its API server and its shard, on virtual time."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import pairwise
from typing import Any

from bigfleet_api.v1alpha1 import provider_pb2 as provider
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from bigfleet_api.v1alpha1 import shardread_pb2 as shardread
from kubefake import FakeApiServer, refusal
from kubeobjects import node
from kubestage import Stage, phase, play, request, two_requests, until

S = provider.MachineState


def machine(
    machine_id: str, state: int, withdrawn: bool = False, **more: Any
) -> pb.NodeStateUpdate:
    return pb.NodeStateUpdate(
        machine_id=machine_id,
        cluster_id="c-1",
        state=S.ValueType(state),
        provider_id=more.pop("host", f"host-{machine_id}"),
        labels={"zone": "a"},
        resources=provider.Resources(resources={"cpu": "4"}),
        withdrawn=withdrawn,
        **more,
    )


def upcoming(stage: Stage, name: str) -> str:
    found = stage.api.get("UpcomingNode", name)
    return "" if found is None else str(found.get("status", {}).get("phase", "none"))


def rollups_profile(stage: Stage) -> str:
    (fingerprint,) = stage.operator.rollups.fingerprints()
    return fingerprint


def test_an_upcoming_node_says_for_which_need_it_comes() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        named: dict[str, Any] = {"profile_fingerprint": "a" * 20, "group": "team/zone/g"}
        creating, idle = S.MACHINE_STATE_CREATING, S.MACHINE_STATE_IDLE
        await stage.shard.send(node_state_update=machine("m-1", creating, **named))
        await until(lambda: upcoming(stage, "un-m-1") == "Provisioning")
        # A frame of an older shard names none, and takes none back.
        await stage.shard.send(node_state_update=machine("m-1", idle))
        await until(lambda: upcoming(stage, "un-m-1") == "Launched")
        found = stage.api.get("UpcomingNode", "un-m-1")
        assert found is not None
        assert found["metadata"]["labels"] == {"bigfleet.lucy.sh/profile": "a" * 20}
        assert found["metadata"]["annotations"]["bigfleet.lucy.sh/group"] == "team/zone/g"

    play(scene)


def test_a_session_begins_with_hello_and_a_complete_rollup() -> None:
    async def scene(stage: Stage) -> None:
        rollup = (await stage.shard.frame("rollup")).rollup
        hello = stage.shard.frames[0][1].hello
        assert (hello.cluster_id, hello.protocol_version) == ("c-1", "v1alpha1")
        assert hello.software_version == "1.2.3"
        assert [dict(row.aggregate_resources) for row in rollup.needs] == [{"cpu": "2"}]

    play(scene, two_requests)


def test_requests_are_acknowledged_when_their_own_rollup_was_taken() -> None:
    async def scene(stage: Stage) -> None:
        stage.shard.acknowledges = False
        await stage.shard.frame("rollup")
        await asyncio.sleep(25)
        assert phase(stage.api, "a") == "Pending"
        first = stage.shard.of_kind("rollup")[0][1].rollup.timestamp_unix_nanos
        stage.api.put(request("late"))
        ack = pb.Acknowledgement(echo="rollup", rollup_timestamp_unix_nanos=first)
        await stage.shard.send(ack=ack)
        await until(lambda: phase(stage.api, "a") == "Acknowledged")
        assert phase(stage.api, "late") == "Pending"
        stage.shard.acknowledges = True
        await until(lambda: phase(stage.api, "late") == "Acknowledged")
        found = stage.api.get("CapacityRequest", "a", "default")
        assert found is not None
        assert found["status"]["acknowledgedAt"].endswith("Z")
        assert found["status"]["need"] == {"profile": rollups_profile(stage)}
        await until(lambda: stage.counted("acknowledged_total") == 3)
        await until(lambda: stage.counted("capacity_requests", phase="Acknowledged") == 3)

    play(scene, two_requests)


def test_a_held_rollup_acknowledges_no_request() -> None:
    async def scene(stage: Stage) -> None:
        stage.shard.acknowledges = False
        rollup = (await stage.shard.frame("rollup")).rollup
        stamp = rollup.timestamp_unix_nanos
        held = pb.Acknowledgement(echo="rollup", rollup_timestamp_unix_nanos=stamp, held=True)
        await stage.shard.send(ack=held)
        await asyncio.sleep(5)
        assert phase(stage.api, "a") == "Pending"

    play(scene, two_requests)


def test_changed_demand_is_told_a_moment_later_and_at_most_once_a_second() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        await asyncio.sleep(5)
        for number in range(20):
            stage.api.put(request(f"more-{number}"))
            await asyncio.sleep(0.2)
        times = [at for at, _ in stage.shard.of_kind("rollup")]
        assert 0.25 <= times[1] - (times[0] + 5) <= 0.5
        assert all(later - earlier >= 0.99 for earlier, later in pairwise(times))
        await asyncio.sleep(12)
        told = stage.shard.of_kind("rollup")[-1][1].rollup
        assert told.needs[0].aggregate_resources["cpu"] == "22"

    play(scene, two_requests)


def test_a_broken_watch_loses_and_doubles_nothing() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        stage.api.break_watches()
        stage.api.remove("CapacityRequest", "a", "default")
        stage.api.put(request("c"))
        stage.api.put(request("d"))
        await asyncio.sleep(60)
        told = stage.shard.of_kind("rollup")[-1][1].rollup
        assert told.needs[0].aggregate_resources["cpu"] == "3"

    play(scene, two_requests)


def test_a_bad_request_gets_an_event_and_is_counted_and_the_others_go_on() -> None:
    async def scene(stage: Stage) -> None:
        rollup = (await stage.shard.frame("rollup")).rollup
        assert rollup.needs[0].aggregate_resources["cpu"] == "2"
        await until(lambda: stage.api.all("Event"))
        event = stage.api.all("Event")[0]
        assert event["involvedObject"]["name"] == "bad"
        assert "many" in event["message"]
        assert stage.counted("capacity_requests_skipped_total", reason="bad_quantity") == 1

    def prepare(api: FakeApiServer) -> None:
        two_requests(api)
        api.put(request("bad", resources={"cpu": "many"}))

    play(scene, prepare)


def test_writes_that_fail_are_tried_again() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        failures = iter(range(3))
        stage.api.refuse = lambda r: (
            refusal(500, "InternalError", "no")
            if r.method == "PATCH" and next(failures, None) is not None
            else None
        )
        stage.api.put(request("c"))
        await until(lambda: phase(stage.api, "c") == "Acknowledged")

    play(scene, two_requests)


def test_a_machine_on_its_way_is_an_upcoming_node_and_goes_when_drained() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")

        def is_at(expected: str) -> bool:
            return upcoming(stage, "un-m-1") == expected

        for state, expected in (
            (S.MACHINE_STATE_CREATING, "Provisioning"),
            (S.MACHINE_STATE_IDLE, "Launched"),
            (S.MACHINE_STATE_CONFIGURING, "Registered"),
            (S.MACHINE_STATE_CONFIGURED, "Ready"),
        ):
            await stage.shard.send(node_state_update=machine("m-1", state))
            await until(partial(is_at, expected))
        found = stage.api.get("UpcomingNode", "un-m-1")
        assert found is not None
        assert found["metadata"]["annotations"]["bigfleet.lucy.sh/machine-id"] == "m-1"
        assert found["spec"] == {"labels": {"zone": "a"}, "resources": {"cpu": "4"}}
        assert found["status"]["providerID"] == "host-m-1"
        await stage.shard.send(node_state_update=machine("m-1", S.MACHINE_STATE_IDLE))
        await until(lambda: stage.api.get("UpcomingNode", "un-m-1") is None)
        assert stage.counted("upcoming_node_writes_total", op="delete", outcome="success") == 1

    play(scene)


def test_only_the_newest_state_of_a_machine_is_written() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        for state in (S.MACHINE_STATE_CREATING, S.MACHINE_STATE_IDLE, S.MACHINE_STATE_CONFIGURED):
            stage.operator.machines.hear(machine("m-1", state))
        await until(lambda: upcoming(stage, "un-m-1") == "Ready")
        writes = [path for method, path in stage.api.calls if "upcomingnodes/un-m-1" in path]
        assert len(writes) == 2

    play(scene)


def test_a_withdrawn_machine_and_one_never_spoken_of_again_go() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        update = machine("m-1", S.MACHINE_STATE_CREATING)
        await stage.shard.send(node_state_update=update)
        await until(lambda: upcoming(stage, "un-m-1"))
        withdrawn = machine("m-1", S.MACHINE_STATE_IDLE, withdrawn=True)
        await stage.shard.send(node_state_update=withdrawn)
        await until(lambda: not upcoming(stage, "un-m-1"))
        await stage.shard.send(node_state_update=machine("m-2", S.MACHINE_STATE_CREATING))
        await until(lambda: upcoming(stage, "un-m-2"))
        await stage.kill()
        stage.start()
        await asyncio.sleep(300)
        assert upcoming(stage, "un-m-2")
        await asyncio.sleep(400)
        assert not upcoming(stage, "un-m-2")

    play(scene)


def test_a_withdrawal_that_says_nothing_else_ends_a_node_that_is_ready() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        await stage.shard.send(node_state_update=machine("m-1", S.MACHINE_STATE_CONFIGURED))
        await until(lambda: upcoming(stage, "un-m-1") == "Ready")
        bare = pb.NodeStateUpdate(
            supersedes_key="node:m-1",
            machine_id="m-1",
            cluster_id="c-1",
            state=S.MACHINE_STATE_IDLE,
            withdrawn=True,
        )
        await stage.shard.send(node_state_update=bare)
        await until(lambda: not upcoming(stage, "un-m-1"))

    play(scene)


def test_nodes_are_told_and_named() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        await stage.shard.send(node_state_update=machine("m-1", S.MACHINE_STATE_CONFIGURED))
        await until(lambda: upcoming(stage, "un-m-1") == "Ready")
        stage.api.put(node("n-1", provider_id="aws:///a/host-m-1"))
        await until(
            lambda: any(
                one.node_observations.nodes and one.node_observations.nodes[0].machine_id == "m-1"
                for _, one in stage.shard.of_kind("node_observations")
            )
        )
        found = stage.api.get("UpcomingNode", "un-m-1")
        assert found is not None
        await until(lambda: stage.api.get("UpcomingNode", "un-m-1")["status"].get("nodeRef"))  # type: ignore[index]
        assert stage.counted("phantom_nodes") == 0
        stage.api.put(node("n-1", provider_id="aws:///a/host-m-1", ready=False))
        await until(lambda: stage.counted("phantom_nodes") == 1)

    play(scene)


def test_bootstrap_data_is_rendered_with_a_token_that_ends() -> None:
    template = "join {{ cluster_id }} {{ machine.id }} {{ bootstrap_token() }}"

    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        asked = pb.BootstrapRequest(
            request_id="r-1",
            cluster_id="c-1",
            machine=pb.BootstrapMachine(machine_id="m-1"),
        )
        await stage.shard.send(bootstrap_request=asked)
        answer = (await stage.shard.frame("bootstrap_response")).bootstrap_response
        assert answer.request_id == "r-1"
        assert answer.ttl_seconds == 900
        (secret,) = stage.api.all("Secret")
        token = f"{secret['stringData']['token-id']}.{secret['stringData']['token-secret']}"
        assert answer.user_data.decode() == f"join c-1 m-1 {token}"
        stage.api.refuse = lambda r: (
            refusal(403, "Forbidden", "no") if "secrets" in r.path else None
        )
        await stage.shard.send(bootstrap_request=pb.BootstrapRequest(request_id="r-2"))
        refused = (await stage.shard.frame("bootstrap_response", 2)).bootstrap_response
        assert refused.error
        assert not refused.user_data

    play(scene, template=template)


def verdict(stage: Stage, reason: int, message: str) -> pb.NeedVerdicts:
    """The one row is not met."""
    entry = stage.operator.rollups.get(("default", "a"))
    assert entry is not None
    fingerprint, group, size = entry.row.demand.key
    one = pb.NeedVerdict(
        profile_fingerprint=fingerprint, group=group, size_class=size, satisfied=False,
        reason=shardread.UnmetReason.ValueType(reason), message=message,
    )  # fmt: skip
    return pb.NeedVerdicts(verdicts=[one])


def condition(stage: Stage) -> dict[str, Any]:
    found = stage.api.get("CapacityRequest", "a", "default")
    assert found is not None
    conditions = found["status"].get("conditions", [{}])
    assert isinstance(conditions[0], dict)
    return conditions[0]


def test_a_row_that_stays_unmet_says_why_and_later_that_it_is_met() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        said = verdict(stage, shardread.UNMET_REASON_STOCK_OUT, "no such machine is left")
        await stage.shard.send(need_verdicts=said)
        await asyncio.sleep(20)
        assert not condition(stage)
        await until(lambda: condition(stage).get("status") == "True")
        assert condition(stage)["reason"] == "StockOut"
        assert condition(stage)["message"] == "no such machine is left"
        said.verdicts[0].satisfied = True
        await stage.shard.send(need_verdicts=said)
        await until(lambda: condition(stage).get("status") == "False")

    play(scene, two_requests)


def test_a_reason_that_changed_while_the_operator_was_away_is_written() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        gone = verdict(stage, shardread.UNMET_REASON_STOCK_OUT, "no such machine is left")
        await stage.shard.send(need_verdicts=gone)
        await until(lambda: condition(stage).get("reason") == "StockOut")
        await stage.kill()
        stage.start()
        await stage.shard.frame("rollup", len(stage.shard.of_kind("rollup")) + 1)
        expensive = verdict(stage, shardread.UNMET_REASON_SPEND_LIMIT, "the limit is reached")
        await stage.shard.send(need_verdicts=expensive)
        await until(lambda: condition(stage).get("reason") == "SpendLimit")

    play(scene, two_requests)


def test_a_lease_that_is_lost_and_taken_again_leaves_no_request_pending() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        stage.api.refuse = lambda r: (
            refusal(500, "InternalError", "no") if r.method == "PATCH" else None
        )
        stage.api.put(request("c"))
        await asyncio.sleep(15)
        await stage.lead_again()
        stage.api.refuse = lambda _r: None
        await until(lambda: phase(stage.api, "c") == "Acknowledged")

    play(scene, two_requests)


def test_an_upcoming_node_that_a_person_deletes_or_changes_is_put_right() -> None:
    async def scene(stage: Stage) -> None:
        await stage.shard.frame("rollup")
        await stage.shard.send(node_state_update=machine("m-1", S.MACHINE_STATE_CONFIGURED))
        await until(lambda: upcoming(stage, "un-m-1") == "Ready")
        stage.api.remove("UpcomingNode", "un-m-1")
        await until(lambda: upcoming(stage, "un-m-1") == "Ready")
        changed = stage.api.get("UpcomingNode", "un-m-1")
        assert changed is not None
        stage.api.put({**changed, "status": {"phase": "Failed"}})
        await until(lambda: upcoming(stage, "un-m-1") == "Ready")

    play(scene)
