"""The inventory in any order of changes, against a dict of machines and copies of it.

A snapshot is read back field by field, long after it was taken, and must still say what the dict
said at that time.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bigfleet.inventory import Inventory
from bigfleet.model import (
    CapacityType,
    Departure,
    HostRef,
    Machine,
    MachineState,
    PenaltyBucket,
    Stamp,
)
from bigfleet.model.columns import Flag, MachineColumns, Symbols
from plain_rules import matchable_labels

RACK = "topology.bigfleet/rack"
FEW = 2
"""Labels with more values than this are topology here, so that every run promotes some."""

TEXTS = st.sampled_from(["", "a", "b", "zoné", "\x00", "日本"])
TIMES = st.sampled_from([0, 1, 10**18, 2**63 - 1])
NUMBERS = st.integers(-(2**63), 2**63 - 1)
IDS = st.sampled_from([f"m-{i}" for i in range(8)] + ["m", "m-1\x00", "é", "\U0001f600", "z" * 70])
STATES = st.sampled_from([state for state in MachineState if state])
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "gpu"]),
    st.sampled_from([0, 1, 1500, 2**63 * 1000]),
    max_size=2,
)
LABELS = st.dictionaries(
    st.sampled_from([RACK, "pool", "host", "topology.kubernetes.io/zone"]),
    st.sampled_from([f"v{i}" for i in range(5)]) | TEXTS,
    max_size=3,
)
BUCKETS = st.sampled_from(list(PenaltyBucket))
STAMPS = st.builds(
    Stamp, TEXTS, TEXTS, TEXTS, TEXTS, st.integers(-5, 5), BUCKETS, BUCKETS, NUMBERS, TEXTS
)
MACHINES = st.builds(
    Machine,
    id=IDS,
    state=STATES,
    host=st.none() | st.builds(HostRef, TEXTS, TEXTS | st.text(max_size=20)),
    provider=TEXTS,
    region=TEXTS,
    cluster=TEXTS,
    instance_type=TEXTS,
    zone=TEXTS,
    capacity_type=st.sampled_from(list(CapacityType)),
    labels=LABELS,
    resources=AMOUNTS,
    allocatable=st.none() | AMOUNTS,
    price_per_hour=st.sampled_from([0.0, 0.1, 0.1 + 1e-9, 9e12]),
    interruption_probability=st.sampled_from([0.0, 0.3, 1.0]),
    interruption_at_ns=TIMES,
    stamp=st.none() | STAMPS,
    leaving=st.none() | st.builds(Departure, st.none() | STAMPS, TIMES, st.booleans()),
    idle_since_ns=TIMES,
    not_ready_since_ns=TIMES,
    do_not_disrupt=st.booleans(),
    pods=st.none() | st.integers(0, 2**31 - 1),
    last_error=TEXTS,
    excluded=st.booleans(),
    reserved=st.booleans(),
    backing_off=st.booleans(),
)
FLEETS = st.lists(MACHINES, max_size=12, unique_by=lambda m: m.id)


def machine_in(columns: MachineColumns, row: int) -> dict[str, object]:
    """All that a snapshot says of a row, in the words of a machine."""
    classes, symbols = columns.classes, columns.symbols
    cls, flags = int(columns.cls[row]), Flag(int(columns.flags[row]))
    cluster, stamp = int(columns.cluster[row]), int(columns.stamp[row])
    waiting = int(columns.leaving_for[row])
    topology = {
        key: columns.topology_names[key][int(column[row])]
        for key, column in columns.topology.items()
        if column[row] >= 0
    }
    assert not topology.keys() & classes.labels[cls].keys()
    return {
        "state": int(columns.state[row]),
        "cluster": "" if cluster < 0 else symbols.clusters[cluster],
        "stamp": None if stamp < 0 else symbols.stamp(stamp, int(columns.sequence[row])),
        "leaving": Flag.LEAVING in flags,
        "leaving_for": None if waiting < 0 else symbols.stamp(waiting, 0),
        "idle_since": int(columns.idle_since[row]),
        "pods": int(columns.pods[row]),
        "ending_at": columns.ending_at.get(row, 0),
        "not_ready_since": columns.not_ready_since.get(row, 0),
        "flags": flags,
        "labels": {**classes.labels[cls], **topology},
        "price": int(classes.price[cls]),
        "probability": float(classes.probability[cls]),
        "capacity_type": int(classes.capacity_type[cls]),
        "offering": classes.offerings[int(classes.offering[cls])],
        "pool": classes.pools[int(classes.pool[cls])],
        "offers": {
            name: 1000 * int(whole) + int(milli)
            for name, whole, milli in zip(
                symbols.resources, classes.whole[cls], classes.milli[cls], strict=False
            )
            if whole or milli
        },
    }


def expected(machine: Machine) -> dict[str, object]:
    """The same of a machine itself."""
    leaving = machine.leaving
    waiting = None if leaving is None else leaving.for_stamp
    marks = {
        Flag.LEAVING: leaving is not None,
        Flag.FINAL: leaving is not None and leaving.final,
        Flag.DO_NOT_DISRUPT: machine.do_not_disrupt,
        Flag.EXCLUDED: machine.excluded,
        Flag.RESERVED: machine.reserved,
        Flag.BACKING_OFF: machine.backing_off,
        Flag.ENDING: machine.interruption_at_ns != 0,
        Flag.NOT_READY: machine.not_ready_since_ns != 0,
    }
    return {
        "state": int(machine.state),
        "cluster": machine.cluster,
        "stamp": machine.stamp,
        "leaving": leaving is not None,
        "leaving_for": None if waiting is None else replace(waiting, sequence=0),
        "idle_since": machine.idle_since_ns,
        "pods": -1 if machine.pods is None else machine.pods,
        "ending_at": machine.interruption_at_ns,
        "not_ready_since": machine.not_ready_since_ns,
        "flags": sum(flag for flag, is_set in marks.items() if is_set),
        "labels": matchable_labels(machine),
        "price": machine.price_micro,
        "probability": machine.interruption_probability,
        "capacity_type": int(machine.capacity_type),
        "offering": (machine.provider, machine.instance_type, machine.zone, machine.capacity_type),
        "pool": (machine.provider, machine.region),
        "offers": {
            name: min(amount, 2**62 * 1000)
            for name, amount in machine.effective_allocatable.items()
            if amount
        },
    }


def assert_blank(columns: MachineColumns, row: int) -> None:
    """A hole belongs to no cluster, is nowhere and has no place in the order."""
    numbers = (columns.cluster, columns.stamp, columns.leaving_for, columns.pods, columns.rank)
    assert {int(column[row]) for column in (*numbers, *columns.topology.values())} == {-1}
    assert not columns.flags[row]
    assert row not in columns.ending_at
    assert row not in columns.not_ready_since
    assert columns.ids[row] == ""


def assert_says(columns: MachineColumns, machines: Mapping[str, Machine]) -> None:
    """A snapshot agrees with these machines, and with itself."""
    assert [columns.ids[row] for row in columns.order] == sorted(machines)
    assert np.flatnonzero(columns.state).tolist() == sorted(columns.order.tolist())
    assert columns.rank[columns.order].tolist() == list(range(len(machines)))
    for row in np.flatnonzero(columns.state == 0).tolist():
        assert_blank(columns, row)
    for row in columns.order.tolist():
        assert machine_in(columns, row) == expected(machines[columns.ids[row]])


@given(FLEETS)
def test_what_is_loaded_is_given_back_as_it_was(machines: list[Machine]) -> None:
    inventory = Inventory(Symbols(), most_label_values=FEW)
    inventory.load(machines)
    assert [inventory.get(m.id) for m in machines] == machines
    assert_says(inventory.snapshot(), {m.id: m for m in machines})


@given(FLEETS)
def test_loading_and_putting_one_by_one_come_to_the_same(machines: list[Machine]) -> None:
    inventory = Inventory(Symbols(), most_label_values=FEW)
    for machine in machines:
        row = inventory.put(machine)
        assert inventory.get(machine.id) == machine
        assert (inventory.row(machine.id), inventory.id_of(row)) == (row, machine.id)
    assert sorted(inventory, key=lambda m: m.id) == sorted(machines, key=lambda m: m.id)
    assert_says(inventory.snapshot(), {m.id: m for m in machines})


class InventoryMachine(RuleBasedStateMachine):
    """Changes of all kinds, snapshots held and dropped between them."""

    @initialize()
    def start(self) -> None:
        self.symbols = Symbols()
        self.inventory = Inventory(self.symbols, most_label_values=FEW)
        self.machines: dict[str, Machine] = {}
        self.held: list[tuple[MachineColumns, dict[str, Machine]]] = []

    def some(
        self, data: st.DataObject
    ) -> tuple[list[str], np.ndarray[tuple[int], np.dtype[np.int64]]]:
        assume(self.machines)
        ids = data.draw(st.lists(st.sampled_from(sorted(self.machines)), unique=True))
        return ids, np.array([self.inventory.row(i) for i in ids], np.int64)

    def change(self, ids: list[str], **fields: object) -> None:
        for i in ids:
            self.machines[i] = replace(self.machines[i], **fields)  # type: ignore[arg-type]

    @rule(machines=FLEETS)
    def load(self, machines: list[Machine]) -> None:
        self.inventory.load(machines)
        self.machines = {m.id: m for m in machines}

    @rule(machines=FLEETS)
    def put(self, machines: list[Machine]) -> None:
        self.inventory.put_many(machines)
        self.machines |= {m.id: m for m in machines}

    @rule(data=st.data(), other=MACHINES, everything=st.booleans())
    def become(self, data: st.DataObject, other: Machine, everything: bool) -> None:
        ids, _ = self.some(data)
        for i in ids:
            before = self.inventory.get(i)
            assert before is not None
            after = replace(
                other if everything else before, id=i, state=other.state, cluster=other.cluster,
                stamp=other.stamp, leaving=other.leaving, idle_since_ns=other.idle_since_ns,
                pods=other.pods, interruption_at_ns=other.interruption_at_ns,
                not_ready_since_ns=other.not_ready_since_ns, excluded=other.excluded,
                reserved=other.reserved, backing_off=other.backing_off,
                do_not_disrupt=other.do_not_disrupt,
            )  # fmt: skip
            self.inventory.change(before, after)
            self.machines[i] = after

    @rule(machine_id=IDS)
    def remove(self, machine_id: str) -> None:
        there = machine_id in self.machines
        assert self.inventory.remove(machine_id) is there
        self.machines.pop(machine_id, None)

    @rule(data=st.data(), state=STATES, cluster=TEXTS, idle=TIMES)
    def move(self, data: st.DataObject, state: MachineState, cluster: str, idle: int) -> None:
        ids, rows = self.some(data)
        self.inventory.set_state(rows, state)
        if cluster:
            self.inventory.bind(rows, self.symbols.clusters.of(cluster))
        else:
            self.inventory.unbind(rows)
        self.inventory.set_idle_since(rows, idle)
        self.change(ids, state=state, cluster=cluster, idle_since_ns=idle)

    @rule(data=st.data(), stamp=st.none() | STAMPS)
    def stamp(self, data: st.DataObject, stamp: Stamp | None) -> None:
        ids, rows = self.some(data)
        if stamp is None:
            self.inventory.clear_stamp(rows)
        else:
            self.inventory.stamp(rows, self.symbols.identity(stamp), stamp.sequence)
        self.change(ids, stamp=stamp)

    @rule(data=st.data(), leaving=st.none() | st.builds(Departure, st.none() | STAMPS, TIMES))
    def leave(self, data: st.DataObject, leaving: Departure | None) -> None:
        ids, rows = self.some(data)
        if leaving is None:
            self.inventory.clear_leaving(rows)
        else:
            waiting = leaving.for_stamp
            number = -1 if waiting is None else self.symbols.identity(waiting)
            self.inventory.set_leaving(rows, number, leaving.since_ns)
            if waiting is not None:
                leaving = replace(leaving, for_stamp=replace(waiting, sequence=0))
        self.change(ids, leaving=leaving)

    @rule(
        data=st.data(),
        at=TIMES,
        since=TIMES,
        pods=st.none() | st.integers(0, 9),
        mark=st.booleans(),
    )
    def observe(
        self, data: st.DataObject, at: int, since: int, pods: int | None, mark: bool
    ) -> None:
        ids, rows = self.some(data)
        self.inventory.set_ending(rows, at)
        self.inventory.set_not_ready(rows, since)
        self.inventory.set_pods(rows, -1 if pods is None else pods)
        self.inventory.set_do_not_disrupt(rows, mark)
        self.inventory.set_excluded(rows, not mark)
        self.change(
            ids, interruption_at_ns=at, not_ready_since_ns=since, pods=pods, do_not_disrupt=mark,
            excluded=not mark,
        )  # fmt: skip

    @rule()
    def hold(self) -> None:
        columns = self.inventory.snapshot()
        assert columns.classes.whole.shape[1] == len(self.symbols.resources)
        self.held.append((columns, dict(self.machines)))

    @rule(name=st.sampled_from(["cpu", "licence", "disk"]))
    def demand_brings_a_resource(self, name: str) -> None:
        self.symbols.resources.of(name)

    @rule()
    def drop(self) -> None:
        if self.held:
            del self.held[0]

    @invariant()
    def machines_are_as_put_and_changed(self) -> None:
        assert len(self.inventory) == len(self.machines)
        assert {m.id: m for m in self.inventory} == self.machines
        assert {key: self.inventory.get(key) for key in self.machines} == self.machines

    @invariant()
    def snapshots_stay_as_they_were(self) -> None:
        for columns, machines in self.held:
            assert_says(columns, machines)


InventoryMachine.TestCase.settings = settings(stateful_step_count=25)
test_any_interleaving = InventoryMachine.TestCase
