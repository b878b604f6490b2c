"""Whose turn it is: first come, first served, and no cluster gets all the workers."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigfleet.decision import ActionKind
from bigfleet.shard.act.attempts import NO_PEER, Attempt, Peer
from bigfleet.shard.act.executor import PoolSettings
from bigfleet.shard.act.fair_queue import SHARE, FairQueue, peer_of
from bigfleet.shard.act.outcomes import ExecutionOutcome
from bigfleet.shard.operators.messages import Blob
from executing import World, passes, run
from executing_values import machine, order

K = ActionKind
BLOB = Blob(b"join")


def attempt(kind: ActionKind = K.BOOTSTRAP, cluster: str = "c-1", *, blob: bool = False) -> Attempt:
    return Attempt(order(kind, "m", cluster), 1, blob=BLOB if blob else None)


def begin_all(waiting: FairQueue) -> list[Attempt]:
    found = []
    while (one := waiting.take()) is not None:
        found.append(one)
    return found


@pytest.mark.parametrize(
    ("waits", "peer"),
    [
        (attempt(K.BOOTSTRAP), ("cluster", "c-1")),
        (attempt(K.BOOTSTRAP, blob=True), ("provider", "p")),
        (attempt(K.PROVISION), ("provider", "p")),
        (attempt(K.DELETE), ("provider", "p")),
        (attempt(K.RECLAIM), NO_PEER),
        (attempt(K.KEEP), NO_PEER),
        (Attempt(order(K.RECLAIM, "m"), 1, drain=True), ("provider", "p")),
    ],
)
def test_a_step_waits_for_one_peer(waits: Attempt, peer: Peer) -> None:
    assert peer_of(waits) == peer


def test_one_cluster_leaves_an_eighth_of_the_workers_to_others() -> None:
    waiting = FairQueue(64)
    for _ in range(1_000):
        waiting.put(attempt(cluster="mute"))
    assert len(begin_all(waiting)) == 56
    other = attempt(cluster="other")
    waiting.put(other)
    assert begin_all(waiting) == [other]


def test_however_many_hang_another_client_finds_a_worker() -> None:
    waiting = FairQueue(64)
    for number in range(6_400):
        waiting.put(attempt(cluster=f"mute-{number % 50}"))
    begin_all(waiting)
    other = attempt(K.PROVISION)
    waiting.put(other)
    assert begin_all(waiting) == [other]


def test_a_single_worker_serves_everybody_in_turn() -> None:
    waiting = FairQueue(1)
    first, second = attempt(), attempt(K.PROVISION)
    waiting.put(first)
    waiting.put(second)
    assert begin_all(waiting) == [first]
    waiting.ended(first)
    assert begin_all(waiting) == [second]


def test_who_comes_back_for_a_second_step_keeps_his_place() -> None:
    waiting = FairQueue(1)
    early, late = attempt(), attempt(K.PROVISION)
    waiting.put(early)
    waiting.put(late)
    assert waiting.take() is early
    early.blob = BLOB
    waiting.ended(early)
    waiting.put(early)
    assert waiting.take() is early


def test_what_is_dropped_comes_in_its_order() -> None:
    waiting = FairQueue(1)
    attempts = [attempt(), attempt(K.PROVISION), attempt(cluster="c-2"), attempt()]
    for one in attempts:
        waiting.put(one)
    assert waiting.drop_all() == attempts
    assert (len(waiting), waiting.take()) == (0, None)


PEERS = st.sampled_from(["a", "b", "c", "p", ""])
STEPS = st.lists(st.tuples(st.sampled_from(["put", "take", "end", "back"]), PEERS), max_size=200)


def _made(peer: str) -> Attempt:
    if not peer:
        return attempt(K.RECLAIM)
    return attempt(K.PROVISION) if peer == "p" else attempt(cluster=peer)


@given(workers=st.integers(1, 20), steps=STEPS)
def test_the_first_that_may_begin_is_taken(workers: int, steps: list[tuple[str, str]]) -> None:
    """Against a list that is searched from its beginning."""
    waiting = FairQueue(workers)
    line: list[Attempt] = []
    begun: list[Attempt] = []
    for what, peer in steps:
        if what == "put":
            line.append(_made(peer))
            waiting.put(line[-1])
        elif what == "take":
            free = workers - len(begun)
            may = [
                one
                for one in line
                if one.peer == NO_PEER
                or sum(other.peer == one.peer for other in begun) < max(1, SHARE * (free - 1))
            ]
            wanted = may[0] if may and free else None
            assert waiting.take() is wanted
            if wanted is not None:
                line.remove(wanted)
                begun.append(wanted)
        elif begun:
            over = begun.pop(0)
            waiting.ended(over)
            if what == "back":
                over.blob = BLOB
                waiting.put(over)
                line = sorted([*line, over], key=lambda one: one.number)
        assert len(waiting) == len(line)


def test_a_mute_cluster_holds_up_no_other() -> None:
    async def main() -> None:
        async with World(settings=PoolSettings(concurrency=8)) as world:
            mute = [f"mute-{number}" for number in range(40)]
            world.add(*(machine(name) for name in (*mute, "good")))
            world.operators.latency = 3600.0
            world.hand_over(*(order(K.BOOTSTRAP, name, "c-2") for name in mute))
            await passes(1.0)
            world.operators.latency = 0.0
            world.hand_over(order(K.BOOTSTRAP, "good", "c-1"))
            await passes(1.0)
            assert world.cloud.calls_of("Configure") == ["good"]

    run(main)


def test_what_a_mute_cluster_still_has_queued_is_given_up_at_its_first_failure() -> None:
    async def main() -> None:
        async with World(settings=PoolSettings(concurrency=8)) as world:
            names = [f"m-{number}" for number in range(40)]
            world.add(*(machine(name) for name in names))
            world.operators.latency = 3600.0
            world.hand_over(*(order(K.BOOTSTRAP, name, "c-2") for name in names))
            began = world.clock.monotonic()
            await world.settled()
            assert world.clock.monotonic() - began == pytest.approx(30.0, abs=0.1)
            assert len(world.operators.asked) == 7
            outcomes = world.outcomes()
            assert outcomes["Bootstrap", ExecutionOutcome.CANCELED] == 7
            assert outcomes["Bootstrap", ExecutionOutcome.BLOB_ERROR] == 33
            assert not any(world.book.busy(name) for name in names)

    run(main)


def test_a_provider_that_hangs_does_not_keep_instructions_from_operators() -> None:
    async def main() -> None:
        async with World(settings=PoolSettings(concurrency=8)) as world:
            slots = [machine(f"s-{number}", machine("x").state.SPECULATIVE) for number in range(40)]
            world.add(*slots, machine("bound", machine("x").state.CONFIGURED, cluster="c-1"))
            world.cloud.latency = 3600.0
            world.hand_over(*(order(K.PROVISION, slot.id) for slot in slots))
            await passes(1.0)
            world.hand_over(order(K.RECLAIM, "bound", "c-1"))
            await passes(1.0)
            assert [cluster for cluster, _ in world.operators.instructions] == ["c-1"]

    run(main)


def test_the_turn_of_the_loop_is_short_when_thousands_are_given_up() -> None:
    async def main() -> None:
        async with World() as world:
            names = [f"m-{number}" for number in range(2_000)]
            world.add(*(machine(name) for name in names))
            world.operators.connected.clear()
            world.hand_over(*(order(K.BOOTSTRAP, name, "c-2") for name in names))
            most, before = 0, world.executor.depth
            while world.executor.depth:
                await asyncio.sleep(0)
                most, before = max(most, before - world.executor.depth), world.executor.depth
            assert most <= 256

    run(main)
