"""Long lists come in pages, where a provider can continue, and are whole or remove nothing."""

import grpc
import pytest

from bigfleet.provider import CallError
from reconciling import CONFIGURED, Cloud, on_virtual_time, record, shard_of

DOWN = CallError(grpc.StatusCode.UNAVAILABLE, "down")


def cloud_of(count: int, digits: int = 1) -> Cloud:
    cloud = Cloud("cloud")
    cloud.put(*(record(f"m-{number:0{digits}}") for number in range(count)))
    return cloud


@on_virtual_time
async def test_a_long_list_comes_in_pages_where_the_provider_continues() -> None:
    cloud = cloud_of(95, 3)
    async with shard_of(cloud, page=20) as shard:
        await shard.after(1)
        assert len(shard.book) == 95
        assert max(cap for cap, _ in cloud.lists) == 20
        assert len(cloud.lists) == 5 + 2
        cloud.remove("m-003")
        shard.lister.refresh_all()
        assert (await shard.after(5)).removed == 1


@pytest.mark.parametrize("kind", ["echoes the head", "no cursors"])
def test_where_the_provider_does_not_continue_it_is_asked_for_all_at_once(kind: str) -> None:
    @on_virtual_time
    async def story() -> None:
        cloud = cloud_of(95, 3)
        cloud.echoes_head = kind == "echoes the head"
        cloud.has_cursors = kind != "no cursors"
        async with shard_of(cloud, page=20) as shard:
            await shard.after(1)
            assert len(shard.book) == 95
            assert cloud.lists[-1] == (0, b"")
            asked = len(cloud.lists)
            for number in range(95):
                cloud.put(record(f"m-{number:03}", price_per_hour=0.75))
            await shard.after(11)
            assert {m.price_per_hour for m in shard.book} == {0.75}
            assert {cap for cap, _ in cloud.lists[asked:]} == {0}

    story()


@on_virtual_time
async def test_a_fleet_of_exactly_one_page_is_whole() -> None:
    cloud = cloud_of(20)
    async with shard_of(cloud, page=20) as shard:
        await shard.after(1)
        assert len(shard.book) == 20
        shard.lister.refresh_all()
        assert (await shard.after(5)).removed == 0


@on_virtual_time
async def test_pages_that_come_before_an_error_are_used_and_nothing_is_removed() -> None:
    cloud = cloud_of(60)
    async with shard_of(cloud, page=20) as shard:
        await shard.after(1)
        cloud.remove("m-59")
        answered = cloud.list_raw

        async def break_off(request: object, seconds: float) -> bytes:
            if getattr(request, "since_revision", b""):
                raise DOWN
            return await answered(request, seconds)  # type: ignore[arg-type]

        cloud.list_raw = break_off  # type: ignore[method-assign]
        cloud.put(record("m-0", CONFIGURED))
        shard.lister.refresh_all()
        assert (await shard.after(20)).removed == 0
        cloud.list_raw = answered  # type: ignore[method-assign]
        assert (await shard.after(31)).removed == 1
