"""Every row of the reconcile table, and its rails."""

import dataclasses

import pytest

from bigfleet_providerkit import CapacityType, Power, Retryable, State
from bigfleet_providerkit.backend.reconcile.rails import RailLimits, too_many_vanished
from bigfleet_providerkit.memory.substrate import MemoryHost, MemorySubstrate
from kitworld import SPEC, World, world

SLOW_CLOUD = dataclasses.replace(SPEC, consistency_window=30.0)


def host_ref(w: World, machine: str) -> str:
    record = w.running.backend.ledger.inventory.get(machine)
    assert record is not None
    return record.host


def planted(machine: str, ref: str = "i-old", **fields: object) -> MemoryHost:
    host = MemoryHost(
        ref, machine, "otherstore-1", "t-4", "zone-a", int(CapacityType.ON_DEMAND), 1.0
    )
    return dataclasses_replace(host, **fields)


def dataclasses_replace(host: MemoryHost, **fields: object) -> MemoryHost:
    for name, value in fields.items():
        setattr(host, name, value)
    return host


async def test_a_pass_without_a_difference_writes_nothing() -> None:
    async with world() as w:
        await w.configured()
        await w.idle()
        head = w.running.backend.ledger.inventory.head
        for _ in range(3):
            assert await w.running.reconcile()
        assert w.running.backend.ledger.inventory.head == head


async def test_a_listing_that_fails_changes_nothing() -> None:
    async with world() as w:
        machine = await w.idle()
        await w.substrate.lose(host_ref(w, machine))

        async def broken(refs: object = None) -> list[object]:
            raise Retryable("the API is down")

        w.substrate.list_managed = broken  # type: ignore[method-assign, assignment]
        assert not await w.running.reconcile()
        assert await w.shard.state(machine) is State.IDLE
        assert w.metric("reconcile_total", outcome="error") == 1


@pytest.mark.parametrize("kind", [CapacityType.ON_DEMAND, CapacityType.SPOT])
async def test_a_lost_host_is_believed_at_the_second_look(kind: CapacityType) -> None:
    async with world(failed_cleanup_after=0) as w:
        machine = await w.idle(kind)
        await w.substrate.lose(host_ref(w, machine))
        await w.running.reconcile()
        assert await w.shard.state(machine) is State.IDLE
        await w.running.reconcile()
        lost = await w.shard.get(machine)
        assert State(lost.state) is State.FAILED
        assert lost.last_error.startswith("HostLost: host i-")
        assert lost.host.ref
        assert w.metric("hosts_lost_total", capacity_type=kind.word) == 1
        if kind is CapacityType.SPOT:
            assert lost.interruption_probability == 1.0


async def test_the_second_look_waits_for_the_consistency_window() -> None:
    async with world(SLOW_CLOUD) as w:
        settings = dataclasses.replace(w.running.settings, consistency_window=30.0)
        w.running.backend.reconciler._settings = settings
        machine = await w.idle()
        await w.advance(60)
        await w.substrate.lose(host_ref(w, machine))
        await w.running.reconcile()
        await w.advance(10)
        await w.running.reconcile()
        assert await w.shard.state(machine) is State.IDLE
        await w.advance(25)
        await w.running.reconcile()
        assert await w.shard.state(machine) is State.FAILED


async def test_a_host_that_lost_its_tags_gets_them_back() -> None:
    async with world() as w:
        machine = await w.configured("c")
        ref = host_ref(w, machine)
        await w.substrate.untag(ref)
        await w.running.reconcile()
        await w.running.reconcile()
        assert w.substrate.hosts[ref].tagged
        assert w.substrate.hosts[ref].cluster == "c"
        assert await w.shard.state(machine) is State.CONFIGURED


async def test_a_wrong_binding_tag_is_put_right() -> None:
    async with world() as w:
        machine = await w.configured("c")
        w.substrate.hosts[host_ref(w, machine)].cluster = "elsewhere"
        await w.running.reconcile()
        assert w.substrate.hosts[host_ref(w, machine)].cluster == "c"


async def test_a_stopped_host_is_started_three_times_and_then_failed() -> None:
    async with world(failed_cleanup_after=0) as w:
        machine = await w.idle()
        ref = host_ref(w, machine)
        for _ in range(3):
            await w.substrate.stop(ref, Power.STOPPED)
            await w.running.reconcile()
            assert w.substrate.hosts[ref].power == "running"
        await w.substrate.stop(ref)
        await w.running.reconcile()
        failed = await w.shard.get(machine)
        assert State(failed.state) is State.FAILED
        assert "stopped and could not be started" in failed.last_error


async def test_a_late_launch_of_this_store_is_removed_at_once() -> None:
    async with world() as w:
        machine = await w.idle()
        store = w.running.backend.ledger.ids.store_id
        await w.substrate.plant(planted(machine, operation=f"{store}-zzz"))
        await w.running.reconcile()
        assert "i-old" not in w.substrate.hosts
        assert host_ref(w, machine) in w.substrate.hosts


async def test_of_two_hosts_the_recorded_one_stays() -> None:
    async with world(orphan_grace=600) as w:
        machine = await w.idle()
        await w.substrate.plant(planted(machine, created=0.0))
        await w.running.reconcile()
        assert "i-old" in w.substrate.hosts
        await w.advance(601)
        await w.running.reconcile()
        assert list(w.substrate.hosts) == [host_ref(w, machine)]


async def test_a_duplicate_stays_while_a_create_runs() -> None:
    async with world(orphan_grace=0, slow_ms=60_000) as w:
        machine = await w.fresh()
        await w.shard.create(machine)
        await w.advance(1)
        await w.substrate.plant(planted(machine))
        await w.running.reconcile()
        assert "i-old" in w.substrate.hosts


@pytest.mark.parametrize(("cluster", "state"), [(None, State.IDLE), ("c", State.CONFIGURED)])
async def test_hosts_of_a_lost_store_are_adopted(cluster: str | None, state: State) -> None:
    async with world() as w:
        machine = await w.fresh()
        await w.substrate.plant(planted(machine, cluster=cluster))
        await w.running.reconcile()
        adopted = await w.shard.get(machine)
        assert (State(adopted.state), adopted.host.ref) == (state, "i-old")
        assert (adopted.cluster, dict(adopted.shard_metadata)) == (cluster or "", {})
        if state is State.IDLE:
            assert (await w.shard.create(machine)).operation_id == "otherstore-1"


async def test_a_host_outside_the_offerings_is_shown_and_leaves_when_given_back() -> None:
    async with world() as w:
        await w.substrate.plant(planted("test-region-a/OnDemand/t-4/zone-z/777", zone="zone-z"))
        await w.running.reconcile()
        extra = "test-region-a/OnDemand/t-4/zone-z/777"
        assert await w.shard.state(extra) is State.IDLE
        await w.shard.delete(extra)
        await w.advance(1)
        assert extra not in w.running.backend.ledger.inventory


async def test_a_host_without_a_readable_machine_is_an_orphan() -> None:
    async with world(orphan_grace=600) as w:
        await w.substrate.plant(planted("", ref="i-orphan"))
        await w.running.reconcile()
        assert w.metric("orphan_hosts") == 1
        await w.advance(601)
        await w.running.reconcile()
        assert w.substrate.hosts == {}


async def test_orphans_are_only_counted_where_that_was_asked_for() -> None:
    async with world(orphan_grace=0, orphans="report") as w:
        await w.substrate.plant(planted("", ref="i-orphan"))
        for _ in range(3):
            await w.running.reconcile()
        assert "i-orphan" in w.substrate.hosts


async def test_a_host_without_our_label_is_never_touched() -> None:
    async with world(orphan_grace=0) as w:
        await w.substrate.plant(planted("whatever", ref="i-foreign", managed=False))
        await w.running.reconcile()
        await w.running.reconcile()
        assert "i-foreign" in w.substrate.hosts
        assert len(w.running.backend.ledger.inventory) == 8


async def test_more_removals_than_the_rail_allows_are_held_until_a_person_confirms() -> None:
    async with world(orphan_grace=0) as w:
        for number in range(5):
            await w.substrate.plant(planted("", ref=f"i-orphan-{number}"))
        for _ in range(4):
            await w.running.reconcile()
        assert len(w.substrate.hosts) == 4
        assert len(w.running.backend.reconciler.held) == 4
        assert len(await w.running.backend.reconciler.sweep()) == 4
        assert w.substrate.hosts == {}


async def test_a_large_loss_is_believed_after_three_listings() -> None:
    async with world(seed_count=24, failed_cleanup_after=0) as w:
        machines = [await w.idle() for _ in range(12)]
        for machine in machines:
            await w.substrate.lose(host_ref(w, machine))
        states = []
        for _ in range(4):
            await w.running.reconcile()
            states.append(await w.shard.state(machines[0]))
        assert states == [State.IDLE, State.IDLE, State.FAILED, State.FAILED]


async def test_an_absent_host_ends_a_delete() -> None:
    async with world() as w:
        machine = await w.idle()
        w.substrate.delays["delete"] = 200.0
        await w.shard.delete(machine)
        await w.advance(1)
        await w.substrate.lose(host_ref(w, machine))
        await w.running.reconcile()
        assert await w.shard.state(machine) is State.SPECULATIVE


def test_the_rails_in_numbers() -> None:
    limits = RailLimits(0, remove_orphans=True)
    assert [limits.removals(n) for n in (0, 19, 20, 40, 1000)] == [1, 1, 1, 2, 50]
    assert not too_many_vanished(9, 10)
    assert not too_many_vanished(30, 100)
    assert too_many_vanished(31, 100)


async def test_the_loop_reconciles_by_itself_and_early_after_a_gone() -> None:
    async with world(reconcile_interval=60, failed_cleanup_after=0) as w:
        machine = await w.idle()
        await w.substrate.lose(host_ref(w, machine))
        await w.reach(machine, State.FAILED, 200)
        assert isinstance(w.substrate, MemorySubstrate)
