"""The last cycles, one line each."""

import json

from bigfleet.observe.cycles import CycleRecord, CycleRing


def record(number: int) -> CycleRecord:
    return CycleRecord(
        cycle=number, start_unix_nanos=number * 10, trigger="tick", wall_ns=1, cpu_ns=1,
        phases={"phase1": 5}, needs=2, machines=3, changes=1, actions={"Bootstrap": 1},
        shortfalls=0,
    )  # fmt: skip


def test_a_ring_keeps_the_newest() -> None:
    ring = CycleRing(kept=3)
    for number in range(1, 6):
        ring.add(record(number))
    assert [kept.cycle for kept in ring.since(0)] == [3, 4, 5]
    assert [kept.cycle for kept in ring.since(5)] == [5]
    assert list(ring.since(6)) == []


def test_a_line_has_the_promised_fields() -> None:
    document = json.loads(record(7).line())
    assert list(document) == [
        "cycle", "start_unix_nanos", "trigger", "wall_ns", "cpu_ns", "phases", "needs", "machines",
        "changes", "actions", "shortfalls",
    ]  # fmt: skip
    assert document["phases"] == {"phase1": 5}
