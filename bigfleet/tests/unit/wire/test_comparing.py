"""Rows with Gt or Lt are left out only where a shard cannot read them."""

from bigfleet.wire.session import ComparisonSupport


def test_they_are_left_out_for_good_after_three_silent_beats() -> None:
    comparing = ComparisonSupport(beat=10.0)
    assert [comparing.sends(now) for now in (0.0, 10.0, 20.0, 30.0)] == [True, True, True, False]
    comparing.acknowledged()
    assert not comparing.sends(40.0)


def test_a_shard_that_is_busy_for_a_moment_is_waited_for() -> None:
    comparing = ComparisonSupport(beat=10.0)
    assert all(comparing.sends(now) for now in (0.0, 1.0, 2.0, 3.0, 4.0, 19.9))
    assert not comparing.sends(20.0)


def test_any_answer_shows_that_the_shard_reads_them() -> None:
    comparing = ComparisonSupport(beat=10.0)
    for now in range(0, 200, 10):
        assert comparing.sends(float(now))
        if now % 20:
            comparing.acknowledged()
