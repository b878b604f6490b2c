"""Which roll-ups are held, told one by one."""

from bigfleet.shard.demand.ingest import Ingest, RollUp
from bigfleet.shard.demand.quarantine import Quarantine, QuarantineSettings, QuarantineVerdict
from rollups import rollup, row


def rows(count: int, cpu: str = "10", prefix: str = "p") -> RollUp:
    return Ingest().read(rollup(*(row(f"{prefix}-{n}", cpu=cpu) for n in range(count))))


def unbound(_: str) -> dict[str, float]:
    return {}


def test_nothing_after_twenty_rows_is_held_and_believed_the_third_time_after_a_minute() -> None:
    quarantine = Quarantine(unbound)
    assert quarantine.judge("c-1", rows(20), 0).verdict is QuarantineVerdict.NORMAL
    verdicts = [quarantine.judge("c-1", rows(0), now).verdict for now in (10, 40, 69, 70, 80)]
    assert verdicts == [
        QuarantineVerdict.HELD, QuarantineVerdict.HELD, QuarantineVerdict.HELD,
        QuarantineVerdict.BELIEVED, QuarantineVerdict.NORMAL,
    ]  # fmt: skip


def test_two_are_too_few_however_far_apart() -> None:
    quarantine = Quarantine(unbound)
    quarantine.judge("c-1", rows(20), 0)
    assert quarantine.judge("c-1", rows(0), 10).verdict is QuarantineVerdict.HELD
    assert quarantine.judge("c-1", rows(0), 500).verdict is QuarantineVerdict.HELD


def test_a_normal_one_resets() -> None:
    quarantine = Quarantine(unbound)
    for now, count in ((0, 20), (10, 0), (40, 0), (50, 20)):
        quarantine.judge("c-1", rows(count), now)
    assert quarantine.judge("c-1", rows(0), 200).consecutive == 1


def test_one_row_of_nine_is_enough_when_its_resources_are() -> None:
    quarantine = Quarantine(unbound)
    quarantine.judge("c-1", rows(9), 0)
    assert quarantine.judge("c-1", rows(1, cpu="9"), 1).verdict is QuarantineVerdict.NORMAL


def test_the_same_rows_asking_for_almost_nothing_are_held() -> None:
    quarantine = Quarantine(unbound)
    quarantine.judge("c-1", rows(3, cpu="100"), 0)
    assert quarantine.judge("c-1", rows(3, cpu="9900m"), 1).verdict is QuarantineVerdict.HELD
    assert quarantine.judge("c-1", rows(3, cpu="10"), 1).verdict is QuarantineVerdict.NORMAL


def test_the_same_demand_in_other_words_is_not_held() -> None:
    quarantine = Quarantine(unbound)
    quarantine.judge("c-1", rows(20), 0)
    assert quarantine.judge("c-1", rows(20, prefix="q"), 1).verdict is QuarantineVerdict.NORMAL


def test_a_resource_that_only_one_job_used_may_go() -> None:
    quarantine = Quarantine(unbound)
    both = Ingest().read(rollup(row(aggregate={"cpu": "10", "gpu": "8"})))
    quarantine.judge("c-1", both, 0)
    one = Ingest().read(rollup(row(aggregate={"cpu": "9"})))
    assert quarantine.judge("c-1", one, 1).verdict is QuarantineVerdict.NORMAL


def test_after_a_restart_bound_capacity_is_what_it_is_compared_with() -> None:
    bound = {"c-1": {"cpu": 100.0, "pods": 500.0}, "c-2": {}}
    quarantine = Quarantine(bound.__getitem__)
    assert quarantine.judge("c-1", rows(0), 0).verdict is QuarantineVerdict.HELD
    assert quarantine.judge("c-1", rows(1, cpu="9"), 1).verdict is QuarantineVerdict.HELD
    assert quarantine.judge("c-1", rows(1, cpu="10"), 2).verdict is QuarantineVerdict.NORMAL
    assert quarantine.judge("c-2", rows(0), 0).verdict is QuarantineVerdict.NORMAL


def test_until_every_provider_has_spoken_an_empty_one_waits() -> None:
    quarantine = Quarantine(unbound, are_all_known=lambda: False)
    assert quarantine.judge("c-1", rows(0), 0).verdict is QuarantineVerdict.HELD
    assert quarantine.judge("c-1", rows(1), 0).verdict is QuarantineVerdict.NORMAL


def test_until_every_provider_has_spoken_bound_capacity_stays_what_it_is_compared_with() -> None:
    bound, everybody = {"cpu": 10.0}, [False]
    quarantine = Quarantine(lambda _: bound, are_all_known=lambda: everybody[0])
    assert quarantine.judge("c-1", rows(1, cpu="1"), 0).verdict is QuarantineVerdict.NORMAL
    bound["cpu"], everybody[0] = 1000.0, True
    assert quarantine.judge("c-1", rows(1, cpu="1"), 10).verdict is QuarantineVerdict.HELD


def test_what_is_believed_is_a_predecessor_although_a_provider_is_silent() -> None:
    quarantine = Quarantine(lambda _: {"cpu": 1000.0}, are_all_known=lambda: False)
    verdicts = [quarantine.judge("c-1", rows(1), now).verdict for now in (0, 30, 60, 70)]
    assert verdicts == [
        QuarantineVerdict.HELD,
        QuarantineVerdict.HELD,
        QuarantineVerdict.BELIEVED,
        QuarantineVerdict.NORMAL,
    ]


def test_a_forgotten_cluster_starts_afresh() -> None:
    quarantine = Quarantine(unbound)
    quarantine.judge("c-1", rows(20), 0)
    quarantine.judge("c-1", rows(0), 1)
    quarantine.forget("c-1")
    assert quarantine.judge("c-1", rows(0), 2).verdict is QuarantineVerdict.NORMAL


def test_limits_are_settings() -> None:
    lenient = Quarantine(unbound, QuarantineSettings(fraction=0.0))
    lenient.judge("c-1", rows(20), 0)
    assert lenient.judge("c-1", rows(0), 1).verdict is QuarantineVerdict.NORMAL
    strict = Quarantine(unbound, QuarantineSettings(0.5, rows=2, consecutive=2, seconds=5))
    strict.judge("c-1", rows(4), 0)
    assert strict.judge("c-1", rows(1), 1).verdict is QuarantineVerdict.HELD
    assert strict.judge("c-1", rows(1), 6).verdict is QuarantineVerdict.BELIEVED
