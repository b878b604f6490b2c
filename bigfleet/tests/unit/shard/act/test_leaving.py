"""Reclaim and Preempt: the instruction, the grace, the Drain; calling off; restarts."""

import logging

import grpc
import pytest

from bigfleet.decision import ActionKind
from bigfleet.model import Departure, MachineState
from bigfleet.provider import CallError
from bigfleet.shard.act.backoff import DrainEnded
from bigfleet.shard.machines.orders import ReclaimCause
from bigfleet.shard.state.journal import JournalEntry
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from executing import MemoryJournal, World, passes, run, until
from executing_values import machine, order, stamp

K = ActionKind
S = MachineState


def drains_of(world: World) -> list[int]:
    """The graces of the Drains sent so far."""
    return [r.grace_period_seconds for r in world.cloud.requests if isinstance(r, pb.DrainRequest)]


def test_the_operator_is_told_and_no_worker_waits_for_it() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED))
            world.names["m"] = "node-7"
            world.hand_over(order(K.RECLAIM, "m"))
            await world.settled()
            ((cluster, instruction),) = world.operators.instructions
            assert cluster == "c-1"
            assert (instruction.node, instruction.grace_seconds) == ("node-7", 600)
            assert (instruction.preemptor_priority, instruction.cancel) == (0, False)
            assert instruction.reason == ReclaimCause.NOT_NEEDED
            assert world.state("m") is S.CONFIGURED
            assert world.known("m").leaving is not None
            assert world.outcomes() == {("Reclaim", "success"): 1}
            assert not world.cloud.calls
            assert not world.book.busy("m")
            entry = world.memory.entries["m"]
            assert (entry.leaving, entry.instruction_id) == (True, instruction.id)

    run(main)


def test_a_preempted_machine_knows_for_whom_it_leaves() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED))
            world.hand_over(order(K.PREEMPT, "m"))
            await world.settled()
            ((_, instruction),) = world.operators.instructions
            assert (instruction.grace_seconds, instruction.preemptor_priority) == (30, 100)
            assert instruction.reason == ReclaimCause.PREEMPTED
            assert instruction.node == "m"
            assert world.memory.entries["m"].for_stamp == stamp("c-2")
            world.executor.reclaim_acknowledged("c-1", instruction.id, True)
            await until(lambda: world.state("m") is S.IDLE)
            assert world.known("m").stamp == stamp("c-2")
            assert "m" in world.memory.entries

    run(main)


def test_a_machine_whose_leaving_cannot_be_written_down_stays() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED))
            world.memory.full = True
            world.hand_over(order(K.RECLAIM, "m"))
            await world.settled()
            assert world.known("m").leaving is None
            assert not world.operators.instructions
            assert world.outcomes() == {("Reclaim", "other"): 1}

    run(main)


def test_the_drain_follows_when_the_node_is_empty_with_what_is_left_of_the_grace() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED))
            world.hand_over(order(K.RECLAIM, "m"))
            await world.settled()
            ((_, instruction),) = world.operators.instructions
            world.executor.reclaim_acknowledged("c-1", instruction.id, False)
            await passes(100)
            assert not world.cloud.calls
            world.executor.reclaim_acknowledged("c-1", instruction.id, True)
            await until(lambda: world.state("m") is S.IDLE)
            assert drains_of(world) == [500]
            assert world.outcomes() == {("Reclaim", "success"): 2}
            await until(lambda: "m" not in world.memory.entries)
            (event,) = world.executor.failures.take_events()
            assert isinstance(event, DrainEnded)
            assert event.seconds == pytest.approx(100, abs=0.1)

    run(main)


def test_the_drain_follows_when_the_grace_is_over() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED))
            world.hand_over(order(K.RECLAIM, "m"))
            begin = world.clock.monotonic()
            await until(lambda: world.state("m") is S.IDLE)
            assert world.clock.monotonic() - begin == pytest.approx(600, abs=0.1)
            assert drains_of(world) == [0]

    run(main)


def test_an_ack_of_another_cluster_or_of_nothing_changes_nothing() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED))
            world.hand_over(order(K.RECLAIM, "m"))
            await world.settled()
            ((_, instruction),) = world.operators.instructions
            world.executor.reclaim_acknowledged("c-2", instruction.id, True)
            world.executor.reclaim_acknowledged("c-1", "unheard", True)
            await passes(60)
            assert not world.cloud.calls

    run(main)


def test_without_a_session_the_drain_follows_at_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED))
            world.operators.connected.clear()
            world.hand_over(order(K.RECLAIM, "m"))
            await world.settled()
            assert world.state("m") is S.IDLE
            assert drains_of(world) == [600]
            assert world.outcomes() == {("Reclaim", "success"): 1}

    with caplog.at_level(logging.WARNING):
        run(main)
    (record,) = [r for r in caplog.records if r.message.startswith("reclaim fallback")]
    assert record.message == "reclaim fallback: no operator session"


def test_a_drain_that_fails_leaves_the_machine_in_its_grace_and_comes_again() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED))
            world.cloud.refuse["Drain"] = CallError(grpc.StatusCode.INTERNAL, "busy")
            world.hand_over(order(K.PREEMPT, "m"))
            await until(lambda: bool(world.cloud.calls))
            await world.settled()
            found = world.known("m")
            assert found.state is S.CONFIGURED
            assert found.leaving is not None
            assert found.leaving.for_stamp == stamp("c-2")
            assert "m" in world.memory.entries
            assert world.outcomes()["Preempt", "provider_error"] == 1
            del world.cloud.refuse["Drain"]
            await until(lambda: world.state("m") is S.IDLE, 20)
            assert world.known("m").stamp == stamp("c-2")

    run(main)


def test_a_kept_machine_is_uncordoned_and_never_drained() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED))
            world.hand_over(order(K.RECLAIM, "m"))
            await world.settled()
            assert world.hand_over(order(K.KEEP, "m")).accepted
            assert world.known("m").leaving is None
            await world.settled()
            (_, sent), (_, cancel) = world.operators.instructions
            assert cancel.cancel
            assert (cancel.id, cancel.node) == (sent.id, sent.node)
            assert "m" not in world.memory.entries
            await passes(700)
            assert not world.cloud.calls
            assert world.outcomes()["Unspecified", "success"] == 1

    run(main)


def test_a_drain_that_a_person_asked_for_cannot_be_called_off() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED))
            world.hand_over(order(K.RECLAIM, "m", final=True))
            await world.settled()
            assert world.memory.entries["m"].final
            assert world.hand_over(order(K.KEEP, "m")).deduped == 1
            await until(lambda: world.state("m") is S.IDLE)

    run(main)


def test_a_drain_that_a_person_asked_for_is_still_asked_for_when_it_failed() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED))
            world.cloud.refuse["Drain"] = CallError(grpc.StatusCode.INTERNAL, "busy")
            world.hand_over(order(K.RECLAIM, "m", final=True))
            await until(lambda: bool(world.cloud.calls))
            await world.settled()
            leaving = world.known("m").leaving
            assert leaving is not None
            assert leaving.final

    run(main)


def test_a_drain_that_was_sent_cannot_be_called_off() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED))
            world.cloud.latency = 5.0
            world.operators.connected.clear()
            world.hand_over(order(K.RECLAIM, "m"))
            await until(lambda: bool(world.cloud.under_way["m"]))
            assert world.hand_over(order(K.KEEP, "m")).deduped == 1

    run(main)


def test_a_machine_that_is_lost_in_its_grace_is_forgotten() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED), machine("n", S.CONFIGURED))
            world.hand_over(order(K.RECLAIM, "m"), order(K.RECLAIM, "n"))
            await world.settled()
            world.book.vanish("m")
            world.cloud.finish("n", failed="HostLost: gone")
            world.observe("n")
            assert len(world.executor.drains) == 0
            await until(lambda: not world.memory.entries)

    run(main)


def test_a_grace_goes_on_after_a_restart() -> None:
    async def main() -> None:
        journal = MemoryJournal()
        async with World(journal=journal) as world:
            world.add(machine("m", S.CONFIGURED))
            world.hand_over(order(K.RECLAIM, "m"))
            await world.settled()
            cloud = world.cloud
            instruction_id = journal.entries["m"].instruction_id
        async with World(journal=journal, cloud=cloud) as again:
            again.executor.restore(journal.entries)
            begin = again.clock.monotonic()
            again.add(machine("m", S.CONFIGURED, leaving=Departure(None, 1)))
            await until(lambda: again.state("m") is S.IDLE)
            assert again.clock.monotonic() - begin == pytest.approx(600, abs=0.1)
            assert again.executor.drains.get("m") is None
            assert instruction_id

    run(main)


def test_the_second_ack_still_counts_after_a_restart() -> None:
    async def main() -> None:
        async with World() as world:
            entry = JournalEntry(None, True, stamp("c-2"), world.clock.now() + 10**12, "i-1")
            world.executor.restore({"m": entry, "gone": entry})
            world.add(machine("m", S.CONFIGURED, leaving=Departure(stamp("c-2"), 1)))
            world.executor.restored()
            world.executor.reclaim_acknowledged("c-1", "i-1", True)
            await until(lambda: world.state("m") is S.IDLE, 5)
            assert world.known("m").stamp == stamp("c-2")
            assert world.outcomes() == {("Preempt", "success"): 1}

    run(main)


def test_lines_of_machines_that_are_gone_after_a_restart_are_taken_back() -> None:
    async def main() -> None:
        journal = MemoryJournal()
        journal.entries["gone"] = JournalEntry(stamp=stamp())
        async with World(journal=journal) as world:
            world.executor.restore(journal.entries)
            world.executor.restored()
            await until(lambda: not journal.entries)

    run(main)


def test_nothing_is_drained_while_actuation_is_paused() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED))
            world.hand_over(order(K.PREEMPT, "m"))
            await world.settled()
            world.may_act = False
            await passes(300)
            assert not world.cloud.calls
            world.may_act = True
            await until(lambda: world.state("m") is S.IDLE, 5)

    run(main)
