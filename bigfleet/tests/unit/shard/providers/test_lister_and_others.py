"""Answers that cross actions, providers that come and go, and machines that change their owner."""

from bigfleet.model import Machine, MachineState
from bigfleet.shard.state.ownership import Domains
from reconciling import (
    CONFIGURED,
    CREATING,
    DOWN,
    FAILED,
    IDLE,
    SPECULATIVE,
    ZONE,
    Cloud,
    cloud_of,
    on_virtual_time,
    record,
    shard_of,
)

# -- actions under way ---------------------------------------------------------------------------


@on_virtual_time
async def test_what_came_during_an_action_comes_again_when_it_is_over() -> None:
    cloud = cloud_of("a", "b")
    async with shard_of(cloud) as shard:
        await shard.after(1)
        assert shard.book.mark_busy("a")
        cloud.put(record("a", FAILED))
        await shard.after(25)
        assert shard.known("a").state is MachineState.IDLE
        shard.book.free("a")
        await shard.after(1.1)
        assert shard.known("a").state is MachineState.FAILED
        asked = len(cloud.lists)
        await shard.after(20)
        # The cursor moves on again.
        assert len(cloud.lists) <= asked + 3
        assert cloud.lists[-1][1] == b"r%d" % cloud.head


@on_virtual_time
async def test_an_answer_older_than_an_action_is_asked_for_again() -> None:
    cloud = cloud_of("a")
    async with shard_of(cloud) as shard:
        await shard.after(9)
        cloud.seconds = 5.0
        await shard.after(2)
        # A List is on its way; meanwhile the machine is configured by a provider that is quick.
        shard.book.mark_busy("a")
        shard.book.start("a", MachineState.CONFIGURING, "c-1")
        cloud.put(record("a", CONFIGURED))
        bound = shard.known("a")
        shard.book.take(bound, own=True)
        shard.book.free("a")
        cloud.put(record("a", FAILED))
        cloud.seconds = 0.0
        await shard.after(12)
        assert shard.known("a").state is MachineState.FAILED


@on_virtual_time
async def test_a_machine_is_looked_at_by_itself_after_a_failed_action() -> None:
    cloud = cloud_of("a", "b")
    async with shard_of(cloud) as shard:
        await shard.after(1)
        cloud.put(record("a", FAILED))
        shard.lister.refresh("a")
        shard.lister.refresh("unknown")
        await shard.after(0.5)
        assert cloud.gets == ["a"]
        assert shard.known("a").state is MachineState.FAILED


@on_virtual_time
async def test_a_machine_that_get_does_not_find_is_left_to_a_full_list() -> None:
    cloud = cloud_of("a", "b")
    async with shard_of(cloud) as shard:
        await shard.after(1)
        cloud.remove("a")
        shard.lister.refresh("a")
        merged = await shard.after(2)
        assert cloud.lists[-1][1] == b""
        assert merged.removed == 1


@on_virtual_time
async def test_a_get_that_fails_is_not_repeated_by_itself() -> None:
    cloud = cloud_of("a")
    async with shard_of(cloud) as shard:
        await shard.after(1)
        cloud.error = DOWN
        shard.lister.refresh("a")
        await shard.after(3)
        cloud.error = None
        cloud.put(record("a", IDLE, price_per_hour=-1.0))
        shard.lister.refresh("a")
        merged = await shard.after(1)
        assert merged.refused["price"] >= 1
        assert cloud.gets == ["a", "a"]


@on_virtual_time
async def test_a_get_answered_with_another_machine_is_counted_and_changes_nothing() -> None:
    cloud = cloud_of("a", "b")
    async with shard_of(cloud) as shard:
        await shard.after(1)
        cloud.machines["a"] = record("b", FAILED)
        shard.lister.refresh("a")
        merged = await shard.after(1)
        assert merged.refused["structural"] == 1
        assert set(shard.states().values()) == {IDLE}


@on_virtual_time
async def test_without_cursors_machines_in_flight_are_polled_two_hundred_a_second() -> None:
    cloud = cloud_of(*(f"m-{n}" for n in range(1_000)), state=SPECULATIVE)
    cloud.has_cursors = False
    async with shard_of(cloud) as shard:
        await shard.after(1)
        for number in range(1_000):
            shard.book.start(f"m-{number}", MachineState.CREATING)
            cloud.put(record(f"m-{number}", CREATING))
        await shard.after(0)
        began = len(cloud.gets)
        await shard.after(3)
        assert 500 <= len(cloud.gets) - began <= 640
        cloud.put(*(record(f"m-{number}", IDLE) for number in range(1_000)))
        await shard.after(10)
        assert set(shard.states().values()) == {IDLE}


# -- providers that come and go ------------------------------------------------------------------


@on_virtual_time
async def test_a_provider_that_is_removed_takes_what_serves_no_cluster_with_it() -> None:
    stays, goes = cloud_of("a", name="stays"), cloud_of("b", name="goes")
    goes.put(record("bound", CONFIGURED))
    async with shard_of(stays, goes) as shard:
        await shard.after(1)
        await shard.use("stays")
        merged = await shard.after(1)
        assert shard.states() == {"a": IDLE, "bound": CONFIGURED}
        assert merged.losses == []
        asked = len(goes.lists)
        await shard.after(60)
        assert len(goes.lists) == asked
        stays.put(record("bound", CONFIGURED))
        await shard.after(11)
        assert shard.known("bound").provider == "stays"


@on_virtual_time
async def test_a_provider_that_is_added_is_asked_at_once() -> None:
    first, second = cloud_of("a", name="first"), cloud_of("b", name="second")
    async with shard_of(first, second) as shard:
        await shard.use("first")
        await shard.after(1)
        await shard.use("first", "second")
        assert not shard.lister.all_first_merged()
        await shard.after(1)
        assert shard.states() == {"a": IDLE, "b": IDLE}
        assert [status.name for status in shard.lister.status()] == ["first", "second"]


# -- ownership -----------------------------------------------------------------------------------


def zones(own: str, foreign: str) -> Domains:
    return Domains(frozenset({(ZONE, own)}), frozenset({(ZONE, foreign)}), False, 1)


@on_virtual_time
async def test_only_what_is_owned_is_in_the_book_and_strangers_are_decoded_once() -> None:
    cloud = Cloud()
    for number in range(10):
        zone = "z-1" if number < 4 else "z-2"
        machine = record(f"m-{number}")
        machine.zone = zone
        cloud.put(machine)
    async with shard_of(cloud) as shard:
        await shard.ownership.assign(zones("z-1", "z-2"))
        await shard.after(1)
        assert len(shard.book) == 4
        feed = shard.lister._feeds["cloud"]
        assert len(feed.strangers) == 6
        shard.lister.refresh_all()
        await shard.after(5)
        assert len(feed.strangers) == 6


@on_virtual_time
async def test_what_is_no_longer_owned_leaves_and_what_is_received_comes() -> None:
    cloud = Cloud()
    for name, zone, state in (("a", "z-1", IDLE), ("b", "z-1", CONFIGURED), ("c", "z-2", IDLE)):
        machine = record(name, state)
        machine.zone = zone
        cloud.put(machine)
    async with shard_of(cloud) as shard:
        await shard.ownership.assign(zones("z-1", "z-2"))
        await shard.after(1)
        assert sorted(shard.states()) == ["a", "b"]
        await shard.ownership.give("move-1", ["a"])
        await shard.ownership.receive("move-2", ["c"])
        merged = await shard.after(2)
        assert sorted(shard.states()) == ["b", "c"]
        assert merged.losses == []
        await shard.ownership.assign(zones("z-2", "z-1"))
        merged = await shard.after(2)
        assert sorted(shard.states()) == ["c"]
        assert merged.losses == []


@on_virtual_time
async def test_a_machine_given_away_during_an_action_leaves_when_it_is_over() -> None:
    cloud = cloud_of("a")
    async with shard_of(cloud) as shard:
        await shard.after(1)
        shard.book.mark_busy("a")
        await shard.ownership.give("move-1", ["a"])
        await shard.after(5)
        assert "a" in shard.book
        shard.book.free("a")
        await shard.after(11)
        assert "a" not in shard.book


@on_virtual_time
async def test_a_machine_that_came_during_a_full_list_is_not_missing_from_it() -> None:
    cloud = cloud_of("a")
    async with shard_of(cloud) as shard:
        await shard.after(1)
        shard.lister.refresh_all()
        cloud.put(record("b"))
        late = await shard.providers["cloud"].get("b")
        cloud.remove("b")
        cloud.seconds = 5.0
        await shard.after(2)
        assert cloud.lists[-1] == (20_000, b"")
        shard.book.take(late)
        assert (await shard.after(5)).removed == 0
        assert "b" in shard.book
        cloud.seconds = 0.0
        shard.lister.refresh_all()
        assert (await shard.after(5)).removed == 1


@on_virtual_time
async def test_a_transfer_costs_a_look_at_the_machines_it_names() -> None:
    cloud = Cloud()
    for number in range(40):
        machine = record(f"m-{number}")
        machine.zone = "z-1" if number < 20 else "z-2"
        cloud.put(machine)
    async with shard_of(cloud) as shard:
        await shard.ownership.assign(zones("z-1", "z-2"))
        await shard.after(11)
        client, decoded = shard.providers["cloud"], list[bytes]()
        decode = client.decode

        def noted(one: bytes) -> Machine:
            decoded.append(one)
            return decode(one)

        client.decode = noted  # type: ignore[assignment]
        await shard.ownership.receive("move-1", ["m-30"])
        await shard.ownership.give("move-2", ["m-3"])
        await shard.after(5)
        assert "m-30" in shard.book
        assert "m-3" not in shard.book
        assert len(decoded) <= 3
        shard.lister.refresh_all()
        await shard.after(5)
        assert len(decoded) <= 3
