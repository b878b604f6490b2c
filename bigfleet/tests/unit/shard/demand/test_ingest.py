"""Roll-ups as columns: taken whole or refused whole, one row per identity, quickly."""

import time

import pytest

from bigfleet.shard.demand import ingest
from bigfleet.shard.demand.errors import RollUpRefusedError
from bigfleet.shard.demand.ingest import Ingest
from bigfleet_api.v1alpha1 import capacity_pb2 as pb
from rollups import requirement, rollup, row, typical

ROWS_PER_SECOND = 10_000
SHARE_OF_A_CORE = 0.30


def test_columns_hold_whole_units_and_thousandths() -> None:
    taken = Ingest().read(
        rollup(
            row(aggregate={"memory": "1Gi", "cpu": "2500m"}, min_unit={"cpu": "1"}),
            at=7,
            overhead={"cpu": "100m"},
        )
    )
    assert (taken.cluster, taken.timestamp_ns, len(taken)) == ("c-1", 7, 1)
    assert taken.aggregate.names == ("cpu", "memory")
    assert taken.aggregate.whole.tolist() == [[2, 2**30]]
    assert taken.aggregate.milli.tolist() == [[500, 0]]
    assert taken.unit.of_row(0) == {"cpu": 1000}
    assert taken.stated.overhead == {"cpu": 100}


def test_raw_bytes_are_read_as_well() -> None:
    message = rollup(row("a"), row("b"))
    taken = Ingest().read(message.SerializeToString())
    assert taken.keys == Ingest().read(message).keys


def test_bytes_that_are_no_roll_up_are_refused() -> None:
    with pytest.raises(RollUpRefusedError, match="decoded"):
        Ingest().read(b"\xff\xff")


def test_rows_come_in_the_order_of_their_keys_however_they_were_sent() -> None:
    rows = [row("a", group="g2"), row("b"), row("a", group="g1"), row("a", size_class="s")]
    one, other = Ingest().read(rollup(*rows)), Ingest().read(rollup(*reversed(rows)))
    assert one.keys == other.keys == tuple(sorted(one.keys))
    assert one.aggregate.whole.tolist() == other.aggregate.whole.tolist()


def test_rows_of_equal_identity_are_added_up() -> None:
    taken = Ingest().read(
        rollup(
            row(cpu="1500m", unit="1"),
            row("b", cpu="1"),
            row(cpu="600m", min_unit={"cpu": "500m", "memory": "1Gi"}),
        )
    )
    mine = taken.keys.index(Ingest().read(rollup(row())).keys[0])
    assert len(taken) == 2
    assert taken.aggregate.of_row(mine) == {"cpu": 2100}
    assert taken.unit.of_row(mine) == {"cpu": 1000, "memory": 2**30 * 1000}


def test_group_and_size_class_keep_rows_apart() -> None:
    same = [requirement("rack", 5)]
    rows = [
        row(requirements=same, group="g-1"),
        row(requirements=same, group="g-2"),
        row(requirements=same, group="g-1", size_class="large"),
    ]
    assert len(Ingest().read(rollup(*rows))) == 3


def refused(message: pb.ClusterCapacityNeeds) -> str:
    with pytest.raises(RollUpRefusedError) as raised:
        Ingest().read(message)
    return str(raised.value)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (row(requirements=[requirement("zone", 6, "a")]), "operator 6"),
        (row(requirements=[requirement("zone", 99, "a")]), "operator 99"),
        (row(requirements=[requirement("cores", 100, "1", "2")]), "exactly one"),
        (row(requirements=[requirement("cores", 100, "abc")]), "exactly one"),
        (row(cpu="four"), "aggregate_resources: resource 'cpu'"),
        (row(unit="four"), "min_unit: resource 'cpu'"),
        (row(cpu="-1"), "negative"),
        (row(cpu="1e30"), "most one row may ask for"),
    ],
)
def test_one_bad_row_refuses_the_whole_and_is_named(bad: pb.CapacityNeed, said: str) -> None:
    reason = refused(rollup(row("x"), row("y"), bad))
    assert reason.startswith("need 2: ")
    assert said in reason
    with_equal_rows = refused(rollup(row("x"), row("x"), bad))
    assert with_equal_rows.startswith("need 2: ")
    assert said in with_equal_rows


def test_a_bad_bucket_refuses_the_whole() -> None:
    bad = row()
    bad.interruption_penalty_bucket = 28  # type: ignore[assignment]
    assert "penalty bucket 28" in refused(rollup(bad))


def test_equal_rows_that_are_too_much_together_are_refused() -> None:
    most = str(2**61)
    assert "together" in refused(rollup(row(cpu=most), row(cpu=most)))


def test_an_unreadable_overhead_refuses_the_whole() -> None:
    assert "node_overhead" in refused(rollup(row(), overhead={"cpu": "much"}))


def test_a_refusal_does_not_spoil_what_is_remembered() -> None:
    ingest = Ingest()
    with pytest.raises(RollUpRefusedError):
        ingest.read(rollup(row("x"), row("x", cpu="four")))
    assert ingest.read(rollup(row("x"))).aggregate.of_row(0) == {"cpu": 4000}


def test_memory_for_profiles_is_bounded() -> None:
    small, large = Ingest(profiles=3), Ingest()
    for number in range(20):
        message = rollup(row(f"p-{number}"), row(f"p-{number + 1}"))
        assert small.read(message).keys == large.read(message).keys
    assert len(small._profiles) <= 3


def test_ten_thousand_rows_a_second_cost_less_than_a_third_of_a_core() -> None:
    """A hundred clusters a second with a hundred rows each, amounts different every time."""
    assert seconds_per_row() * ROWS_PER_SECOND < SHARE_OF_A_CORE


def seconds_per_row() -> float:
    """Processor time to decode, check and make columns of one row, the best of some rounds."""
    ingest = Ingest()
    sent = [typical(100, step=step).SerializeToString() for step in range(20)]
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for raw in sent:
            ingest.read(raw)
        best = min(best, (time.process_time() - start) / (100 * len(sent)))
    return best


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (row(requirements=[requirement("a b", 1, "x")]), "requirement: key 'a b'"),
        (row(requirements=[requirement("k" * 9_000_000, 3)]), "(9000000 characters)"),
        (row(requirements=[requirement("k", 1, "v\n")]), "requirement k: value"),
        (row(requirements=[requirement("k", 2, "v" * 64)]), "value"),
        (row(aggregate={"cpu\0": "1"}), "aggregate_resources: resource"),
        (row(min_unit={"../x": "1"}), "min_unit: resource"),
        (row(group="g" * 1025), "group"),
        (row(group="g\r\n"), "group"),
    ],
)
def test_names_that_kubernetes_would_not_take_are_refused_in_few_words(
    bad: pb.CapacityNeed, words: str
) -> None:
    with pytest.raises(RollUpRefusedError) as caught:
        Ingest().read(rollup(row(), bad))
    assert words in str(caught.value)
    assert str(caught.value).startswith("need 1: ")
    assert len(str(caught.value)) < 700


def test_the_memory_of_profiles_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "_PROFILE_BYTES", 1000)
    reader = Ingest()
    for number in range(200):
        reader.read(rollup(row(f"pool-{number}")))
    assert sum(map(len, reader._profiles)) < 1100


def test_what_a_cluster_states_is_read_with_its_rows() -> None:
    message = rollup(row())
    message.tolerations_stated, message.default_arch, message.default_os = True, "amd64", "linux"
    stated = Ingest().read(message).stated
    assert (stated.tolerations, stated.arch, stated.os) == (True, "amd64", "linux")
    assert not Ingest().read(rollup(row())).stated.tolerations


def test_rows_that_tolerate_different_taints_are_different_rows() -> None:
    tolerant = row()
    tolerant.tolerations.add(key="gpu", operator="Exists")
    assert len(Ingest().read(rollup(row(), tolerant))) == 2


@pytest.mark.parametrize(
    ("toleration", "words"),
    [({"key": "a b", "operator": "Exists"}, "a b"), ({"key": "a", "operator": "Gt"}, "Gt"),
     ({"key": "a", "value": "b c"}, "b c")],
)  # fmt: skip
def test_a_toleration_that_cannot_be_refuses_the_roll_up(
    toleration: dict[str, str], words: str
) -> None:
    wrong = row()
    wrong.tolerations.add(**toleration)
    assert words in refused(rollup(wrong))


def test_a_row_with_very_many_tolerations_is_refused() -> None:
    wrong = row()
    for number in range(65):
        wrong.tolerations.add(key=f"key-{number}", operator="Exists")
    assert "65 tolerations" in refused(rollup(wrong))


def test_a_default_that_no_label_can_have_is_refused() -> None:
    message = rollup(row())
    message.default_arch = "no such arch"
    assert "default_arch" in refused(message)
