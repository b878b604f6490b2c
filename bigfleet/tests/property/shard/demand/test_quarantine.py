"""The quarantine against its rule, told as a story over the whole past of one cluster."""

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.shard.demand.ingest import Ingest, RollUp
from bigfleet.shard.demand.quarantine import Quarantine, QuarantineVerdict
from rollups import rollup, row

SAID = st.tuples(st.integers(0, 24), st.sampled_from([0, 1, 9, 10, 11, 100]), st.integers(1, 40))
"""How many rows, how much cpu each, and seconds since the one before."""


def spoken(rows: int, cpu: int) -> RollUp:
    needs = (row(f"p-{number}", cpu=str(cpu)) for number in range(rows))
    return Ingest().read(rollup(*needs))


def is_small(rows: int, cpu: int, before: tuple[int, int]) -> bool:
    few = before[0] >= 10 and rows * 10 < before[0]
    little = before[1] > 0 and rows * cpu * 10 < before[1]
    return few or little


@given(st.integers(0, 300), st.lists(SAID, max_size=20))
def test_small_ones_are_believed_the_third_time_after_a_minute(
    bound: int, story: list[tuple[int, int, int]]
) -> None:
    quarantine = Quarantine(lambda _: {"cpu": float(bound)})
    before = (0, bound)
    held: list[int] = []
    now = 0
    for rows, cpu, seconds in story:
        now += seconds
        judgement = quarantine.judge("c-1", spoken(rows, cpu), float(now))
        if not is_small(rows, cpu, before):
            assert judgement.verdict is QuarantineVerdict.NORMAL
            before, held = (rows, rows * cpu), []
            continue
        held.append(now)
        assert (judgement.rows, judgement.baseline) == (rows, before[0])
        assert judgement.consecutive == len(held)
        if len(held) >= 3 and now - held[0] >= 60:
            assert judgement.verdict is QuarantineVerdict.BELIEVED
            before, held = (rows, rows * cpu), []
        else:
            assert judgement.verdict is QuarantineVerdict.HELD
