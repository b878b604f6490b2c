"""For any orders, answers, losses and pace: one action per machine, one outcome per order."""

from collections import Counter

import grpc
from hypothesis import given, settings
from hypothesis import strategies as st

from bigfleet.decision import ActionKind
from bigfleet.model import MachineState
from bigfleet.provider import CallError
from bigfleet.shard.act.executor import PoolSettings
from bigfleet.shard.act.outcomes import ExecutionOutcome
from bigfleet.shard.act.rails import units
from bigfleet.shard.operators.errors import BlobError
from executing import World, passes, run
from executing_values import machine, order

K = ActionKind
S = MachineState
CODES = [
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.UNIMPLEMENTED,
]
NAMES = [f"m-{n}" for n in range(8)]
METHODS = ["Create", "Configure", "Drain", "Delete", "Get"]
STATES = [S.SPECULATIVE, S.IDLE, S.CONFIGURED]

orders_now = st.tuples(
    st.just("orders"),
    st.lists(
        st.tuples(st.sampled_from(list(K)), st.sampled_from(NAMES), st.sampled_from(["", "", "g"])),
        max_size=8,
    ),
)
steps = st.one_of(
    orders_now,
    orders_now,
    st.tuples(st.just("passes"), st.sampled_from([0.0, 0.1, 1.0, 40.0, 700.0])),
    st.tuples(st.just("refuse"), st.tuples(st.sampled_from(METHODS), st.sampled_from(CODES))),
    st.tuples(st.just("swallow"), st.sampled_from(METHODS[:4])),
    st.tuples(st.just("serve"), st.none()),
    st.tuples(st.just("latency"), st.sampled_from([0.0, 1.0, 50.0])),
    st.tuples(st.just("blobs"), st.sampled_from(["come", "fail", "tarry", "unknown"])),
    st.tuples(st.just("vanish"), st.sampled_from(NAMES)),
    st.tuples(st.just("ack"), st.integers(0, 5)),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("journal"), st.booleans()),
)


async def take(world: World, step: str, detail: object) -> None:
    match step, detail:
        case "passes", float(seconds):
            await passes(seconds)
        case "refuse", (str(method), grpc.StatusCode() as code):
            world.cloud.refuse[method] = CallError(code, "no")
        case "swallow", str(method):
            world.cloud.swallow[method] = CallError(grpc.StatusCode.UNAVAILABLE, "lost")
        case "serve", None:
            world.cloud.refuse.clear()
            world.cloud.swallow.clear()
        case "latency", float(seconds):
            world.cloud.latency = seconds
        case "blobs", str(how):
            world.operators.connected = set() if how == "unknown" else {"c-1", "c-2"}
            world.operators.error = BlobError("no") if how == "fail" else None
            world.operators.latency = 60.0 if how == "tarry" else 0.0
        case "vanish", str(name):
            world.book.vanish(name)
            world.cloud.machines.pop(name, None)
        case "ack", int(which):
            for cluster, instruction in world.operators.instructions[which : which + 1]:
                world.executor.reclaim_acknowledged(cluster, instruction.id, True)
        case "pause", bool(paused):
            world.may_act = not paused
        case "journal", bool(full):
            world.memory.full = full


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(STATES), min_size=8, max_size=8),
    st.lists(steps, max_size=25),
    st.integers(0, 1000),
    st.sampled_from([1, 4]),
    st.sampled_from(["rests", "stops", "is cut off"]),
)
def test_every_order_that_is_taken_ends_in_exactly_one_outcome(
    states: list[MachineState],
    happened: list[tuple[str, object]],
    seed: int,
    workers: int,
    ending: str,
) -> None:
    async def main() -> None:
        world = World(settings=PoolSettings(concurrency=workers, queue=6), seed=seed)
        taken: Counter[str] = Counter()
        async with world:
            world.add(*(machine(n, s) for n, s in zip(NAMES, states, strict=True)))
            for step, detail in happened:
                if step != "orders":
                    await take(world, step, detail)
                    continue
                assert isinstance(detail, list)
                orders = [order(kind, name, group=group) for kind, name, group in detail]
                enqueued = world.hand_over(*orders)
                accepted = set(map(id, enqueued.accepted))
                for unit in units(orders):
                    assert len({id(each) in accepted for each in unit}) == 1
                assert len(accepted) + enqueued.dropped + enqueued.deduped == len(orders)
                taken.update(each.machine for each in enqueued.accepted)
            if ending == "stops":
                await world.executor.stop(100)
            elif ending == "rests":
                world.cloud.latency = 0.0
                await world.settled()
        decided, _ = world.executor.decisions.since(0)
        ended = Counter(d.machine_id for d in decided if d.kind != "Drain")
        assert ended == taken
        assert sum(world.metrics.outcomes.values()) == len(decided)
        assert {outcome for _, outcome in world.metrics.outcomes} <= {
            str(o) for o in ExecutionOutcome
        }
        assert all(most <= 1 for most in world.cloud.most_under_way.values())
        assert not any(world.book.busy(name) for name in NAMES)
        assert world.metrics.queue == (0, 0) or not decided

    run(main, seed)


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(STATES), min_size=8, max_size=8),
    st.lists(steps, max_size=25),
    st.integers(0, 1000),
)
def test_once_everything_works_again_the_book_says_what_the_provider_says(
    states: list[MachineState], happened: list[tuple[str, object]], seed: int
) -> None:
    async def main() -> None:
        async with World(seed=seed) as world:
            world.add(*(machine(n, s) for n, s in zip(NAMES, states, strict=True)))
            for step, detail in happened:
                if step == "orders":
                    assert isinstance(detail, list)
                    world.hand_over(*(order(k, n, group=g) for k, n, g in detail))
                else:
                    await take(world, step, detail)
            for step, detail in (
                ("serve", None), ("latency", 0.0), ("blobs", "come"), ("pause", False),
                ("journal", False),
            ):  # fmt: skip
                await take(world, step, detail)
            await passes(2000)
            await world.settled()
            for name in world.refreshed:
                if name in world.cloud.machines:
                    world.observe(name)
            for name, record in world.cloud.machines.items():
                assert int(world.state(name)) == int(record.state)
            # No one leaves forever, and nothing is remembered that means nothing.
            await passes(5)
            assert len(world.executor.drains) == 0
            for name in world.memory.entries:
                assert world.known(name).stamp is not None

    run(main, seed)
