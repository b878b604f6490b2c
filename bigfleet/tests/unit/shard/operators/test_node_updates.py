"""Which clusters are told of which changes of machines."""

import asyncio
from dataclasses import replace

import pytest

from bigfleet.model import Machine, MachineState
from bigfleet.shard.machines.node_observations import NodeSeen
from bigfleet.shard.operators.errors import SessionEnd
from bigfleet.shard.operators.node_updates import NodeUpdates
from bigfleet_api.v1alpha1 import provider_pb2, shard_pb2
from operators import Desk, SessionStream, hello, machine, stamp, turns

S = MachineState
Told = tuple[str, str, bool]


async def told(line: SessionStream) -> list[Told]:
    """Machine, state and whether it is withdrawn, of each update that came."""
    await turns()
    updates = [frame.node_state_update for frame in line.heard()]
    return [(u.machine_id, S(u.state).title, u.withdrawn) for u in updates]


async def test_the_replay_tells_of_machines_bound_to_or_stamped_for_the_cluster() -> None:
    desk = Desk()
    for known in (
        machine("m-1", cluster="c-1"),
        machine("m-2", S.DRAINING, cluster="c-1"),
        machine("m-3", S.CREATING, stamped="c-1"),
        machine("m-4", S.IDLE, stamped="c-1"),
        machine("m-5", cluster="c-2"),
        machine("m-6", S.IDLE),
    ):
        desk.book.take(known)
    line = await desk.greet()
    await turns()
    updates = [frame.node_state_update for frame in line.heard()]
    assert [(u.machine_id, S(u.state)) for u in updates] == [
        ("m-1", S.CONFIGURED), ("m-2", S.DRAINING), ("m-3", S.CREATING), ("m-4", S.IDLE),
    ]  # fmt: skip
    assert all(u.cluster_id == "c-1" for u in updates)
    assert [u.provider_id for u in updates] == ["i-m-1", "i-m-2", "", "i-m-4"]


async def test_every_state_of_a_machines_life_is_told_and_idle_ends_it() -> None:
    desk = Desk()
    line = await desk.greet()
    desk.book.take(machine("m-1", S.SPECULATIVE))
    desk.book.start("m-1", S.CREATING, stamp=stamp("c-1"))
    assert await told(line) == [("m-1", "Creating", False)]
    desk.book.take(machine("m-1", S.IDLE))
    assert await told(line) == [("m-1", "Idle", False)]
    desk.book.start("m-1", S.CONFIGURING, "c-1")
    assert await told(line) == [("m-1", "Configuring", False)]
    desk.book.take(machine("m-1", cluster="c-1"))
    assert await told(line) == [("m-1", "Configured", False)]
    desk.book.start("m-1", S.DRAINING)
    assert await told(line) == [("m-1", "Draining", False)]
    desk.book.take(machine("m-1", S.IDLE))
    assert await told(line) == [("m-1", "Idle", True)]
    desk.book.start("m-1", S.DELETING)
    assert await told(line) == []


async def test_a_machine_in_its_grace_is_draining_also_for_an_operator_that_was_away() -> None:
    desk = Desk()
    line = await desk.greet()
    desk.book.take(machine("m-1", cluster="c-1"))
    await told(line)
    desk.book.leave("m-1", None)
    assert await told(line) == [("m-1", "Draining", False)]
    again = await desk.greet()
    assert await told(again) == [("m-1", "Draining", False)]
    desk.book.stay("m-1")
    assert await told(again) == [("m-1", "Configured", False)]


async def test_a_state_that_is_over_within_a_moment_is_not_told() -> None:
    desk = Desk()
    line = await desk.greet()
    desk.book.take(machine("m-1", S.SPECULATIVE))
    desk.book.start("m-1", S.CREATING, stamp=stamp("c-1"))
    desk.book.take(machine("m-1", S.IDLE))
    desk.book.start("m-1", S.CONFIGURING, "c-1")
    assert await told(line) == [("m-1", "Configuring", False)]
    desk.book.start("m-1", S.IDLE)
    desk.book.take(machine("m-1", cluster="c-1"))
    assert await told(line) == [("m-1", "Configured", False)]


async def test_of_an_order_that_still_waits_its_turn_nothing_is_told_for_a_while() -> None:
    desk = Desk()
    line = await desk.greet()
    desk.book.take(machine("m-1", S.IDLE))
    desk.book.mark_busy("m-1")
    desk.book.start("m-1", S.CONFIGURING, "c-1")
    assert await told(line) == []
    desk.book.free("m-1")
    assert await told(line) == [("m-1", "Configuring", False)]


async def test_an_order_that_waits_too_long_is_told_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bigfleet.shard.operators.node_updates.PATIENCE_SECONDS", 0.0)
    desk = Desk()
    line = await desk.greet()
    desk.book.take(machine("m-1", S.IDLE))
    desk.book.mark_busy("m-1")
    desk.book.start("m-1", S.CONFIGURING, "c-1")
    assert await told(line) == [("m-1", "Configuring", False)]


async def test_idle_after_configured_is_told_when_draining_was_not_seen() -> None:
    desk = Desk()
    desk.book.take(machine("m-1", cluster="c-1"))
    line = await desk.greet()
    await told(line)
    desk.book.take(machine("m-1", S.IDLE))
    desk.book.stamp("m-1", None)
    assert (await told(line))[0][:2] == ("m-1", "Idle")


async def test_a_configuring_given_up_is_withdrawn() -> None:
    desk = Desk()
    line = await desk.greet()
    desk.book.take(machine("m-1", S.IDLE))
    desk.book.start("m-1", S.CONFIGURING, "c-1", stamp("c-1"))
    desk.book.revert("m-1")
    assert await told(line) == [("m-1", "Idle", True)], "the queued frame is superseded"


async def test_a_machine_taken_by_another_cluster_is_withdrawn_from_the_first() -> None:
    desk = Desk()
    first, second = await desk.greet("c-1"), await desk.greet("c-2")
    desk.book.take(machine("m-1", S.IDLE, stamped="c-1"))
    assert await told(first) == [("m-1", "Idle", False)]
    desk.book.start("m-1", S.CONFIGURING, "c-2", stamp("c-2"))
    assert await told(first) == [("m-1", "Idle", True)]
    assert await told(second) == [("m-1", "Configuring", False)]


async def test_a_preempted_machine_ends_with_one_cluster_and_begins_with_the_other() -> None:
    desk = Desk()
    victim, preemptor = await desk.greet("c-1"), await desk.greet("c-2")
    desk.book.take(machine("m-1", cluster="c-1", stamped="c-1"))
    desk.book.leave("m-1", stamp("c-2"))
    desk.book.start("m-1", S.DRAINING)
    desk.book.take(machine("m-1", S.IDLE))
    assert await told(victim) == [("m-1", "Idle", True)]
    assert await told(preemptor) == [("m-1", "Idle", False)]


async def test_a_vanished_machine_is_told_as_lost() -> None:
    desk = Desk()
    desk.book.take(machine("m-1", cluster="c-1"))
    line = await desk.greet()
    await told(line)
    desk.book.vanish("m-1")
    assert await told(line) == [("m-1", "Failed", True)]


async def test_a_failed_machine_without_a_binding_is_shown_until_it_is_healed() -> None:
    desk = Desk()
    line = await desk.greet()
    desk.book.take(machine("m-1", S.CREATING, stamped="c-1"))
    desk.book.take(machine("m-1", S.FAILED, last_error="no power"))
    await turns()
    failed = line.heard()[-1].node_state_update
    assert (S(failed.state), failed.last_error, failed.withdrawn) == (S.FAILED, "no power", False)
    again = await desk.greet()
    assert await told(again) == [("m-1", "Failed", False)]
    desk.book.take(machine("m-1", S.SPECULATIVE))
    assert await told(again) == [("m-1", "Speculative", True)]


async def test_what_is_not_shown_is_not_told() -> None:
    desk = Desk()
    desk.book.take(machine("m-1", cluster="c-1"))
    line = await desk.greet()
    await told(line)
    desk.book.exclude("m-1", True)
    desk.book.take(replace(machine("m-1", cluster="c-1"), price_per_hour=5.0))
    assert await told(line) == []
    desk.book.take(replace(machine("m-1", cluster="c-1"), labels={"pool": "b"}))
    assert await told(line) == [("m-1", "Configured", False)]


async def test_a_node_name_is_told_when_it_becomes_known() -> None:
    desk = Desk()
    desk.book.take(machine("m-1", cluster="c-1"))
    line = await desk.greet()
    await told(line)
    desk.observed.set_nodes("c-1", [NodeSeen("node-1", machine_id="m-1", ready=True)], full=True)
    await turns()
    assert [f.node_state_update.node_name for f in line.heard()] == ["node-1"]
    desk.observed.set_nodes("c-1", [NodeSeen("node-1", machine_id="m-1", ready=True)], full=True)
    assert await told(line) == []


def naming(*machine_ids: str, full: bool = True) -> shard_pb2.NodeObservations:
    """A cluster takes these machines for its nodes."""
    nodes = [shard_pb2.NodeObservation(node_name=f"n-{m}", machine_id=m) for m in machine_ids]
    return shard_pb2.NodeObservations(nodes=nodes, full=full)


@pytest.mark.parametrize(
    "now",
    [
        machine("m-1", S.IDLE),
        machine("m-1", cluster="c-2"),
        machine("m-1", S.IDLE, stamped="c-2"),
        machine("m-1", S.SPECULATIVE),
    ],
)
async def test_a_machine_that_left_while_the_shard_was_dead_is_taken_back_when_it_is_named(
    now: Machine,
) -> None:
    desk = Desk()
    desk.book.take(now)
    line = await desk.greet()
    line.say(seen=naming("m-1", full=False))
    assert await told(line) == [("m-1", "Idle", True)]


async def test_of_a_machine_of_another_cluster_only_that_is_told() -> None:
    desk = Desk()
    desk.book.take(machine("m-1", cluster="c-2"))
    line = await desk.greet("c-1")
    line.say(seen=naming("m-1"))
    assert (await line.told()).node_state_update == shard_pb2.NodeStateUpdate(
        supersedes_key="node:m-1",
        machine_id="m-1",
        cluster_id="c-1",
        state=provider_pb2.MACHINE_STATE_IDLE,
        withdrawn=True,
    )


async def test_a_machine_that_was_given_to_another_shard_is_taken_back_when_it_is_named() -> None:
    desk = Desk()
    desk.given.add("m-1")
    line = await desk.greet()
    line.say(seen=naming("m-1"))
    assert await told(line) == [("m-1", "Idle", True)]


async def test_what_is_a_clusters_own_or_not_known_yet_is_not_taken_back() -> None:
    desk = Desk()
    desk.book.take(machine("m-1", cluster="c-1"))
    desk.book.take(machine("m-2", S.DRAINING, cluster="c-1"))
    desk.book.take(machine("m-3", S.IDLE, stamped="c-1"))
    line = await desk.greet()
    await told(line)
    line.say(seen=naming("m-1", "m-2", "m-3", "m-4"))
    assert [what for what in await told(line) if what[2]] == []
    # The next List says what it is.
    desk.book.take(machine("m-4", S.IDLE))
    line.say(seen=naming("m-1", "m-2", "m-3", "m-4"))
    assert await told(line) == [("m-4", "Idle", True)]


async def test_a_machine_is_taken_back_once_and_again_if_it_came_and_left_in_between() -> None:
    desk = Desk()
    desk.book.take(machine("m-1", S.IDLE))
    line = await desk.greet()
    for full in (True, False, True):
        line.say(seen=naming("m-1", full=full))
    assert await told(line) == [("m-1", "Idle", True)]
    desk.book.take(machine("m-1", cluster="c-1"))
    line.say(seen=naming("m-1"))
    await told(line)
    desk.book.take(machine("m-1", S.IDLE))
    await told(line)
    line.say(seen=naming("m-1"))
    assert await told(line) == [("m-1", "Idle", True)]


async def test_the_cluster_left_on_an_idle_record_means_nothing() -> None:
    desk = Desk()
    line = await desk.greet()
    desk.book.take(machine("m-1", S.IDLE, cluster="c-1"))
    assert await told(line) == []


async def test_a_cluster_that_was_away_is_told_what_it_lost_meanwhile() -> None:
    desk = Desk()
    for name in ("m-1", "m-2", "m-3"):
        desk.book.take(machine(name, cluster="c-1"))
    line = await desk.greet()
    line.close()
    await line.ended()
    desk.book.start("m-1", S.DRAINING)
    desk.book.take(machine("m-1", S.IDLE))
    desk.book.vanish("m-2")
    again = await desk.greet()
    assert sorted(await told(again)) == [
        ("m-1", "Idle", True), ("m-2", "Failed", True), ("m-3", "Configured", False),
    ]  # fmt: skip
    third = await desk.greet()
    assert await told(third) == [("m-3", "Configured", False)]


async def test_farewells_that_were_never_sent_are_told_in_the_next_session() -> None:
    desk = Desk()
    desk.book.take(machine("m-1", cluster="c-1"))
    desk.book.take(machine("m-2", cluster="c-1"))
    deaf = SessionStream(window=1)
    deaf.serving = asyncio.ensure_future(desk.sessions.serve(deaf))
    deaf.say(hello=hello())
    await turns()
    desk.book.vanish("m-1")
    desk.book.start("m-2", S.DRAINING)
    again = await desk.greet()
    assert await told(again) == [("m-1", "Failed", True), ("m-2", "Draining", False)]
    with pytest.raises(SessionEnd):
        await deaf.ended()


async def test_a_machine_that_came_back_meanwhile_is_told_as_it_is() -> None:
    desk = Desk()
    desk.book.take(machine("m-1", cluster="c-1"))
    desk.book.vanish("m-1")
    desk.book.take(machine("m-1", cluster="c-1"))
    assert await told(await desk.greet()) == [("m-1", "Configured", False)]


class Columns:
    """Machines a test changes behind the replay's back."""

    def __init__(self, *machines: Machine) -> None:
        self.on_change: list[object] = []
        self.known = {machine.id: machine for machine in machines}

    def get(self, machine_id: str) -> Machine | None:
        return self.known.get(machine_id)

    def busy(self, machine_id: str) -> bool:
        return False

    def bound(self, cluster: str) -> list[str]:
        return [m.id for m in self.known.values() if m.cluster == cluster]


def test_the_replay_reads_a_machine_when_its_turn_comes() -> None:
    columns = Columns(machine("m-1", cluster="c-1"), machine("m-2", cluster="c-1"))
    updates = NodeUpdates(columns, lambda _: "", Desk().sessions)  # type: ignore[arg-type]
    turn = updates.replay("c-1")
    columns.known["m-1"] = machine("m-1", S.DRAINING, cluster="c-1")
    del columns.known["m-2"]
    frames = [updates.frame_now("c-1", machine_id) for machine_id in turn]
    assert frames[0] is not None
    assert S(frames[0].node_state_update.state) is S.DRAINING
    assert frames[1] is None


@pytest.mark.parametrize("state", [S.SPECULATIVE, S.DELETING, S.IDLE])
async def test_unbound_machines_concern_no_cluster(state: MachineState) -> None:
    desk = Desk()
    line = await desk.greet()
    desk.book.take(machine("m-1", state))
    assert await told(line) == []


async def test_a_fleet_seen_at_once_does_not_overflow_a_session() -> None:
    desk = Desk(outbox_bound=8)
    line = await desk.greet()
    for number in range(200):
        desk.book.take(machine(f"m-{number:03}", cluster="c-1"))
    updates = [(await line.told()).node_state_update.machine_id for _ in range(200)]
    assert updates == [f"m-{number:03}" for number in range(200)]


async def test_changes_that_an_operator_does_not_read_end_its_session() -> None:
    desk = Desk(outbox_bound=8)
    for number in range(20):
        desk.book.take(machine(f"m-{number:03}", cluster="c-1"))
    line = await desk.greet()
    await told(line)
    for number in range(20):
        desk.book.start(f"m-{number:03}", S.DRAINING)
    assert not desk.sessions.connected("c-1")
    again = await desk.greet()
    assert await told(again) == [(f"m-{number:03}", "Draining", False) for number in range(20)]
