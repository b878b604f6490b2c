"""When providers are asked for what, and what becomes of their answers."""

import logging

import pytest

from bigfleet.model import Machine, MachineState
from bigfleet_api.v1alpha1 import provider_pb2 as pb
from reconciling import (
    CONFIGURED,
    CONFIGURING,
    CREATING,
    DOWN,
    FAILED,
    IDLE,
    SPECULATIVE,
    Cloud,
    Shard,
    cloud_of,
    on_virtual_time,
    record,
    shard_of,
)


@on_virtual_time
async def test_the_first_list_is_full_and_brings_everything() -> None:
    cloud = cloud_of("a", "b")
    async with shard_of(cloud) as shard:
        assert not shard.lister.first_merged("cloud")
        merged = await shard.after(1)
        assert shard.states() == {"a": IDLE, "b": IDLE}
        assert (merged.changes, merged.freed, merged.merged) == (2, 2, {"cloud"})
        assert shard.lister.first_merged("cloud")
        assert shard.lister.all_first_merged()
        assert cloud.lists == [(20_000, b"")]


@on_virtual_time
async def test_later_the_cursor_is_used_and_everything_is_asked_for_in_ten_minutes() -> None:
    cloud = cloud_of("a")
    async with shard_of(cloud) as shard:
        await shard.after(605)
        cursors = [since for _, since in cloud.lists]
        assert cursors.count(b"") == 2
        assert cursors[60] == b""
        assert len(cursors) == 61


@on_virtual_time
async def test_while_something_is_in_flight_it_is_asked_every_second() -> None:
    cloud = cloud_of("a")
    async with shard_of(cloud) as shard:
        await shard.after(4)
        shard.book.start("a", MachineState.CONFIGURING, "c-1")
        cloud.put(record("a", CONFIGURING))
        await shard.after(5)
        assert 5 <= len(cloud.lists) <= 7
        cloud.put(record("a", CONFIGURED))
        merged = await shard.after(1.1)
        assert merged.delivered == 1
        asked = len(cloud.lists)
        await shard.after(20)
        assert len(cloud.lists) <= asked + 3


@on_virtual_time
async def test_only_news_is_decoded_and_touches_the_book() -> None:
    cloud = cloud_of(*(f"m-{n}" for n in range(50)))
    async with shard_of(cloud) as shard:
        await shard.after(1)
        version = shard.book.version
        shard.lister.refresh_all()
        merged = await shard.after(5)
        assert cloud.lists[-1] == (20_000, b"")
        assert (merged.changes, shard.book.version) == (0, version)
        cloud.put(record("m-7", price_per_hour=0.25))
        assert (await shard.after(11)).changes == 1
        assert shard.known("m-7").price_per_hour == 0.25


@on_virtual_time
async def test_what_the_shard_changed_itself_is_compared_again() -> None:
    cloud = cloud_of("a")
    async with shard_of(cloud) as shard:
        await shard.after(1)
        shard.book.start("a", MachineState.CONFIGURING, "c-1")
        shard.lister.refresh_all()
        await shard.after(5)
        assert shard.known("a").state is MachineState.IDLE


@on_virtual_time
async def test_a_record_from_before_an_action_is_no_news_while_it_runs() -> None:
    cloud = cloud_of("a")
    async with shard_of(cloud) as shard:
        await shard.after(1)
        shard.book.mark_busy("a")
        shard.book.start("a", MachineState.CONFIGURING, "c-1")
        decoded = decodings(shard)
        shard.lister.refresh_all()
        await shard.after(5)
        assert decoded == []
        assert shard.known("a").state is MachineState.CONFIGURING
        cloud.put(record("a", CONFIGURED))
        await shard.after(5)
        assert decoded
        shard.book.free("a")
        await shard.after(5)
        assert shard.known("a").state is MachineState.CONFIGURED


def decodings(shard: Shard) -> list[bytes]:
    """What is decoded from now on."""
    client, found = shard.providers["cloud"], list[bytes]()
    decode = client.decode

    def noted(record: bytes) -> Machine:
        found.append(record)
        return decode(record)

    client.decode = noted  # type: ignore[method-assign]
    return found


@on_virtual_time
async def test_a_machine_absent_from_a_full_list_is_removed_and_a_bound_one_is_a_loss() -> None:
    cloud = cloud_of("idle")
    cloud.put(record("bound", CONFIGURED))
    async with shard_of(cloud) as shard:
        await shard.after(1)
        cloud.remove("idle", "bound")
        assert (await shard.after(30)).removed == 0
        shard.lister.refresh_all()
        merged = await shard.after(5)
        assert (merged.removed, [m.id for m in merged.losses]) == (2, ["bound"])
        assert len(shard.book) == 0


@on_virtual_time
async def test_a_failed_machine_is_lost_at_once_and_a_jump_is_counted() -> None:
    cloud = Cloud()
    cloud.put(record("bound", CONFIGURED), record("jumps", SPECULATIVE))
    async with shard_of(cloud) as shard:
        await shard.after(1)
        cloud.put(record("bound", FAILED), record("jumps", CONFIGURED))
        merged = await shard.after(11)
        assert [m.id for m in merged.losses] == ["bound"]
        # Configured to Failed is not a step the shard starts, and no jump goes uncounted.
        assert merged.jumped == 2
        assert merged.delivered == 1


@on_virtual_time
async def test_an_error_is_followed_by_patience_and_then_by_a_full_list(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cloud = cloud_of("a")
    async with shard_of(cloud) as shard:
        await shard.after(12)
        cloud.error = DOWN
        before = len(cloud.lists)
        with caplog.at_level(logging.WARNING):
            await shard.after(300)
        assert "reconcile failed" in caplog.text
        # 1, 2, 4, 8, 16 and then every 15 to 30 seconds.
        assert 12 <= len(cloud.lists) - before <= 26
        (status,) = shard.lister.status()
        assert (status.reachable, "down" in status.last_error) == (False, True)
        cloud.error = None
        after_it = len(cloud.lists)
        await shard.after(45)
        cursors = [since for _, since in cloud.lists[after_it:]]
        assert cursors[0] == b""
        assert b"" not in cursors[1:]
        (status,) = shard.lister.status()
        assert (status.reachable, status.last_error) == (True, "")
        assert shard.states() == {"a": IDLE}


@on_virtual_time
async def test_a_provider_that_hangs_keeps_no_other_waiting() -> None:
    hangs, answers = cloud_of("a", name="hangs"), cloud_of("b", name="answers")
    hangs.hangs = True
    async with shard_of(hangs, answers) as shard:
        await shard.after(5)
        assert shard.states() == {"b": IDLE}
        assert not shard.lister.all_first_merged()
        hangs.hangs = False
        await shard.after(150)
        assert shard.states() == {"a": IDLE, "b": IDLE}
        assert shard.lister.all_first_merged()


@pytest.mark.parametrize("garbage", [b"\xff" * 20, b"\x0a\x05abc", b"\x0a\x02\xff\xff", b"\x0b"])
def test_garbage_is_no_list_and_changes_nothing(garbage: bytes) -> None:
    @on_virtual_time
    async def story() -> None:
        cloud = cloud_of("a")
        async with shard_of(cloud) as shard:
            await shard.after(1)
            cloud.garbage = garbage
            shard.lister.refresh_all()
            assert (await shard.after(60)).changes == 0
            assert shard.states() == {"a": IDLE}
            assert "OK" in shard.lister.status()[0].last_error

    story()


@on_virtual_time
async def test_an_unknown_state_makes_the_whole_list_unusable() -> None:
    cloud = cloud_of("a")
    cloud.put(pb_odd := record("odd"))
    pb_odd.state = 77  # type: ignore[assignment]
    async with shard_of(cloud) as shard:
        await shard.after(60)
        assert shard.states() == {}
        assert not shard.lister.first_merged("cloud")


@on_virtual_time
async def test_an_unknown_state_is_found_wherever_it_stands_in_the_record() -> None:
    cloud = cloud_of(*(f"m-{n}" for n in range(40)))
    odd = record("odd").SerializeToString().replace(b"\x10\x03", b"", 1) + b"\x10\x4d"
    answered = cloud.list_raw

    async def with_odd(request: pb.ListFilter, seconds: float) -> bytes:
        return await answered(request, seconds) + b"\x0a" + bytes([len(odd)]) + odd

    cloud.list_raw = with_odd  # type: ignore[method-assign]
    async with shard_of(cloud) as shard:
        await shard.after(5)
        assert shard.states() == {}
        assert "state 77" in shard.lister.status()[0].last_error
        assert set(shard.calls) == {("List", "INTERNAL")}


@on_virtual_time
async def test_a_list_with_a_record_that_cannot_be_read_is_counted_as_failed() -> None:
    cloud = cloud_of("a")
    cut = record("b").SerializeToString()[:-1]
    answered = cloud.list_raw

    async def with_cut(request: pb.ListFilter, seconds: float) -> bytes:
        return await answered(request, seconds) + b"\x0a" + bytes([len(cut)]) + cut

    cloud.list_raw = with_cut  # type: ignore[method-assign]
    async with shard_of(cloud) as shard:
        await shard.after(5)
        assert "no machine record" in shard.lister.status()[0].last_error
        assert set(shard.calls) == {("List", "INTERNAL")}


@on_virtual_time
async def test_a_bad_record_is_refused_alone_and_the_last_good_one_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cloud = cloud_of("a", "b")
    async with shard_of(cloud) as shard:
        await shard.after(1)
        cloud.put(record("a", price_per_hour=-1.0), record("b", price_per_hour=0.75))
        with caplog.at_level(logging.WARNING):
            merged = await shard.after(11)
            assert merged.refused == {"price": 1}
            shard.lister.refresh_all()
            again = await shard.after(5)
        assert (again.refused, again.removed) == ({"price": 1}, 0)
        assert shard.known("a").price_per_hour == 0.5
        assert shard.known("b").price_per_hour == 0.75
        told = [r for r in caplog.records if r.message == "provider machine rejected at ingest"]
        assert [(getattr(r, "machine", ""), getattr(r, "reason", "")) for r in told] == [
            ("a", "price")
        ]


@on_virtual_time
async def test_of_a_machine_listed_twice_the_last_record_counts() -> None:
    cloud = cloud_of("a", "b")
    cloud.twice = [record("a", CONFIGURED), record("b")]
    async with shard_of(cloud) as shard:
        await shard.after(1)
        assert shard.states() == {"a": CONFIGURED, "b": IDLE}


@on_virtual_time
async def test_an_id_listed_by_two_providers_stays_with_the_first_and_is_shouted_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = cloud_of("a", name="first"), cloud_of("b", name="second")
    async with shard_of(first, second) as shard:
        await shard.after(1)
        second.put(record("a", CONFIGURED))
        with caplog.at_level(logging.ERROR):
            merged = await shard.after(11)
        assert merged.refused == {"structural": 1}
        assert "is listed by provider 'second' and by 'first', which keeps it" in str(
            [getattr(r, "error", "") for r in caplog.records]
        )
        assert shard.known("a").provider == "first"
        assert shard.known("a").state is MachineState.IDLE


@on_virtual_time
async def test_a_bound_machine_counts_as_contradicted_while_its_record_cannot_be() -> None:
    cloud = cloud_of("idle")
    good, idle = record("bound", CONFIGURED), record("idle")
    cloud.put(good, idle)
    async with shard_of(cloud) as shard:
        await shard.after(1)
        assert shard.lister.contradicted() == 0
        cloud.put(record("bound", CONFIGURED, cluster=""), record("idle", IDLE, host=pb.HostRef()))
        await shard.after(11)
        assert shard.states() == {"bound": CONFIGURED, "idle": IDLE}
        assert shard.lister.contradicted() == 1
        cloud.put(record("bound", CONFIGURED, price_per_hour=-1.5))
        await shard.after(11)
        assert shard.lister.contradicted() == 1
        cloud.put(good)
        await shard.after(11)
        assert shard.lister.contradicted() == 0


@on_virtual_time
async def test_a_record_that_fits_no_column_is_refused_alone() -> None:
    cloud = cloud_of("a")
    cloud.put(record("x" * 70_000))
    async with shard_of(cloud) as shard:
        merged = await shard.after(1)
        assert shard.states() == {"a": IDLE}
        assert merged.refused == {"structural": 1}


@on_virtual_time
async def test_a_provider_that_changes_its_mind_is_followed_every_time() -> None:
    cloud = cloud_of("a")
    async with shard_of(cloud) as shard:
        await shard.after(1)
        for state in (CONFIGURED, IDLE, FAILED, CREATING, CONFIGURED, SPECULATIVE, IDLE):
            cloud.put(record("a", state))
            await shard.after(11)
            assert shard.states() == {"a": state}


@on_virtual_time
async def test_a_provider_restored_from_a_backup_is_read_again() -> None:
    cloud = cloud_of("a", "b")
    async with shard_of(cloud) as shard:
        await shard.after(11)
        cloud.head = 0
        cloud.put(record("a", CONFIGURED))
        cloud.head = 500
        await shard.after(11)
        cloud.put(record("b", FAILED))
        await shard.after(11)
        assert shard.states()["b"] == FAILED
        await shard.after(600)
        assert shard.states() == {"a": CONFIGURED, "b": FAILED}


@on_virtual_time
async def test_records_of_an_unusual_make_are_taken_or_refused_one_by_one() -> None:
    cloud = Cloud()
    fine, nameless, odd_kind = record("fine"), record(""), record("odd")
    odd_kind.capacity_type = 66  # type: ignore[assignment]
    cloud.put(fine, nameless, odd_kind)
    # The same message with its fields in another order: state first, then the rest.
    late = record("late")
    state = b"\x10\x03"
    rest = late.SerializeToString().replace(state, b"", 1)
    answered = cloud.list_raw

    async def with_late(request: pb.ListFilter, seconds: float) -> bytes:
        body = state + rest
        return await answered(request, seconds) + b"\x0a" + bytes([len(body)]) + body

    cloud.list_raw = with_late  # type: ignore[method-assign]
    async with shard_of(cloud) as shard:
        merged = await shard.after(1)
        assert shard.states() == {"fine": IDLE, "late": IDLE}
        assert merged.refused == {"structural": 2}
        shard.lister.refresh_all()
        again = await shard.after(2)
        assert (again.changes, again.removed) == (0, 0)


# -- mass disappearance --------------------------------------------------------------------------


@on_virtual_time
async def test_a_mass_disappearance_is_believed_at_the_third_full_list(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cloud = cloud_of(*(f"m-{n}" for n in range(40)), state=CONFIGURED)
    async with shard_of(cloud) as shard:
        await shard.after(1)
        cloud.remove(*(f"m-{n}" for n in range(24)))
        cloud.put(record("m-30", FAILED))
        shard.lister.refresh_all()
        with caplog.at_level(logging.WARNING):
            merged = await shard.after(5)
        assert [m.id for m in merged.losses] == ["m-30"]
        assert merged.removed == 0
        assert shard.lister.status()[0].held == 24
        assert "mass disappearance" in caplog.text
        assert (await shard.after(30)).removed == 0
        merged = await shard.after(20)
        assert (merged.removed, len(merged.losses)) == (24, 24)
        assert shard.lister.status()[0].held == 0


@on_virtual_time
async def test_machines_that_come_back_in_time_were_never_gone() -> None:
    cloud = cloud_of(*(f"m-{n}" for n in range(40)), state=CONFIGURED)
    async with shard_of(cloud) as shard:
        await shard.after(1)
        gone = {name: cloud.machines[name] for name in list(cloud.machines)[:24]}
        cloud.remove(*gone)
        shard.lister.refresh_all()
        await shard.after(5)
        assert shard.lister.status()[0].held == 24
        cloud.put(*gone.values())
        merged = await shard.after(60)
        assert (merged.removed, merged.changes, len(shard.book)) == (0, 0, 40)
        assert shard.lister.status()[0].held == 0


@on_virtual_time
async def test_machines_that_come_back_one_after_the_other_were_never_gone() -> None:
    cloud = cloud_of(*(f"m-{n}" for n in range(40)), state=CONFIGURED)
    async with shard_of(cloud) as shard:
        await shard.after(1)
        gone = {name: cloud.machines[name] for name in list(cloud.machines)[:20]}
        cloud.remove(*gone)
        shard.lister.refresh_all()
        await shard.after(5)
        cloud.put(*list(gone.values())[:10])
        merged = await shard.after(25)
        assert (merged.removed, shard.lister.status()[0].held) == (0, 10)
        cloud.put(*list(gone.values())[10:])
        merged = await shard.after(20)
        assert (merged.removed, len(shard.book), shard.lister.status()[0].held) == (0, 40, 0)
