"""How a session opens, is replaced, is routed and ends."""

import asyncio
import logging

import grpc
import pytest

from bigfleet.shard.operators.errors import SessionEnd
from bigfleet_api.v1alpha1 import shard_pb2
from operators import Desk, SessionStream, hello, machine, turns
from rollups import rollup, row, typical
from sim.loop import virtual_loop


async def end_of(line: SessionStream) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(SessionEnd) as raised:
        await line.ended()
    return raised.value.code, raised.value.text


@pytest.mark.parametrize(
    "frame",
    [
        shard_pb2.OperatorMessage(rollup=rollup(row())),
        shard_pb2.OperatorMessage(hello=shard_pb2.Hello()),
        shard_pb2.OperatorMessage(reclaim_ack=shard_pb2.ReclaimAck()),
        shard_pb2.OperatorMessage(),
    ],
)
async def test_the_first_frame_is_a_hello_with_a_cluster(frame: shard_pb2.OperatorMessage) -> None:
    desk = Desk()
    line = desk.call()
    line.say(frame)
    code, text = await end_of(line)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "Hello" in text
    assert desk.metrics.events == []


async def test_a_stream_that_ends_or_breaks_before_its_hello_is_refused() -> None:
    desk = Desk()
    closed, broken = desk.call(), desk.call()
    closed.close()
    broken.fail(ConnectionResetError("gone"))
    for line in (closed, broken):
        assert (await end_of(line))[0] is grpc.StatusCode.INVALID_ARGUMENT


async def test_the_hello_is_answered_first_and_the_ack_has_no_timestamp() -> None:
    desk = Desk()
    line = desk.call()
    line.say(hello=hello())
    ack = (await line.told()).ack
    assert (ack.echo, ack.coordinator_term, ack.shard_epoch) == ("hello", 3, 9)
    assert ack.rollup_timestamp_unix_nanos == 0


async def test_a_second_hello_is_answered_again_and_nothing_is_replayed() -> None:
    desk = Desk()
    desk.book.take(machine("m-1", cluster="c-1"))
    line = await desk.greet()
    assert (await line.told()).node_state_update.machine_id == "m-1"
    line.say(hello=hello())
    assert (await line.told()).ack.echo == "hello"
    await turns()
    assert line.heard() == []


async def test_a_second_hello_of_another_cluster_ends_the_stream() -> None:
    line = await Desk().greet()
    line.say(hello=hello("c-2"))
    assert (await end_of(line))[0] is grpc.StatusCode.INVALID_ARGUMENT


async def test_who_claims_another_clusters_id_is_turned_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    for identity in ("bigfleet://cluster/c-2", "bigfleet://admin", ""):
        line = desk.call(identity)
        line.say(hello=hello("c-1"))
        assert (await end_of(line))[0] is grpc.StatusCode.PERMISSION_DENIED
    assert desk.metrics.strangers == 3
    assert [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR] == [
        "operator session identity rejected"
    ] * 3


async def test_the_right_certificate_and_plaintext_are_let_in() -> None:
    desk = Desk()
    for identity in ("bigfleet://cluster/c-1", None):
        line = desk.call(identity)
        line.say(hello=hello("c-1"))
        assert (await line.told()).ack.echo == "hello"


async def test_a_new_session_replaces_the_old_one() -> None:
    desk = Desk()
    closed: list[str] = []
    desk.sessions.on_close.append(closed.append)
    old = await desk.greet()
    new = await desk.greet()
    code, _ = await end_of(old)
    assert code is grpc.StatusCode.ABORTED
    new.say(hello=hello())
    assert (await new.told()).ack.echo == "hello"
    assert desk.sessions.clusters() == ["c-1"]
    assert closed == ["c-1"]
    assert desk.metrics.events == [("installed", 1), ("replaced", 1), ("installed", 1)]


async def test_the_end_of_a_replaced_session_does_not_touch_the_new_one() -> None:
    desk = Desk()
    lines = [await desk.greet() for _ in range(5)]
    await turns()
    assert desk.sessions.connected("c-1")
    assert [line.serving.done() for line in lines] == [True] * 4 + [False]
    lines[-1].close()
    await lines[-1].ended()
    assert not desk.sessions.connected("c-1")
    assert desk.metrics.events[-1] == ("removed", 0)


async def test_closing_is_ok_and_the_demand_stays() -> None:
    desk = Desk()
    line = await desk.greet()
    line.say(rollup=rollup(row()))
    assert (await line.told()).ack.echo == "rollup"
    line.close()
    await line.ended()
    assert len(desk.needs.rows("c-1")) == 1


async def test_what_was_said_before_closing_is_still_taken_and_answered() -> None:
    desk = Desk()
    line = desk.call()
    line.say(hello=hello())
    line.say(rollup=rollup(row()))
    line.close()
    await line.ended()
    assert [frame.ack.echo for frame in line.heard()] == ["hello", "rollup"]
    assert desk.needs.accepted("c-1")


async def test_a_receive_error_ends_the_session_as_it_came(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    line = await desk.greet()
    line.fail(ConnectionResetError("the cable"))
    with pytest.raises(ConnectionResetError, match="the cable"):
        await line.ended()
    assert "operator session recv error" in caplog.messages
    assert not desk.sessions.connected("c-1")


async def test_frames_without_a_payload_are_logged_and_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    line = await Desk().greet()
    line.say(shard_pb2.OperatorMessage())
    unknown = b"\xfa\x3e\x03new"  # field 1007, which no release of today knows
    line.say(shard_pb2.OperatorMessage.FromString(unknown))
    line.say(hello=hello())
    assert (await line.told()).ack.echo == "hello"
    assert sum(m.startswith("operator message handling") for m in caplog.messages) == 2


async def test_unknown_request_and_instruction_ids_are_passed_over_silently(
    caplog: pytest.LogCaptureFixture,
) -> None:
    line = await Desk().greet()
    caplog.clear()
    line.say(blob=shard_pb2.BootstrapBlobResponse(request_id="unknown"))
    line.say(reclaimed=shard_pb2.ReclaimAck(instruction_id="unknown", nodes_started=1))
    line.say(hello=hello())
    assert (await line.told()).ack.echo == "hello"
    assert caplog.records == []


async def test_opening_and_closing_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    line = await Desk().greet("c-9", "v7")
    line.close()
    await line.ended()
    logged = [(r.getMessage(), r.__dict__["cluster"]) for r in caplog.records]
    assert ("operator session opened", "c-9") in logged
    assert ("operator session closed", "c-9") in logged


def endings(log: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    """Why sessions were ended or not opened, by what the log says of it."""
    return [
        (r.__dict__.get("cluster", ""), r.__dict__.get("code", ""), r.__dict__["error"])
        for r in log.records
        if r.getMessage().startswith("operator message handling") and r.levelname == "WARNING"
    ]


async def test_why_no_session_is_opened_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    line = Desk().call("bigfleet://cluster/c-1")
    line.say(rollup=rollup(row()))
    await end_of(line)
    ((_, _, error),) = endings(caplog)
    assert "the first frame must be a Hello that names a cluster: it is rollup" in error
    assert caplog.records[0].__dict__["identity"] == "bigfleet://cluster/c-1"


async def test_why_a_session_is_ended_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    desk = Desk(outbox_bound=2)
    line = await desk.greet()
    line.say(hello=hello("c-2"))
    await end_of(line)
    full = SessionStream(window=1)
    full.serving = asyncio.ensure_future(desk.sessions.serve(full))
    full.say(hello=hello())
    await full.told()
    for _ in range(4):
        desk.sessions.send("c-1", shard_pb2.ShardMessage(ack=shard_pb2.Acknowledgement()))
    await end_of(full)
    first, second = endings(caplog)
    assert first[:2] == ("c-1", "INVALID_ARGUMENT")
    assert "a Hello names 'c-2'" in first[2]
    assert second[:2] == ("c-1", "RESOURCE_EXHAUSTED")
    assert "2 frames wait and the operator does not read them" in second[2]
    closed = [r for r in caplog.records if r.getMessage() == "operator session closed"]
    assert [r.__dict__["code"] for r in closed] == ["INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"]


def test_a_stream_that_never_says_whose_it_is_is_not_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def silent() -> None:
        line = Desk().call()
        await asyncio.wait([line.serving])
        code, text = await end_of(line)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert "nothing came within 30 s" in text

    virtual_loop(1).run(silent())
    assert endings(caplog)


# -- the outbox ----------------------------------------------------------------------------------


async def test_an_operator_that_stops_reading_loses_its_session() -> None:
    desk = Desk(outbox_bound=8)
    line = SessionStream(window=1)
    line.serving = asyncio.ensure_future(desk.sessions.serve(line))
    line.say(hello=hello())
    await line.told()
    for number in range(20):
        line.say(rollup=rollup(row(), at=number))
        await turns(3)
    code, _ = await end_of(line)
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert not desk.sessions.connected("c-1")
    again = await desk.greet()
    again.say(rollup=rollup(row(), at=99))
    assert (await again.told()).ack.rollup_timestamp_unix_nanos == 99


async def test_a_session_that_ends_takes_nothing_at_once() -> None:
    desk = Desk(outbox_bound=2)
    line = SessionStream(window=1)
    line.serving = asyncio.ensure_future(desk.sessions.serve(line))
    line.say(hello=hello())
    await line.told()
    frame = shard_pb2.ShardMessage(ack=shard_pb2.Acknowledgement(echo="x"))
    taken = [desk.sessions.send("c-1", frame) for _ in range(4)]
    assert taken == [True, True, False, False]
    assert not desk.sessions.connected("c-1")
    assert (await end_of(line))[0] is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_replay_larger_than_the_bound_arrives_whole() -> None:
    desk = Desk(outbox_bound=8)
    for number in range(100):
        desk.book.take(machine(f"m-{number:03}", cluster="c-1"))
    line = SessionStream(window=1)
    line.serving = asyncio.ensure_future(desk.sessions.serve(line))
    line.say(hello=hello())
    await turns()
    line.say(rollup=rollup(row(cpu="400")))
    told = []
    for _ in range(102):
        told.append(await line.told())
        line.reads(1)
    updates = [f.node_state_update.machine_id for f in told if f.HasField("node_state_update")]
    assert updates == [f"m-{number:03}" for number in range(100)]
    acks = [at for at, frame in enumerate(told) if frame.ack.echo == "rollup"]
    assert len(acks) == 1, "the roll-up is read before the replay has been taken"
    assert acks[0] < 50


# -- roll-ups ------------------------------------------------------------------------------------


async def test_a_roll_up_is_acknowledged_with_its_timestamp_and_wakes_a_cycle() -> None:
    desk = Desk()
    line = await desk.greet()
    line.say(rollup=rollup(row(), at=77))
    ack = (await line.told()).ack
    assert (ack.echo, ack.rollup_timestamp_unix_nanos, ack.held) == ("rollup", 77, False)
    assert (ack.coordinator_term, ack.shard_epoch, ack.reason) == (3, 9, "")
    assert desk.woken == ["c-1"]
    assert desk.metrics.accepted == ["c-1"]


async def test_a_roll_up_replaces_everything_said_before() -> None:
    desk = Desk()
    line = await desk.greet()
    for at, pools in ((1, "ab"), (2, "bc")):
        line.say(rollup=rollup(*(row(pool) for pool in pools), at=at))
        await line.told()
    rows = {n.profile.requirements[0].values[0]: n.arrival_ns for n in desk.needs.rows("c-1")}
    assert rows == {"b": 1, "c": 2}


async def test_a_quarantined_roll_up_is_acknowledged_as_held_and_wakes_no_task(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    line = await desk.greet()
    line.say(rollup=rollup(row()))
    await line.told()
    for at, held in ((10, True), (20, True), (30, False)):
        desk.clock.advance(30)
        line.say(rollup=rollup(at=at))
        ack = (await line.told()).ack
        assert (ack.echo, ack.rollup_timestamp_unix_nanos, ack.held) == ("rollup", at, held)
        assert desk.metrics.held["c-1"] is held
        assert len(desk.needs.rows("c-1")) == int(held)
    assert desk.woken == ["c-1", "c-1"]
    assert caplog.messages == ["rollup quarantined"] * 2 + ["quarantined rollup accepted"]


async def test_after_a_restart_a_held_one_says_nothing_of_what_the_cluster_wants() -> None:
    desk = Desk()
    desk.book.take(machine("m-1", cluster="c-1"))
    line = await desk.greet()
    line.say(rollup=rollup())
    await turns()
    assert line.heard()[-1].ack.held
    assert not desk.needs.has_reported("c-1")
    assert not desk.needs.accepted("c-1")


async def test_a_refused_roll_up_says_why_and_the_old_demand_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()
    line = await desk.greet()
    line.say(rollup=rollup(row(), at=1))
    await line.told()
    line.say(rollup=rollup(row(cpu="much"), row("b"), at=2))
    ack = (await line.told()).ack
    assert (ack.echo, ack.rollup_timestamp_unix_nanos) == ("rollup_rejected", 2)
    assert "'much' is not a quantity" in ack.reason
    assert [n.aggregate for n in desk.needs.rows("c-1")] == [{"cpu": 4000}]
    assert desk.metrics.rejected == ["c-1"]
    assert desk.woken == ["c-1"]
    refused = "rollup rejected at ingest validation; keeping last-known-good demand"
    assert caplog.messages == [refused]
    line.say(rollup=rollup(row("b"), at=3))
    assert (await line.told()).ack.echo == "rollup"


@pytest.mark.parametrize("other", ["c-2", ""])
async def test_a_roll_up_of_another_cluster_ends_the_stream_without_an_ack(other: str) -> None:
    desk = Desk()
    line = await desk.greet()
    line.say(rollup=rollup(row(), at=1))
    await line.told()
    line.say(rollup=rollup(row("b"), cluster=other, at=2))
    assert (await end_of(line))[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert line.heard() == []
    assert desk.metrics.rejected == ["c-1"]
    assert desk.needs.clusters() == ["c-1"]
    assert [n.arrival_ns for n in desk.needs.rows("c-1")] == [1]


async def test_a_newer_roll_up_replaces_a_waiting_one_and_answers_overtake_both() -> None:
    desk = Desk()
    gate = asyncio.Event()

    async def slow(function):  # type: ignore[no-untyped-def]
        await gate.wait()
        return function()

    desk.rollups.offload = slow
    line = await desk.greet()
    for step in range(3):
        line.say(rollup=typical(1_001, step=step))
        await turns()
    line.say(hello=hello())
    assert (await line.told()).ack.echo == "hello"
    gate.set()
    acks = [(await line.told()).ack.rollup_timestamp_unix_nanos for _ in range(2)]
    assert acks == [1, 3]
    await turns()
    assert line.heard() == []


async def test_a_roll_up_whose_session_was_replaced_meanwhile_is_not_taken() -> None:
    desk = Desk()
    gate = asyncio.Event()

    async def slow(function):  # type: ignore[no-untyped-def]
        await gate.wait()
        return function()

    desk.rollups.offload = slow
    old = await desk.greet()
    old.say(rollup=typical(1_001))
    await turns()
    new = await desk.greet()
    new.say(rollup=rollup(row(), at=5))
    assert (await new.told()).ack.rollup_timestamp_unix_nanos == 5
    gate.set()
    await turns()
    assert len(desk.needs.rows("c-1")) == 1
    assert old.heard() == []


async def test_forgetting_a_cluster_lets_go_of_its_demand() -> None:
    desk = Desk()
    line = await desk.greet()
    line.say(rollup=rollup(row()))
    await line.told()
    line.close()
    await line.ended()
    desk.sessions.forget("c-1")
    assert desk.needs.clusters() == []
    assert not desk.needs.has_reported("c-1")
