"""List: filters, caps, cursors and pages."""

from pathlib import Path

import pytest

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_providerkit import State
from kitworld import World, world


async def listed(
    w: World,
    *,
    states: "list[pb.MachineState.ValueType] | None" = None,
    max_results: int = 0,
    since_revision: bytes = b"",
) -> pb.MachineList:
    return await w.running.service.list(
        pb.ListFilter(states=states, max_results=max_results, since_revision=since_revision)
    )


async def test_a_delta_holds_what_changed_and_the_head_gives_nothing() -> None:
    async with world() as w:
        start = (await listed(w)).revision
        assert not (await listed(w, since_revision=start)).machines
        machine = await w.idle()
        delta = await listed(w, since_revision=start)
        assert [m.id for m in delta.machines] == [machine]
        assert delta.revision != start
        assert not (await listed(w, since_revision=delta.revision)).machines


async def test_a_retry_of_reading_moves_nothing() -> None:
    async with world() as w:
        revisions = {(await listed(w)).revision for _ in range(3)}
        assert len(revisions) == 1


@pytest.mark.parametrize(
    "junk",
    [b"x", b"\xff\x00" * 2000, b"v1.aaaaaaaaaa.1", b"v1..1", b"v1.{id}.999999", b"v1.{id}.01",
     b"v1.{id}.1!", b"~v1.{id}.1", b"v1.{id}.-1", b"v1.{id}.99999999999999999999"],
)  # fmt: skip
async def test_a_cursor_of_no_use_gives_everything(junk: bytes) -> None:
    async with world() as w:
        store = w.running.backend.ledger.inventory.store_id.encode()
        answer = await listed(w, since_revision=junk.replace(b"{id}", store))
        assert len(answer.machines) == 8


@pytest.mark.parametrize("cap", [1, 3, 7, 8, 9])
async def test_a_walk_in_pages_sees_every_machine_once(cap: int) -> None:
    async with world() as w:
        seen: list[str] = []
        page = await listed(w, max_results=cap)
        while page.machines:
            assert len(page.machines) <= cap
            seen += [machine.id for machine in page.machines]
            page = await listed(w, max_results=cap, since_revision=page.revision)
        assert len(seen) == len(set(seen)) == 8
        assert page.revision == (await listed(w)).revision


async def test_a_machine_changed_during_a_walk_comes_again_at_the_end() -> None:
    async with world() as w:
        page = await listed(w, max_results=4)
        changed = page.machines[0].id
        await w.shard.create(changed)
        await w.reach(changed, State.IDLE)
        rest = await listed(w, since_revision=page.revision)
        assert len(rest.machines) == 4
        delta = await listed(w, since_revision=rest.revision)
        assert [machine.id for machine in delta.machines] == [changed]


async def test_capped_lists_without_a_cursor_begin_at_different_machines() -> None:
    async with world() as w:
        firsts = {(await listed(w, max_results=1)).machines[0].id for _ in range(8)}
        assert len(firsts) > 4


async def test_a_list_that_the_cap_does_not_cut_is_in_the_order_of_changes() -> None:
    async with world() as w:
        whole = [machine.id for machine in (await listed(w)).machines]
        for _ in range(3):
            assert [machine.id for machine in (await listed(w, max_results=8)).machines] == whole


async def test_the_filter_comes_before_the_cap() -> None:
    async with world() as w:
        machine = await w.idle()
        idle = pb.MACHINE_STATE_IDLE
        assert [m.id for m in (await listed(w, states=[idle], max_results=1)).machines] == [machine]
        both = await listed(w, states=[idle, pb.MACHINE_STATE_SPECULATIVE])
        assert len(both.machines) == 8
        assert not (await listed(w, states=[pb.MACHINE_STATE_FAILED])).machines


async def test_a_retired_slot_leaves_without_a_tombstone(tmp_path: Path) -> None:
    path = tmp_path / "offerings.yaml"
    path.write_text("[{instance_type: t-4, zone: zone-a, count: 4}]")
    async with world(offerings=str(path)) as w:
        kept = await w.idle()
        path.write_text("[{instance_type: t-4, zone: zone-b, count: 2}]")
        await w.running.reload_offerings()
        ids = {m.id for m in await w.shard.machines()}
        assert kept in ids
        assert len(ids) == 3
        await w.shard.delete(kept)
        await w.advance(1)
        assert len(await w.shard.machines()) == 2
