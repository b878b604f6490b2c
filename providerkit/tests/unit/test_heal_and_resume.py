"""FAILED slots heal; work that was in flight goes on after a restart."""

import dataclasses

import pytest

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_providerkit import Code, InvalidRequest, OutOfCapacity, Refusal, Retryable, State
from bigfleet_providerkit.store.memory import MemoryStore
from bigfleet_providerkit.testing import Shard
from kitworld import SPEC, World, begin, world


async def failed(w: World) -> str:
    machine = await w.configured("c", k="v")
    w.substrate.fail_next("drain", InvalidRequest("stuck"))
    await w.shard.drain(machine)
    await w.reach(machine, State.FAILED)
    return machine


async def test_a_failed_slot_heals_into_a_new_life() -> None:
    async with world() as w:
        machine = await failed(w)
        host = (await w.shard.get(machine)).host.ref
        began = w.clock.now()
        healed = await w.reach(machine, State.SPECULATIVE)
        assert w.clock.now() - began == pytest.approx(600)
        assert not healed.HasField("host")
        assert (healed.cluster, dict(healed.shard_metadata), healed.last_error) == ("", {}, "")
        assert w.substrate.hosts == {}
        old = Shard(w.running.service, "shard-a", 1)
        with pytest.raises(Refusal) as fenced:
            await old.create(machine)
        assert fenced.value.code is Code.FAILED_PRECONDITION
        ack = await w.shard.create(machine)
        assert host != f"i-{ack.operation_id}"
        await w.reach(machine, State.IDLE)


async def test_a_stock_out_heals_after_thirty_seconds_also_where_healing_is_off() -> None:
    for heal_after, expected in ((0, 30), (600, 30), (5, 5)):
        async with world(failed_cleanup_after=heal_after) as w:
            machine = await w.fresh()
            w.substrate.fail_next("create", OutOfCapacity("none left"))
            await w.shard.create(machine)
            await w.reach(machine, State.FAILED)
            began = w.clock.now()
            await w.reach(machine, State.SPECULATIVE)
            assert w.clock.now() - began == pytest.approx(expected)


async def test_healing_that_is_off_leaves_the_slot_until_it_is_released() -> None:
    async with world(failed_cleanup_after=0) as w:
        machine = await failed(w)
        await w.advance(86_400)
        assert await w.shard.state(machine) is State.FAILED
        assert await w.running.backend.healer.release(machine) == f"{machine} is free"
        assert await w.shard.state(machine) is State.SPECULATIVE


async def test_a_cleanup_that_fails_is_tried_again_and_says_why() -> None:
    async with world() as w:
        machine = await failed(w)
        w.substrate.fail_next("delete", Retryable("API down"), Retryable("API down"))
        await w.advance(601)
        still = await w.shard.get(machine)
        assert State(still.state) is State.FAILED
        assert still.last_error == "Unavailable: cleanup failed: API down"
        await w.reach(machine, State.SPECULATIVE)
        assert w.metric("heal_failures_total") == 2


async def test_delete_not_offered_means_never_heal_by_default() -> None:
    metal = dataclasses.replace(SPEC, delete_offered=lambda offerings: False)
    async with world(metal) as w:
        assert w.running.settings.heal_after == 0


@pytest.mark.parametrize("moment", [0.0, 0.5])
async def test_a_create_goes_on_with_the_same_token(moment: float) -> None:
    w = await begin(slow_ms=1000)
    machine = await w.fresh()
    ack = await w.shard.create(machine)
    await w.advance(moment)
    after = await w.restart()
    assert await after.shard.state(machine) is State.CREATING
    done = await after.reach(machine, State.IDLE)
    assert done.host.ref == f"i-{ack.operation_id}"
    assert len(after.substrate.hosts) == 1
    shard = Shard(after.running.service, "shard-b")
    assert (await shard.create(machine)).operation_id == ack.operation_id
    await after.running.stop()


async def test_a_drain_and_a_delete_go_on() -> None:
    w = await begin(slow_ms=1000)
    drained, deleted = await w.configured("c", k="v"), await w.idle()
    await w.shard.drain(drained, grace=7)
    await w.shard.delete(deleted)
    await w.advance(0.5)
    after = await w.restart()
    seen = await after.shard.get(drained)
    assert (State(seen.state), seen.cluster, dict(seen.shard_metadata)) == (
        State.DRAINING, "c", {"k": "v"},
    )  # fmt: skip
    assert after.running.backend.ledger.work[drained].grace == 7
    await after.reach(drained, State.IDLE)
    await after.reach(deleted, State.SPECULATIVE)
    await after.running.stop()


async def test_a_configure_that_worked_after_all_is_found_out() -> None:
    w = await begin(slow_ms=1000)
    machine = await w.idle()
    ack = await w.shard.configure(machine, "c", {"k": "v"})
    await w.advance(0.5)
    host = w.substrate.hosts[(await w.shard.get(machine)).host.ref]
    host.done, host.joined = ack.operation_id, "c"
    await w.substrate._keep(host)
    after = await w.restart()
    await after.reach(machine, State.CONFIGURED, 10)
    shard = Shard(after.running.service, "shard-b")
    assert (await shard.configure(machine)).operation_id == ack.operation_id
    await after.running.stop()


async def test_a_configure_without_a_sign_fails_at_its_stored_deadline() -> None:
    w = await begin(slow_ms=100_000, configure_timeout=50)
    w.substrate.delays["create"] = 0
    machine = await w.idle()
    began = w.clock.now()
    await w.shard.configure(machine, "c", {"k": "v"})
    await w.advance(20)
    after = await w.restart()
    lost = await after.reach(machine, State.FAILED)
    assert after.clock.now() - began == pytest.approx(50, abs=2)
    assert lost.last_error.startswith(
        "Interrupted: configure was running when the provider stopped"
    )
    assert (lost.cluster, dict(lost.shard_metadata)) == ("c", {"k": "v"})
    assert after.metric("transitions_total", kind="configure", outcome="interrupted") == 1
    await after.running.stop()


async def test_marks_bindings_operations_and_ids_survive() -> None:
    w = await begin()
    machine = await w.idle()
    ack = await w.shard.configure(machine, "c", {"nul": "\0"})
    before = await w.reach(machine, State.CONFIGURED)
    cursor = (await w.shard.provider.list(pb.ListFilter())).revision
    after = await w.restart()
    assert await after.shard.get(machine) == before
    with pytest.raises(Refusal) as fenced:
        await Shard(after.running.service).create(machine)
    assert fenced.value.code is Code.FAILED_PRECONDITION
    other = Shard(after.running.service, "shard-b")
    assert (await other.configure(machine)).operation_id == ack.operation_id
    fresh = await other.create(await after.fresh())
    assert fresh.operation_id != ack.operation_id
    delta = await after.running.service.list(pb.ListFilter(since_revision=cursor))
    assert [found.id for found in delta.machines] == [fresh.machine.id]
    await after.running.stop()


async def test_a_failed_slot_heals_after_a_restart_by_its_first_failure() -> None:
    w = await begin()
    machine = await failed(w)
    await w.advance(300)
    after = await w.restart()
    began = after.clock.now()
    await after.reach(machine, State.SPECULATIVE)
    assert after.clock.now() - began == pytest.approx(300)
    await after.running.stop()


async def test_a_lost_store_takes_over_hosts_and_bindings_from_the_tags() -> None:
    w = await begin()
    machine = await w.configured("c", k="v")
    hosts = dict(w.store.open("test-region-a")["hosts"])
    await w.running.crash()
    store = MemoryStore()
    store.prepare({("hosts", key): value for key, value in hosts.items()})
    after = await begin(store=store, seed=99)
    adopted = await after.shard.get(machine)
    assert (State(adopted.state), adopted.cluster) == (State.CONFIGURED, "c")
    assert dict(adopted.shard_metadata) == {}
    await after.running.stop()


async def test_the_kit_knows_lives_and_keeps_the_keys_of_hosts() -> None:
    w = await begin()
    machine = await w.idle()
    kit = w.substrate._kit
    host = (await w.substrate.list_managed())[0]
    assert kit.create_operation(machine) == host.operation_id
    assert kit.create_operation("unknown") == ""
    kit.pin_host(host, "pin-1")
    await w.clock.settle()
    after = await w.restart()
    assert after.running.backend.ledger.notes[machine].pin == "pin-1"
    assert after.running.backend.ledger.notes[machine].address == host.address
    await after.running.stop()
