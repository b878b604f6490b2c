"""Bootstrap data, reclaims and observations: what is asked of a cluster and what it answers."""

import asyncio

import pytest

from bigfleet.model import MachineState, Profile, Requirement, RequirementOperator
from bigfleet.shard.operators.errors import BlobError, NoSessionError
from bigfleet.shard.operators.messages import Blob, Instruction
from bigfleet_api.v1alpha1 import shard_pb2
from clocks import SECOND
from operators import Desk, SessionStream, hello, machine, turns

PROFILE = Profile.of(
    [
        Requirement.of("pool", RequirementOperator.IN, ["a"]),
        Requirement.of("rack", RequirementOperator.SAME),
    ]
)
IDLE = machine("m-1", MachineState.IDLE)


def ask(desk: Desk, seconds: float = 30.0) -> asyncio.Task[Blob]:
    return asyncio.ensure_future(desk.sessions.bootstrap("c-1", PROFILE, IDLE, seconds))


async def asked(line: SessionStream) -> shard_pb2.BootstrapRequest:
    frame = await line.told()
    assert frame.HasField("bootstrap_request")
    return frame.bootstrap_request


def answer(request_id: str, **fields: object) -> shard_pb2.BootstrapBlobResponse:
    return shard_pb2.BootstrapBlobResponse(request_id=request_id, **fields)  # type: ignore[arg-type]


# -- bootstrap -----------------------------------------------------------------------------------


async def test_a_blob_arrives_byte_for_byte() -> None:
    desk = Desk()
    line = await desk.greet()
    waiting = ask(desk)
    request = await asked(line)
    assert (request.cluster_id, request.machine.machine_id) == ("c-1", "m-1")
    assert [(r.key, r.operator) for r in request.requirements] == [("pool", 1), ("rack", 5)]
    assert request.machine.provider_id == "i-m-1"
    data = bytes(range(256))
    line.say(blob=answer(request.request_id, user_data=data))
    assert await waiting == Blob(data, 0)


async def test_a_life_counts_from_receipt() -> None:
    desk = Desk()
    line = await desk.greet()
    waiting = ask(desk)
    request = await asked(line)
    desk.clock.advance(5)
    line.say(blob=answer(request.request_id, user_data=b"x", ttl_seconds=60))
    await turns()
    desk.clock.advance(10)
    assert (await waiting).expires_ns == desk.clock.now() + 50 * SECOND


async def test_requests_have_ids_of_their_own_and_answers_may_cross() -> None:
    desk = Desk()
    line = await desk.greet()
    waiting = [ask(desk) for _ in range(3)]
    requests = [await asked(line) for _ in waiting]
    ids = [request.request_id for request in requests]
    assert len(set(ids)) == 3
    assert all(len(i) == 32 and int(i, 16) >= 0 for i in ids)
    for request_id in reversed(ids):
        line.say(blob=answer(request_id, user_data=request_id.encode()))
    assert [(await w).user_data.decode() for w in waiting] == ids


@pytest.mark.parametrize(
    "fields", [{"error": "no template", "user_data": b"ignored"}, {"ttl_seconds": -1}]
)
async def test_an_error_or_a_negative_life_is_a_refusal(fields: dict[str, object]) -> None:
    desk = Desk()
    line = await desk.greet()
    waiting = ask(desk)
    line.say(blob=answer((await asked(line)).request_id, **fields))
    with pytest.raises(BlobError, match="c-1"):
        await waiting


async def test_no_answer_in_time_and_a_late_one_is_passed_over() -> None:
    desk = Desk()
    line = await desk.greet()
    waiting = ask(desk, seconds=0.0)
    request = await asked(line)
    with pytest.raises(TimeoutError):
        await waiting
    line.say(blob=answer(request.request_id, user_data=b"late"))
    line.say(hello=hello())
    assert (await line.told()).ack.echo == "hello"


async def test_without_a_session_no_caller_waits() -> None:
    with pytest.raises(NoSessionError, match="c-1"):
        await Desk().sessions.bootstrap("c-1", PROFILE, IDLE, 30)


async def test_a_wait_ends_with_its_session_and_is_not_repeated_in_the_next() -> None:
    desk = Desk()
    line = await desk.greet()
    waiting = ask(desk)
    request = await asked(line)
    new = await desk.greet()
    with pytest.raises(NoSessionError):
        await waiting
    new.say(blob=answer(request.request_id, user_data=b"of the old session"))
    await turns()
    assert new.heard() == []
    closing = ask(desk)
    await asked(new)
    new.close()
    with pytest.raises(NoSessionError):
        await closing


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    desk = Desk()
    line = await desk.greet()
    waiting = ask(desk)
    request = await asked(line)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    line.say(blob=answer(request.request_id))
    await turns()
    assert desk.sessions.connected("c-1")


async def test_asking_when_there_is_no_room_ends_the_session() -> None:
    desk = Desk(outbox_bound=2)
    line = SessionStream(window=0)
    line.serving = asyncio.ensure_future(desk.sessions.serve(line))
    line.say(hello=hello())
    await turns()
    waiting = [ask(desk) for _ in range(4)]
    for wait in waiting:
        with pytest.raises(NoSessionError):
            await wait


# -- reclaim -------------------------------------------------------------------------------------


async def test_an_instruction_names_one_node_and_its_grace() -> None:
    desk = Desk()
    line = await desk.greet()
    assert desk.sessions.send_reclaim("c-1", Instruction("r-1", "node-1", 120, 7, reason=2))
    frame = (await line.told()).reclaim_instruction
    assert (frame.instruction_id, list(frame.nodes)) == ("r-1", ["node-1"])
    assert (frame.grace_period_seconds, frame.preemptor_priority, frame.cancel) == (120, 7, False)
    assert frame.reason == shard_pb2.RECLAIM_REASON_PREEMPTED


async def test_a_cancel_goes_only_to_operators_that_state_their_version() -> None:
    desk = Desk()
    old, new = await desk.greet("c-1", ""), await desk.greet("c-2", "v1")
    assert not desk.sessions.send_reclaim("c-1", Instruction("r-1", "node-1", 0, cancel=True))
    assert desk.sessions.send_reclaim("c-2", Instruction("r-1", "node-1", 0, cancel=True))
    assert (await new.told()).reclaim_instruction.cancel
    await turns()
    assert old.heard() == []
    assert not desk.sessions.send_reclaim("c-3", Instruction("r-1", "node-1", 600))


async def test_verdicts_go_only_to_operators_that_state_their_version() -> None:
    desk = Desk()
    await desk.greet("c-1", "")
    new = await desk.greet("c-2", "v1")
    verdicts = shard_pb2.ShardMessage(need_verdicts=shard_pb2.NeedVerdicts())
    assert not desk.sessions.send("c-1", verdicts)
    assert desk.sessions.send("c-2", verdicts)
    assert (await new.told()).HasField("need_verdicts")
    assert [desk.sessions.knows_additions(c) for c in ("c-1", "c-2", "c-3")] == [False, True, False]


async def test_first_and_second_acks_are_told_apart() -> None:
    desk = Desk()
    heard: list[tuple[str, str, bool, tuple[str, ...]]] = []
    desk.sessions.on_reclaim_ack.append(lambda *told: heard.append(told))
    line = await desk.greet()
    line.say(reclaimed=shard_pb2.ReclaimAck(instruction_id="r-1", nodes_started=1))
    line.say(reclaimed=shard_pb2.ReclaimAck(instruction_id="r-1", nodes_started=1, nodes_drained=1))
    line.say(reclaimed=shard_pb2.ReclaimAck(instruction_id="r-2", nodes_left=["node-2"]))
    await turns()
    assert heard == [
        ("c-1", "r-1", False, ()),
        ("c-1", "r-1", True, ()),
        ("c-1", "r-2", True, ("node-2",)),
    ]


# -- observations --------------------------------------------------------------------------------


def seen(*nodes: shard_pb2.NodeObservation, full: bool = True) -> shard_pb2.NodeObservations:
    return shard_pb2.NodeObservations(nodes=nodes, full=full)


def node(name: str, machine_id: str, **fields: object) -> shard_pb2.NodeObservation:
    return shard_pb2.NodeObservation(node_name=name, machine_id=machine_id, **fields)  # type: ignore[arg-type]


async def test_observations_become_what_is_known_of_machines() -> None:
    desk = Desk()
    for name in ("m-1", "m-2"):
        desk.book.take(machine(name, cluster="c-1"))
    line = await desk.greet()
    line.say(seen=seen(node("node-1", "m-1", ready=True, pods=7, do_not_disrupt=True)))
    await turns()
    first, second = desk.book.get("m-1"), desk.book.get("m-2")
    assert first is not None
    assert second is not None
    assert (first.pods, first.do_not_disrupt, first.not_ready_since_ns) == (7, True, 0)
    assert second.not_ready_since_ns, "a full observation without its node"
    assert desk.observed.node_name("m-1") == "node-1"
    line.say(seen=seen(node("node-2", "m-2", ready=True), full=False))
    await turns()
    first, second = desk.book.get("m-1"), desk.book.get("m-2")
    assert first is not None
    assert second is not None
    assert (first.pods, second.not_ready_since_ns) == (7, 0)


async def test_a_node_held_cordoned_without_an_instruction_is_let_go_once() -> None:
    desk = Desk()
    for name in ("m-1", "m-2"):
        desk.book.take(machine(name, cluster="c-1"))
    desk.book.leave("m-2", None)
    line = await desk.greet()
    await turns()
    line.heard()
    cordoned = seen(
        node("node-1", "m-1", ready=True, unschedulable=True),
        node("node-2", "m-2", ready=True, unschedulable=True),
    )

    async def cancelled() -> list[list[str]]:
        await turns()
        frames = [f.reclaim_instruction for f in line.heard() if f.HasField("reclaim_instruction")]
        assert all(frame.cancel and frame.instruction_id for frame in frames)
        return [list(frame.nodes) for frame in frames]

    line.say(seen=cordoned)
    assert await cancelled() == [["node-1"]], "the other one is being drained"
    line.say(seen=cordoned)
    assert await cancelled() == []
    line.say(seen=seen(node("node-1", "m-1", ready=True), node("node-2", "m-2", ready=True)))
    line.say(seen=cordoned)
    assert await cancelled() == [["node-1"]], "cordoned again"
    line = await desk.greet("c-1", "")
    line.say(seen=cordoned)
    assert await cancelled() == [], "this operator would not know what a cancel is"
