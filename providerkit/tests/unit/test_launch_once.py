"""Launches whose answer is lost: no second host where the first one shows in time."""

import random
from dataclasses import replace

import pytest

from bigfleet_providerkit import KitOptions, State, VirtualClock
from bigfleet_providerkit.kit import Kit
from bigfleet_providerkit.store.memory import MemoryStore
from kitworld import SPEC, World, begin
from roughcloud import OPS, Idempotency, RoughCloud, RoughSubstrate, classify

WINDOW = 15.0


async def a_world(
    idempotency: Idempotency, *, list_lag: float = 0.0, boots_in: float = 1.0
) -> tuple[World, RoughCloud]:
    """A provider on a cloud with lists that lag and launches that are idempotent in one way."""
    clouds: list[RoughCloud] = []

    async def opened(options: KitOptions, kit: Kit) -> RoughSubstrate:
        assert isinstance(kit.clock, VirtualClock)
        if not clouds:
            clouds.append(
                RoughCloud(
                    kit.clock, random.Random(7), idempotency, boots_in=boots_in, list_lag=list_lag
                )
            )
        return RoughSubstrate(kit, clouds[0])

    spec = replace(
        SPEC, open=opened, classify=classify, calls=OPS, consistency_window=WINDOW,
        pinned_host_keys=True,
    )  # fmt: skip
    world = await begin(
        spec, store=MemoryStore(), use_fake_backend=False, reconcile_interval=120, orphan_grace=600
    )
    # From now on: a start does not wait for time that only the test moves.
    clouds[0].latency = 0.05
    return world, clouds[0]


@pytest.mark.parametrize("idempotency", ["token", "name", "none"])
@pytest.mark.parametrize("effect_after", [0.0, 5.0, 14.0])
async def test_a_lost_answer_buys_one_host_when_its_effect_shows_within_the_window(
    idempotency: Idempotency, effect_after: float
) -> None:
    w, cloud = await a_world(idempotency)
    cloud.lose_answer(effect_after)
    machine = await w.idle()
    await w.advance(60)
    assert cloud.bought == 1
    assert (await w.shard.get(machine)).host.ref == "h-1"
    await w.running.stop()


@pytest.mark.parametrize("list_lag", [0.0, 14.0])
async def test_lists_that_lag_hide_no_host_from_the_second_look(list_lag: float) -> None:
    w, cloud = await a_world("none", list_lag=list_lag)
    cloud.lose_answer()
    await w.idle()
    assert cloud.bought == 1
    assert cloud.calls["CreateHost"] == 1
    await w.running.stop()


async def test_an_effect_after_the_window_is_reaped_within_the_grace() -> None:
    w, cloud = await a_world("none")
    cloud.lose_answer(effect_after=60.0)
    machine = await w.idle()
    await w.advance(60)
    assert cloud.bought == 2
    kept = (await w.shard.get(machine)).host.ref
    await w.advance(60 + 600 + 240)
    assert list(cloud.hosts) == [kept]
    assert await w.shard.state(machine) is State.IDLE
    await w.running.stop()


async def test_a_first_launch_waits_for_nothing_and_says_that_it_is_the_first() -> None:
    w, cloud = await a_world("none")
    began = w.clock.monotonic()
    await w.idle()
    assert w.clock.monotonic() - began < WINDOW
    assert isinstance(w.running.substrate, RoughSubstrate)
    (order,) = w.running.substrate.orders
    assert order.first
    assert cloud.calls["CreateHost"] == 1
    await w.running.stop()


async def test_a_create_that_is_resumed_keeps_its_host_key_and_knows_that_it_is_not_the_first() -> (
    None
):
    w, cloud = await a_world("token", boots_in=30.0)
    machine = await w.fresh()
    await w.shard.create(machine)
    await w.advance(5)
    again = await w.restart()
    await again.reach(machine, State.IDLE)
    assert cloud.bought == 1
    before, after = cloud.user_data
    assert before == after
    assert "ed25519_private" in before
    assert isinstance(again.running.substrate, RoughSubstrate)
    assert not again.running.substrate.orders[0].first
    (host,) = cloud.hosts.values()
    assert host.pin
    assert again.running.backend.ledger.notes[machine].pin == host.pin
    await again.running.stop()
