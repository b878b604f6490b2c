"""Placing keeps what a scheduler keeps, whatever comes and goes."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.model import (
    LABEL_ZONE,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
    matches_all,
)
from bigfleet_lab.simcluster import Workload, WorkObject
from bigfleet_lab.simcluster.nodes import Node, Nodes, Phase
from bigfleet_lab.simcluster.scheduler import PodPlacement

ZONAL = Profile.of([Requirement.of(LABEL_ZONE, RequirementOperator.IN, ["a"])])
GANG = Profile.of([Requirement.of(LABEL_ZONE, RequirementOperator.SAME)])
SPREAD = Profile.of(spread=[Spread(LABEL_ZONE, 1)])


class World:
    def __init__(self, rng: Random) -> None:
        self.rng, self.workload, self.nodes = rng, Workload(), Nodes({})
        self.placing = PodPlacement(self.workload, self.nodes, rng)
        for number, profile in enumerate((Profile.of(), ZONAL, GANG, SPREAD)):
            request = {"cpu": rng.choice([500, 1_000]), "memory": 1_000}
            group = "g" if profile.same else ""
            self.workload.add(WorkObject(f"o-{number}", profile, request, group), 0)
        self.made = 0

    def add_node(self) -> None:
        name = f"m-{self.made}"
        self.made += 1
        node = Node(name, Phase.READY, labels={LABEL_ZONE: self.rng.choice("abc")})
        node.room = {"cpu": self.rng.choice([1_000, 4_000]), "memory": 4_000}
        node.ready_since_ns = 1
        self.nodes._nodes[name] = node

    def act(self) -> None:
        rng = self.rng
        match rng.randrange(5):
            case 0:
                self.add_node()
            case 1 if len(self.nodes):
                node = rng.choice(list(self.nodes))
                self.placing.evict(node)
                self.nodes.forget(node.machine_id)
            case 2 if len(self.nodes):
                node = rng.choice(list(self.nodes))
                node.cordoned = not node.cordoned
            case 3:
                self.placing.place()
            case _:
                name = rng.choice(self.workload.names)
                self.workload.scale(name, rng.randint(0, 8))
                self.placing.trim(name)

    def check(self) -> None:
        running = Counter[str]()
        for node in self.nodes:
            used = Counter[str]()
            for name, count in node.pods.items():
                what = self.workload[name]
                assert count > 0
                assert matches_all(what.profile.requirements, node.labels)
                running[name] += count
                for resource, amount in what.request.items():
                    used[resource] += amount * count
            assert +used == +Counter(node.used)
            assert all(used[resource] <= room for resource, room in node.room.items())
        for what in self.workload:
            name = what.name
            assert running[name] == self.placing.running(name) <= self.workload.replicas(name)
            assert self.placing.waiting(name) == self.workload.replicas(name) - running[name]
        zones = {node.labels[LABEL_ZONE] for node in self.nodes if node.pods.get("o-2")}
        assert len(zones) <= 1, "a gang is in one place"


@given(st.integers(0, 2**32))
def test_pods_fit_their_nodes_whatever_comes_and_goes(seed: int) -> None:
    world = World(Random(seed))
    for _ in range(40):
        world.act()
        world.check()


@given(st.integers(0, 2**32), st.integers(1, 20))
def test_nothing_waits_where_there_is_room_and_spread_is_even(seed: int, pods: int) -> None:
    rng = Random(seed)
    world = World(rng)
    for zone in "abc" * 10:
        world.add_node()
        node = list(world.nodes)[-1]
        node.labels = {LABEL_ZONE: zone}
        node.room = {"cpu": 4_000, "memory": 100_000}
    for name in ("o-0", "o-1", "o-3"):
        world.workload.scale(name, pods)
    world.placing.place()
    world.check()
    assert world.placing.waiting_pods() == 0
    by_zone = Counter(dict.fromkeys("abc", 0))
    for node in world.nodes:
        by_zone[node.labels[LABEL_ZONE]] += node.pods.get("o-3", 0)
    assert max(by_zone.values()) - min(by_zone.values()) <= 1


@given(st.integers(0, 2**32))
def test_the_fullest_node_that_fits_is_filled_first(seed: int) -> None:
    world = World(Random(seed))
    for _ in range(6):
        world.add_node()
    world.workload.scale("o-0", 2)
    world.placing.place()
    occupied = {node for node in world.nodes if node.pods}
    world.workload.scale("o-0", 3)
    unit = world.workload["o-0"].request["cpu"]
    fits = any(node.room["cpu"] - node.used["cpu"] >= unit for node in occupied)
    got = world.placing.place()
    if fits:
        assert got <= occupied
