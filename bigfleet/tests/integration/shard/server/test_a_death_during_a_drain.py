"""A shard dies while a machine leaves its cluster, which learns of the end all the same.

No peer is there to say that a machine has left, and after the restart it looks like any other free
one. The clusters of these stories never give a node up by themselves.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bigfleet_lab.simcluster.behaviour import Behaviour
from sim.slots import S
from whole.living import QUIET, Setting, Whole, cluster, live, provider

TRUSTING = replace(QUIET, confirm_node_seconds=1e6)
PATIENCE = 600.0


def setting(behaviour: Behaviour = TRUSTING) -> Setting:
    return Setting([provider("p1", 4)], [cluster("c1", 4, behaviour=behaviour)])


def states(whole: Whole) -> list[S]:
    return [slot.state for slot in whole.provider.slots.values()]


def believed(whole: Whole) -> set[str]:
    return {node.machine_id for node in whole.operator().cluster.nodes if node.exists}


def there(whole: Whole) -> set[str]:
    slots = whole.provider.slots.values()
    return {slot.id for slot in slots if slot.cluster == "c1" and slot.state is S.CONFIGURED}


async def die_before_the_end_of_a_drain_is_seen(whole: Whole) -> None:
    await whole.until(lambda: len(believed(whole)) == 4, PATIENCE, "four nodes")
    whole.scale(3)
    await whole.until(lambda: S.IDLE in states(whole), PATIENCE, "the end of a drain")
    left = next(slot.id for slot in whole.provider.slots.values() if slot.state is S.IDLE)
    known = whole.shard.book.get(left)
    assert known is not None
    assert known.state is S.DRAINING, "the shard has seen it"
    assert left in believed(whole)
    await whole.restart()


def test_a_cluster_learns_of_a_drain_that_ended_while_the_shard_was_dead() -> None:
    async def story(whole: Whole) -> None:
        await die_before_the_end_of_a_drain_is_seen(whole)
        await whole.until(lambda: believed(whole) == there(whole), 90.0, "three nodes")

    live(setting(), story)


def test_a_machine_that_comes_back_to_the_cluster_it_left_is_not_taken_back() -> None:
    async def story(whole: Whole) -> None:
        await die_before_the_end_of_a_drain_is_seen(whole)
        whole.scale(4)
        await whole.until(lambda: whole.bound() == 4, PATIENCE, "four machines")
        await asyncio.sleep(180.0)
        assert len(believed(whole)) == 4
        assert believed(whole) == there(whole)

    live(setting(), story)
