"""For all inputs: the fence, the transitions, pages of a list, tags and quantities."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_providerkit import CapacityType, State
from bigfleet_providerkit.codec.tags import TagCodec
from bigfleet_providerkit.machines.fence import FenceBook, Mark, Token, newer
from bigfleet_providerkit.machines.inventory import Inventory
from bigfleet_providerkit.machines.operations import OperationIds
from bigfleet_providerkit.machines.record import Record, Shape, encode, encode_metadata, shape_of
from bigfleet_providerkit.machines.state import Kind
from bigfleet_providerkit.machines.transitions import (
    ClusterBinding,
    OutOfPosition,
    Repeat,
    Start,
    accept,
    decide,
    fail,
    in_progress,
    reborn,
    succeed,
)
from bigfleet_providerkit.store.rows import key_of, parts_of, read_machine, write_machine

SHAPE = Shape("t", "z", CapacityType.SPOT, 0.1, 0.05, {"cpu": "1"}, {}, {"l": "1"}).packed()
NUMBERS = st.integers(0, 3) | st.sampled_from([2**63 - 1, 2**31])
TEXT = st.text(max_size=20)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), NUMBERS, NUMBERS)))
def test_the_fence_accepts_exactly_what_is_newer_for_its_pair(
    tokens: list[tuple[str, str, int, int]],
) -> None:
    book = FenceBook()
    highest: dict[tuple[str, str], tuple[int, int]] = {}
    for shard, machine, epoch, sequence in tokens:
        token = Token(shard, epoch, sequence)
        accepted = newer(token, book.mark(shard, machine))
        pair = (shard, machine)
        assert accepted == (pair not in highest or (epoch, sequence) > highest[pair])
        if accepted:
            highest[pair] = (epoch, sequence)
            book.settle(pair, book.next_mark(token), exists=machine == "x")


@given(st.lists(st.integers(0, 40), max_size=120))
def test_marks_of_unknown_ids_are_bounded_and_the_newest_stay(ids: list[int]) -> None:
    book = FenceBook(most_unknown=8)
    book.settle(("s", "real"), Mark(1, 1, 0), exists=True)
    order: list[str] = []
    for number in ids:
        machine = str(number)
        book.settle(("s", machine), book.next_mark(Token("s", 1, 1)), exists=False)
        list(book.surplus())
        order = [known for known in order if known != machine] + [machine]
    assert book.mark("s", "real") is not None
    assert {m for m in order if book.mark("s", m)} == set(order[-8:])


class Model:
    """A machine as a person would describe it: a state, and the last operation of each kind."""

    def __init__(self) -> None:
        self.state = State.SPECULATIVE
        self.ops: dict[Kind, str] = {}
        self.bound = False
        self.host = False


@given(st.lists(st.tuples(st.sampled_from(list(Kind)), st.sampled_from(["end", "fail", "none"]))))
def test_transitions_follow_the_small_model(steps: list[tuple[Kind, str]]) -> None:
    record, model, ids = Record("m", "p", SHAPE), Model(), OperationIds("store")
    for kind, then in steps:
        decision = decide(record, kind)
        if kind in model.ops and model.state in (kind.transitional, kind.target):
            assert decision == Repeat(model.ops[kind])
        elif model.state is kind.source:
            assert decision == Start()
            operation = ids.next()
            record = accept(record, kind, operation, ClusterBinding("c", b""))
            model.state = kind.transitional
            if kind is Kind.CREATE:
                model.ops = {}
            model.ops[kind] = operation
            model.bound = model.bound or kind is Kind.CONFIGURE
        else:
            assert isinstance(decision, OutOfPosition)
            continue
        if record.state is not kind.transitional or then == "none":
            continue
        assert in_progress(record, kind, model.ops[kind])
        if then == "fail":
            failed = fail(record, "Timeout: x", 1.0)
            assert (failed.host, failed.cluster) == (record.host, record.cluster)
            record, model = reborn(failed), Model()
        else:
            record = succeed(record, kind, host="h")
            model.state = kind.target
            if kind is Kind.CREATE:
                model.host = True
            elif kind is Kind.DRAIN:
                model.bound = False
            elif kind is Kind.DELETE:
                model.host, model.ops = False, {Kind.DELETE: model.ops[Kind.DELETE]}
        assert (record.state, bool(record.host)) == (model.state, model.host)
        assert bool(record.cluster) == model.bound


@given(
    st.integers(1, 30), st.integers(1, 12), st.lists(st.integers(0, 29), max_size=20),
    st.integers(0, 5),
)  # fmt: skip
def test_a_walk_misses_nothing_whatever_changes_meanwhile(
    machines: int, cap: int, changes: list[int], per_page: int
) -> None:
    inventory, revision = Inventory("abcdefghij"), 0
    for number in range(machines):
        revision += 1
        inventory.publish(Record(str(number), "p", SHAPE), revision)
    waiting = [change % machines for change in changes]
    seen: list[str] = []
    cursor = b""
    while True:
        page = pb.MachineList.FromString(inventory.listing((), cap, cursor))
        assert len(page.machines) <= cap
        seen += [machine.id for machine in page.machines]
        cursor = page.revision
        if not page.machines:
            break
        for change in waiting[:per_page]:
            revision += 1
            inventory.publish(Record(str(change), "p", SHAPE, State.CREATING), revision)
        waiting = waiting[per_page:] if per_page else []
    assert set(seen) == {str(number) for number in range(machines)}
    unchanged = {str(n) for n in range(machines)} - {str(c % machines) for c in changes}
    assert all(seen.count(machine) == 1 for machine in unchanged)


@settings(max_examples=300)
@given(
    st.integers(1, 40), st.integers(1, 12), st.integers(0, 50),
    st.lists(st.lists(st.tuples(st.integers(0, 39), st.sampled_from(list(State))), max_size=4),
             max_size=12),
    st.sets(st.sampled_from([State.IDLE, State.SPECULATIVE, State.CREATING]), max_size=2),
)  # fmt: skip
def test_a_walk_and_the_delta_after_it_know_the_whole_inventory(
    machines: int,
    cap: int,
    earlier: int,
    changes: list[list[tuple[int, State]]],
    states: set[State],
) -> None:
    inventory, revision = Inventory("abcdefghij"), 0
    truth: dict[str, State] = {}

    def publish(number: int, state: State) -> None:
        nonlocal revision
        revision += 1
        inventory.publish(Record(str(number), "p", SHAPE, state), revision)
        truth[str(number)] = state

    for number in range(machines):
        publish(number, State.SPECULATIVE)
    for _ in range(earlier):
        inventory.listing((), 1, b"")
    known: dict[str, State] = {}
    cursor, waiting = b"", list(changes)
    for _ in range(2 * machines + 50):
        page = pb.MachineList.FromString(inventory.listing(states, cap, cursor))
        assert len(page.machines) <= cap
        assert all(not states or State(machine.state) in states for machine in page.machines)
        known |= {machine.id: State(machine.state) for machine in page.machines}
        cursor = page.revision
        if not page.machines and not waiting:
            break
        for number, state in waiting.pop(0) if waiting else ():
            publish(number % machines, state)
    else:
        raise AssertionError("the walk does not end")
    expected = {id: state for id, state in truth.items() if not states or state in states}
    # A machine that leaves the filter during the walk is not listed again: matches alone count.
    assert {id: known.get(id) for id in expected} == expected


@given(TEXT, TEXT, st.dictionaries(TEXT, TEXT), TEXT, st.sampled_from(list(State)))
def test_a_record_comes_back_from_the_wire_and_from_the_store(
    host: str, cluster: str, metadata: dict[str, str], error: str, state: State
) -> None:
    record = Record(
        "id", "p", SHAPE, state, host=host, cluster=cluster, metadata=encode_metadata(metadata),
        last_error=error, create_op="op-1", observed=0.5, ends=7, life=3,
    )  # fmt: skip
    message = pb.Machine.FromString(encode(record))
    assert dict(message.shard_metadata) == metadata
    assert (message.cluster, message.host.ref, message.last_error) == (cluster, host, error)
    assert (message.interruption_probability, message.price_per_hour) == (0.5, 0.1)
    stored, revision = read_machine("id", "p", write_machine(record, 9), {Kind.CREATE: "op-1"})
    assert (stored, revision) == (record, 9)
    assert shape_of(SHAPE.encoded) == SHAPE


@given(st.lists(TEXT, min_size=1, max_size=3))
def test_keys_of_several_texts_are_never_mistaken(parts: list[str]) -> None:
    assert parts_of(key_of(*parts), len(parts)) == parts


@given(st.text(max_size=80), st.sampled_from([41, 63, 256]), st.sampled_from(["", "[a-z0-9-]*"]))
def test_a_tag_value_fits_and_is_read_back(value: str, longest: int, alphabet: str) -> None:
    codec = TagCodec("p", longest_value=longest, alphabet=alphabet)
    text = codec.encode(value)
    codec.know([value])
    assert len(text) <= longest
    assert codec.decode(text) == value
