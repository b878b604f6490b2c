"""The last cycles, one line each."""

import json
import tracemalloc
from dataclasses import replace

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


def test_records_come_back_as_they_were_whatever_their_phases_are_called() -> None:
    ring, other = CycleRing(), replace(record(2), phases={"ingest": 1, "emit": 2**40}, actions={})
    for each in (record(1), other, record(3)):
        ring.add(each)
    assert list(ring.since(1)) == [record(1), other, record(3)]


def test_a_full_ring_takes_a_few_megabytes() -> None:
    phases = {f"phase-{i}": 10**9 + i for i in range(9)}
    ring = CycleRing(kept=1000)
    tracemalloc.start()
    before = tracemalloc.take_snapshot()
    for number in range(1000):
        ring.add(replace(record(10**6 + number), phases=dict(phases)))
    grown = sum(s.size_diff for s in tracemalloc.take_snapshot().compare_to(before, "filename"))
    tracemalloc.stop()
    assert grown / 1000 < 250


def test_a_line_has_the_promised_fields() -> None:
    document = json.loads(record(7).line())
    assert list(document) == [
        "cycle", "start_unix_nanos", "trigger", "wall_ns", "cpu_ns", "phases", "needs", "machines",
        "changes", "actions", "shortfalls",
    ]  # fmt: skip
    assert document["phases"] == {"phase1": 5}
