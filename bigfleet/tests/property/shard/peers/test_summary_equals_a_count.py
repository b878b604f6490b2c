"""The summary from columns says what counting machine by machine says."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.model import Machine, MachineState
from bigfleet.shard.peers.report import summarise
from coordinating import Shard, machine, stamp

S = MachineState
STATES = [S.SPECULATIVE, S.CREATING, S.IDLE, S.CONFIGURED, S.DRAINING, S.FAILED]


@st.composite
def fleets(draw: st.DrawFn) -> list[Machine]:
    made = []
    for number in range(draw(st.integers(0, 25))):
        state = draw(st.sampled_from(STATES))
        claimed = state is S.CONFIGURED or (state is S.IDLE and draw(st.booleans()))
        made.append(
            machine(
                f"m-{number}",
                state,
                kind=draw(st.sampled_from(["a", "b"])),
                zone=draw(st.sampled_from(["z-a", "z-b", ""])),
                provider=draw(st.sampled_from(["p", "q"])),
                cpu=draw(st.sampled_from([1_500, 4_000])),
                stamp=stamp() if claimed else None,
            )
        )
    return made


@given(fleets(), st.sets(st.integers(0, 24)))
def test_the_summary_equals_a_count_machine_by_machine(
    machines: list[Machine], gone: set[int]
) -> None:
    shard = Shard(machines=machines)
    for number in gone:
        shard.book.vanish(f"m-{number}")
    summary = summarise(shard.book.snapshot(), "s-1", "")
    there = [one for one in machines if one.id not in {f"m-{n}" for n in gone}]
    assert summary.total_machines == len(there)
    assert summary.free_machines == sum(one.state in (S.IDLE, S.SPECULATIVE) for one in there)
    assert summary.per_instance_type_counts == Counter(one.instance_type for one in there)
    assert summary.per_zone_counts == Counter(one.zone for one in there)
    spare = [one for one in there if one.stamp is None]
    for state, column in ((S.IDLE, "idle"), (S.SPECULATIVE, "speculative")):
        said = Counter[tuple[str, str, str, str]]()
        for row in summary.free_by_class:
            key = (row.instance_type, row.zone, row.provider, row.allocatable.resources["cpu"])
            said[key] += getattr(row, column)
        counted = Counter(
            (one.instance_type, one.zone, one.provider,
             {1_500: "1500m", 4_000: "4"}[one.resources["cpu"]])
            for one in spare if one.state is state
        )  # fmt: skip
        assert +said == counted
    announced = Counter(one.provider for one in there)
    assert {t.provider: t.per_shard["s-1"] for t in summary.quota_totals} == announced
