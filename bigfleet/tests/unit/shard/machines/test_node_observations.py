"""What clusters say of nodes: names, readiness, pods, and nothing where they say nothing."""

from bigfleet.model import CapacityType, HostRef, Machine, MachineState
from bigfleet.model.columns import Symbols
from bigfleet.shard.machines.book import Book
from bigfleet.shard.machines.node_observations import NodeObservations, NodeSeen
from clocks import HandClock

S = MachineState


class World:
    def __init__(self, machines: int = 2) -> None:
        self.clock = HandClock()
        self.book = Book(Symbols(), self.clock)
        for i in range(machines):
            self.book.take(
                Machine(
                    f"m-{i}", S.CONFIGURED, HostRef("cloud", f"h-{i}"), "cloud", "", "c-1",
                    capacity_type=CapacityType.SPOT, resources={"cpu": 1000},
                )
            )  # fmt: skip
        self.observed = NodeObservations(self.book, self.clock)
        self.told: list[str] = []
        self.book.on_change.append(lambda _, after: self.told.append(after.id if after else ""))

    def not_ready_since(self, name: str) -> int:
        machine = self.book.get(name)
        assert machine is not None
        return machine.not_ready_since_ns


def node(name: str, ready: bool = True, **fields: object) -> NodeSeen:
    return NodeSeen(name, ready=ready, **fields)  # type: ignore[arg-type]


def test_a_node_is_known_by_machine_id_host_or_name() -> None:
    world = World(3)
    nodes = [
        node("n-0", provider_id="cloud:///zone/h-0"),
        node("n-1", machine_id="m-1"),
        node("m-2"),
    ]
    world.observed.set_nodes("c-1", nodes, full=True)
    assert [world.observed.node_name(f"m-{i}") for i in range(3)] == ["n-0", "n-1", "m-2"]
    assert world.told == ["m-0", "m-1", "m-2"]


def test_a_name_that_is_known_already_is_not_told_again() -> None:
    world = World()
    for _ in range(2):
        world.observed.set_nodes("c-1", [node("n-0", machine_id="m-0")], full=False)
    assert world.told == ["m-0"]


def test_a_machine_without_a_ready_node_is_noted_from_when_it_was_first_missed() -> None:
    world = World()
    first = world.clock.now()
    world.observed.set_nodes("c-1", [node("n-0", machine_id="m-0")], full=True)
    world.clock.advance(60)
    world.observed.set_nodes("c-1", [node("n-0", ready=False, machine_id="m-0")], full=True)
    assert world.not_ready_since("m-1") == first
    assert world.not_ready_since("m-0") == world.clock.now()
    world.observed.set_nodes("c-1", [node("n-1", machine_id="m-1")], full=False)
    assert world.not_ready_since("m-1") == 0


def test_a_partial_observation_says_nothing_of_other_nodes() -> None:
    world = World()
    world.observed.set_nodes("c-1", [node("n-0", machine_id="m-0")], full=False)
    assert world.not_ready_since("m-1") == 0


def test_pods_and_marks_are_kept() -> None:
    world = World()
    seen = node("n-0", machine_id="m-0", pods=3, do_not_disrupt=True)
    world.observed.set_nodes("c-1", [seen], full=False)
    machine = world.book.get("m-0")
    assert machine is not None
    assert (machine.pods, machine.do_not_disrupt) == (3, True)


def test_what_was_said_of_a_node_ends_with_the_node() -> None:
    world = World()
    marked = node("n-0", machine_id="m-0", pods=3, do_not_disrupt=True)
    other = node("n-1", machine_id="m-1", pods=1)
    world.observed.set_nodes("c-1", [marked, other], full=True)
    world.observed.set_nodes("c-1", [other], full=False)
    machine = world.book.get("m-0")
    assert machine is not None
    assert (machine.pods, machine.do_not_disrupt) == (3, True)
    world.clock.advance(60)
    world.observed.set_nodes("c-1", [other], full=True)
    machine, left = world.book.get("m-0"), world.book.get("m-1")
    assert machine is not None
    assert left is not None
    assert (machine.pods, machine.do_not_disrupt) == (None, False)
    assert machine.not_ready_since_ns == world.clock.now()
    assert world.observed.node_name("m-0") == ""
    assert (left.pods, world.observed.node_name("m-1")) == (1, "n-1")


def test_a_cordon_that_no_request_asked_for_is_reported() -> None:
    world = World()
    world.book.leave("m-1", None)
    nodes = [node(f"n-{i}", machine_id=f"m-{i}", unschedulable=True) for i in range(2)]
    assert world.observed.set_nodes("c-1", nodes, full=True).cordoned == ["m-0"]


def test_nodes_of_other_clusters_and_strangers_are_passed_over() -> None:
    world = World()
    noticed = world.observed.set_nodes("c-9", [node("n-0", machine_id="m-0")], full=True)
    assert noticed.cordoned == []
    noticed = world.observed.set_nodes("c-1", [node("stranger")], full=False)
    assert world.observed.node_name("m-0") == ""
    assert noticed.strange == []


def test_a_cluster_that_takes_another_ones_machine_for_its_own_is_noticed() -> None:
    world = World()
    nodes = [node("n-0", machine_id="m-0"), node("n-1", machine_id="m-9")]
    assert world.observed.set_nodes("c-1", nodes, full=True).strange == ["m-9"]
    assert world.observed.set_nodes("c-9", nodes, full=True).strange == ["m-0", "m-9"]
