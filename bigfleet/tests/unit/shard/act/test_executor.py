"""The pool: what is taken, what is refused at the door, deadlines, fences, the end."""

import asyncio
import logging

import grpc
import pytest

from bigfleet.decision import ActionKind
from bigfleet.model import MachineState
from bigfleet.provider import CallError
from bigfleet.shard.act.executor import PoolSettings
from executing import World, passes, run, until
from executing_values import idle, machine, order

K = ActionKind
S = MachineState


def test_a_busy_machine_takes_no_second_order() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            first = world.hand_over(order(K.BOOTSTRAP, "m"))
            second = world.hand_over(order(K.BOOTSTRAP, "m"), order(K.DELETE, "m"))
            assert (len(first.accepted), second.deduped) == (1, 2)
            assert world.metrics.counts["deduped"] == 2
            await world.settled()
            assert world.cloud.calls_of("Configure") == ["m"]

    run(main)


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (K.BOOTSTRAP, S.CONFIGURED),
        (K.PROVISION, S.IDLE),
        (K.RECLAIM, S.IDLE),
        (K.PREEMPT, S.DRAINING),
        (K.DELETE, S.CONFIGURED),
        (K.KEEP, S.CONFIGURED),
    ],
)
def test_a_machine_that_has_moved_on_is_left_alone(kind: ActionKind, state: MachineState) -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", state))
            assert world.hand_over(order(kind, "m")).deduped == 1
            assert world.hand_over(order(kind, "unknown")).deduped == 1
            assert not world.book.busy("m")

    run(main)


def test_a_machine_of_another_cluster_is_not_reclaimed() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED, cluster="c-2"))
            assert world.hand_over(order(K.RECLAIM, "m", "c-1")).deduped == 1

    run(main)


def test_an_excluded_machine_is_not_taken() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            world.book.exclude("m", True)
            assert world.hand_over(order(K.BOOTSTRAP, "m")).deduped == 1

    run(main)


def test_a_full_queue_drops_what_does_not_fit() -> None:
    async def main() -> None:
        async with World(settings=PoolSettings(concurrency=1, queue=3)) as world:
            machines = idle(5)
            world.add(*machines)
            taken = world.hand_over(*(order(K.BOOTSTRAP, each.id) for each in machines))
            assert (len(taken.accepted), taken.dropped) == (3, 2)
            assert world.metrics.counts["dropped"] == 2
            assert world.metrics.queue == (3, 0)
            await world.settled()
            assert world.outcomes() == {("Bootstrap", "success"): 3}
            assert world.metrics.queue == (0, 0)

    run(main)


def test_a_gang_that_does_not_fit_is_dropped_whole() -> None:
    async def main() -> None:
        async with World(settings=PoolSettings(queue=3)) as world:
            machines = idle(6)
            world.add(*machines)
            gang = [order(K.BOOTSTRAP, each.id, group="g") for each in machines[1:5]]
            taken = world.hand_over(
                order(K.BOOTSTRAP, machines[0].id), *gang, order(K.BOOTSTRAP, machines[5].id)
            )
            assert [each.group for each in taken.accepted] == ["", ""]
            assert taken.dropped == 4

    run(main)


def test_a_gang_of_which_one_machine_moved_on_is_left_for_the_next_cycle() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("a"), machine("b", S.CONFIGURED), machine("c"))
            gang = [order(K.BOOTSTRAP, name, group="g") for name in ("a", "b")]
            taken = world.hand_over(*gang, order(K.BOOTSTRAP, "c"))
            assert [each.machine for each in taken.accepted] == ["c"]
            assert taken.deduped == 2
            assert not world.book.busy("a")

    run(main)


def test_no_more_actions_run_at_once_than_there_are_workers() -> None:
    async def main() -> None:
        # One of them is kept for those who wait for another party.
        async with World(settings=PoolSettings(concurrency=5)) as world:
            machines = idle(20)
            world.add(*machines)
            world.cloud.latency = 1.0
            world.hand_over(*(order(K.BOOTSTRAP, each.id) for each in machines))
            begin = world.clock.monotonic()
            await world.settled()
            assert world.clock.monotonic() - begin == pytest.approx(5.0, abs=0.1)

    run(main)


def test_a_machine_is_left_alone_for_longer_after_each_failure() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            world.cloud.refuse["Configure"] = CallError(grpc.StatusCode.INTERNAL, "no")
            pauses = []
            for _ in range(4):
                assert world.hand_over(order(K.BOOTSTRAP, "m")).accepted
                await world.settled()
                begin = world.clock.monotonic()
                await until(lambda: not world.executor.failures.waiting())
                pauses.append(world.clock.monotonic() - begin)
            assert pauses == [pytest.approx(5 * 2**n, rel=0.25) for n in range(4)]
            del world.cloud.refuse["Configure"]
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            assert world.state("m") is S.CONFIGURED
            world.book.take(machine("m", S.IDLE))
            world.cloud.refuse["Configure"] = CallError(grpc.StatusCode.INTERNAL, "no")
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            begin = world.clock.monotonic()
            await until(lambda: not world.executor.failures.waiting())
            assert world.clock.monotonic() - begin == pytest.approx(5, rel=0.25)

    run(main)


def test_a_provider_that_throttles_gets_no_creates_for_a_while() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.SPECULATIVE), machine("n", S.SPECULATIVE), machine("i"))
            slow = CallError(grpc.StatusCode.RESOURCE_EXHAUSTED, "slow down")
            world.cloud.refuse["Create"] = slow
            world.hand_over(order(K.PROVISION, "m"))
            await world.settled()
            taken = world.hand_over(order(K.PROVISION, "n"), order(K.BOOTSTRAP, "i"))
            assert [each.machine for each in taken.accepted] == ["i"]
            await passes(3)
            assert world.hand_over(order(K.PROVISION, "n")).accepted

    run(main)


def test_a_fenced_shard_stops_changing_that_provider_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with World(settings=PoolSettings(concurrency=1)) as world:
            world.add(machine("m"), machine("n"), machine("c", S.CONFIGURED))
            assert not world.executor.not_ready
            stale = CallError(grpc.StatusCode.FAILED_PRECONDITION, "epoch 9 was here")
            world.cloud.refuse["Configure"] = stale
            world.hand_over(order(K.BOOTSTRAP, "m"), order(K.BOOTSTRAP, "n"))
            await world.settled()
            assert world.outcomes() == {("Bootstrap", "fenced"): 2}
            assert world.cloud.calls == [("Configure", "m")]
            assert (world.state("m"), world.state("n")) == (S.IDLE, S.IDLE)
            assert world.executor.fenced == {"p"}
            assert "epoch 7" in world.executor.not_ready
            assert world.hand_over(order(K.BOOTSTRAP, "m"), order(K.RECLAIM, "c")).deduped == 2

    with caplog.at_level(logging.ERROR):
        run(main)
    (record,) = [r for r in caplog.records if r.message == "provider fenced this shard's mutation"]
    assert record.levelno == logging.ERROR
    assert record.__dict__["epoch"] == 7


def test_a_grace_at_a_fenced_provider_waits_for_the_next_process() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m", S.CONFIGURED))
            world.cloud.refuse["Drain"] = CallError(grpc.StatusCode.FAILED_PRECONDITION, "stale")
            world.hand_over(order(K.PREEMPT, "m"))
            await passes(5000)
            assert world.cloud.calls_of("Drain") == ["m"]
            assert world.known("m").leaving is not None
            assert "m" in world.memory.entries
            assert world.hand_over(order(K.KEEP, "m")).accepted

    run(main)


def test_what_waits_when_the_switch_is_thrown_is_not_done() -> None:
    async def main() -> None:
        async with World(settings=PoolSettings(concurrency=1)) as world:
            world.add(machine("m"), machine("n"))
            world.cloud.latency = 1.0
            world.hand_over(order(K.BOOTSTRAP, "m"), order(K.BOOTSTRAP, "n"))
            await until(lambda: bool(world.cloud.under_way["m"]))
            world.may_act = False
            await world.settled()
            assert world.state("n") is S.IDLE
            assert world.outcomes() == {
                ("Bootstrap", "success"): 1,
                ("Bootstrap", "ctx_canceled"): 1,
            }

    run(main)


def test_a_machine_that_vanished_while_its_order_waited_is_a_miss() -> None:
    async def main() -> None:
        async with World(settings=PoolSettings(concurrency=1)) as world:
            world.add(machine("m"), machine("n"))
            world.cloud.latency = 1.0
            world.hand_over(order(K.BOOTSTRAP, "m"), order(K.BOOTSTRAP, "n"))
            await until(lambda: bool(world.cloud.under_way["m"]))
            world.book.vanish("n")
            await world.settled()
            assert world.outcomes()["Bootstrap", "inventory_miss"] == 1

    run(main)


def test_a_provider_that_is_not_registered_is_an_error_of_that_order_alone() -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"), machine("n"))
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            await world.providers.use([])
            world.hand_over(order(K.BOOTSTRAP, "n"))
            await world.settled()
            assert world.outcomes()["Bootstrap", "provider_error"] == 1
            assert world.state("n") is S.IDLE

    run(main)


def test_a_worker_outlives_an_action_that_breaks() -> None:
    async def main() -> None:
        async with World(settings=PoolSettings(concurrency=1)) as world:
            world.add(machine("m"), machine("n"))
            world.operators.error = ZeroDivisionError("a bug")
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()
            assert world.outcomes() == {("Bootstrap", "other"): 1}
            world.operators.error = None
            world.hand_over(order(K.BOOTSTRAP, "n"))
            await world.settled()
            assert world.outcomes()["Bootstrap", "success"] == 1

    run(main)


def test_a_stop_lets_what_runs_end_and_gives_up_what_waits() -> None:
    async def main() -> None:
        world = World(settings=PoolSettings(concurrency=1))
        async with world:
            world.add(machine("m"), machine("n"))
            world.cloud.latency = 1.0
            world.hand_over(order(K.BOOTSTRAP, "m"), order(K.BOOTSTRAP, "n"))
            await until(lambda: bool(world.cloud.under_way["m"]))
            await world.executor.stop(10)
            assert (world.state("m"), world.state("n")) == (S.CONFIGURED, S.IDLE)
            assert world.hand_over(order(K.BOOTSTRAP, "n")).dropped == 1
        assert world.outcomes() == {("Bootstrap", "success"): 1, ("Bootstrap", "ctx_canceled"): 1}

    run(main)


def test_a_stop_cuts_off_what_takes_too_long() -> None:
    async def main() -> None:
        world = World()
        async with world:
            world.add(machine("m"))
            world.cloud.latency = 20.0
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await until(lambda: bool(world.cloud.under_way["m"]))
            begin = world.clock.monotonic()
            await world.executor.stop(3)
            assert world.clock.monotonic() - begin == pytest.approx(3)
            await asyncio.sleep(0)
        assert world.outcomes() == {("Bootstrap", "ctx_canceled"): 1}
        assert not world.book.busy("m")

    run(main)


def test_what_waits_when_everything_is_cancelled_ends_too() -> None:
    async def main() -> None:
        world = World(settings=PoolSettings(concurrency=1))
        async with world:
            world.add(machine("m"), machine("n"))
            world.cloud.latency = 1.0
            world.hand_over(order(K.BOOTSTRAP, "m"), order(K.BOOTSTRAP, "n"))
            await until(lambda: bool(world.cloud.under_way["m"]))
        assert world.outcomes() == {("Bootstrap", "ctx_canceled"): 2}
        assert not world.book.busy("n")
        assert world.state("n") is S.IDLE

    run(main)


def test_a_failed_action_is_logged_with_its_keys(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with World() as world:
            world.add(machine("m"))
            world.operators.connected.clear()
            world.hand_over(order(K.BOOTSTRAP, "m"))
            await world.settled()

    with caplog.at_level(logging.WARNING):
        run(main)
    (record,) = [r for r in caplog.records if r.message == "action failed"]
    keys = {name: record.__dict__[name] for name in ("kind", "machine", "outcome")}
    assert keys == {"kind": "Bootstrap", "machine": "m", "outcome": "no_session"}
    assert "no session" in record.__dict__["error"]
