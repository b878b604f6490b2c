"""Few kinds of machines, coming and going: class slots are shared, emptied, revived and recycled.

The oracle is what each machine says of itself; and a slot of the same epoch means the same in all
snapshots ever taken.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from bigfleet.inventory import Inventory
from bigfleet.model import LABEL_ZONE, Machine, MachineState
from bigfleet.model.columns import MachineColumns, Symbols

Kind = tuple[str, str, str]
KINDS = st.tuples(
    st.sampled_from(["z-a", "z-b", "z-c"]),
    st.sampled_from(["", "p-0", "p-1"]),
    st.sampled_from(["", "", "h-0", "h-1", "h-2", "h-3"]),
)
IDS = st.integers(0, 5).map(lambda i: f"m-{i}")
PUTS = st.dictionaries(IDS, KINDS, max_size=4)
STEPS = st.lists(st.one_of(PUTS, IDS), max_size=30)


def machine(machine_id: str, kind: Kind) -> Machine:
    labels = {"pool": kind[1], "host": kind[2]}
    return Machine(
        machine_id,
        MachineState.IDLE,
        zone=kind[0],
        labels={key: value for key, value in labels.items() if value},
    )


def kinds_in(columns: MachineColumns) -> dict[str, Kind]:
    """The kind of each machine, as the snapshot has it."""
    kinds = {}
    for row in columns.order.tolist():
        labels = dict(columns.classes.labels[columns.cls[row]])
        for key, column in columns.topology.items():
            if column[row] >= 0:
                assert key not in labels
                labels[key] = columns.topology_names[key][int(column[row])]
        kinds[columns.ids[row]] = (
            labels[LABEL_ZONE],
            labels.get("pool", ""),
            labels.get("host", ""),
        )
    return kinds


@settings(max_examples=300)
@given(STEPS)
def test_a_machine_is_always_in_the_class_of_its_kind(steps: list[dict[str, Kind] | str]) -> None:
    inventory = Inventory(Symbols(), topology_keys=(), most_label_values=3)
    there: dict[str, Kind] = {}
    meant: dict[tuple[int, int], object] = {}
    for step in steps:
        if isinstance(step, str):
            inventory.remove(step)
            there.pop(step, None)
        else:
            inventory.put_many([machine(i, kind) for i, kind in step.items()])
            there |= step
        columns = inventory.snapshot()
        assert kinds_in(columns) == there
        assert {m.id: m for m in inventory} == {i: machine(i, kind) for i, kind in there.items()}
        for slot, labels in enumerate(columns.classes.labels):
            epoch = int(columns.classes.epoch[slot])
            assert meant.setdefault((slot, epoch), dict(labels)) == labels
        assert_no_class_twice(columns)


def assert_no_class_twice(columns: MachineColumns) -> None:
    """Machines alike are in one slot, and no more slots are kept than were ever needed at once."""
    used = {int(columns.cls[row]) for row in columns.order}
    distinct = {tuple(sorted(columns.classes.labels[slot].items())) for slot in used}
    assert len(distinct) == len(used)
    # Six machines; while they are replaced, old and new classes are there side by side.
    assert len(columns.classes) <= 10
