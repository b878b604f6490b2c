"""Pods that fit nowhere lead to more nodes until they run, and then to nothing more."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from bigfleet.kube import Change, ChangeKind
from bigfleet.podcontroller.pods import ArrivingNode, DemandPod
from bigfleet.podcontroller.stuck import StuckPods
from kubeobjects import pod, read

AFTER = 60.0
ARRIVES = 45.0
STEP = 15.0
BEGAN = 1_800_000_000.0


class World:
    """One row of demand, met by its sum, and a scheduler that takes the first node with room."""

    def __init__(self, sizes: list[int], node: int) -> None:
        self.now, self.node = BEGAN, node
        self.sizes = {f"p-{number}": size for number, size in enumerate(sizes)}
        self.free: list[int] = []
        self.placed: set[str] = set()
        self.twice: set[str] = set()
        self.due: list[float] = []
        self.stuck = StuckPods(AFTER, lambda: self.now)

    def waiting(self) -> list[DemandPod]:
        """Pods without a node, which their scheduler could not place since the beginning."""
        return [self.a_pod(name) for name in self.sizes if name not in self.placed]

    def a_pod(self, name: str) -> DemandPod:
        document = pod(name)
        since = datetime.fromtimestamp(BEGAN, UTC).isoformat()
        document["status"]["conditions"] = [
            {"type": "PodScheduled", "reason": "Unschedulable", "lastTransitionTime": since}
        ]
        return read(DemandPod, document)

    def step(self) -> int:
        """A while passes; how many Pods are asked for again."""
        self.now += STEP
        while self.due and self.due[0] <= self.now:
            self.due.pop(0)
            self.free.append(self.node)
            self.told("Ready", len(self.free))
        for name, size in self.sizes.items():
            room = [at for at, free in enumerate(self.free) if free >= size]
            if name not in self.placed and room:
                self.free[room[0]] -= size
                self.placed.add(name)
        again = self.stuck.choose(
            one for one in self.waiting() if one.metadata.name not in self.twice
        )
        self.twice.update(one.metadata.name for one in again)
        self.acquire()
        return len(again)

    def acquire(self) -> None:
        asked = sum(self.sizes.values()) + sum(self.sizes[name] for name in self.twice)
        for number in range(len(self.free) + len(self.due), math.ceil(asked / self.node)):
            self.due.append(self.now + ARRIVES)
            self.told("Provisioning", number + 1)

    def told(self, phase: str, number: int) -> None:
        machine = {"metadata": {"name": f"un-{number}"}, "status": {"phase": phase}}
        seen = read(ArrivingNode, machine)
        self.stuck.machine_seen(Change(ChangeKind.CHANGED, f"un-{number}", None, seen))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=24), st.integers(4, 9))
@example([4, 4, 4, 3], 6)
def test_every_pod_gets_room_and_no_more_is_requested_than_is_missing(
    sizes: list[int], node: int
) -> None:
    world = World(sizes, node)
    for _ in range(40 * len(sizes)):
        world.step()
    # A second request that is no larger than what the nodes have left over in sum brings no node.
    still_waiting = set(world.sizes) - world.placed
    left_over = sum(world.free) - sum(world.sizes[name] for name in still_waiting)
    assert still_waiting <= world.twice
    assert not still_waiting or sum(world.sizes[name] for name in world.twice) <= left_over
    assert sum(world.step() for _ in range(20)) == 0
    # No one is asked for again while something is on its way, so every round but the last was a
    # node that Pods were really waiting for; a node for each Pod is the most that can help.
    assert len(world.free) <= min(len(sizes), 2 * math.ceil(sum(sizes) / node))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=24))
def test_where_sizes_pack_no_cluster_asks_twice(sizes: list[int]) -> None:
    world = World([2**size for size in sizes], 16)
    world.sizes = dict(sorted(world.sizes.items(), key=lambda one: -one[1]))
    for _ in range(40):
        world.step()
    assert world.placed == set(world.sizes)
    assert world.twice == set()
