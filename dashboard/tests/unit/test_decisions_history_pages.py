"""What happened: decisions, points of the past, and what shards say on their pages."""

import json

from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from bigfleet_dashboard.state.decisions import DecisionLog
from bigfleet_dashboard.state.history import History, Point
from bigfleet_dashboard.state.pages import Cycles, quantile, read_scrape


def decision(machine: str, cycle: int = 1, outcome: str = "", at: int = 10**12) -> pb.Decision:
    return pb.Decision(
        cycle=cycle, unix_nanos=at, kind="Provision", machine_id=machine, cluster_id="atlas",
        reason="cheapest", cost_per_hour=0.38, outcome=outcome,
    )  # fmt: skip


def test_the_end_of_a_decision_completes_it_instead_of_standing_beside_it() -> None:
    log = DecisionLog()
    begun = log.take("s", decision("m-1"))
    ended = log.take("s", decision("m-1", outcome="success"))
    assert begun is not None
    assert ended is not None
    assert (len(log), ended.outcome, ended.number) == (1, "success", begun.number + 1)


def test_what_is_told_again_after_a_reconnect_is_no_news() -> None:
    log = DecisionLog()
    log.take("s", decision("m-1", outcome="success"))
    assert log.take("s", decision("m-1")) is None
    assert log.take("s", decision("m-1", outcome="success")) is None
    assert log.take("t", decision("m-1")) is not None


def test_a_shard_that_started_again_may_decide_the_same_in_the_same_cycle() -> None:
    log = DecisionLog()
    log.take("s", decision("m-1", outcome="success"))
    later = log.take("s", decision("m-1", outcome="success", at=2 * 10**12))
    assert later is not None
    assert (len(log), later.unix_nanos) == (1, 2 * 10**12)


def test_only_the_newest_decisions_are_kept() -> None:
    log = DecisionLog(kept=3)
    for number in range(10):
        log.take("s", decision(f"m-{number}"))
    assert [entry.machine for entry in log.newest(9)] == ["m-9", "m-8", "m-7"]


def test_decisions_are_found_by_kind_cluster_and_words() -> None:
    log = DecisionLog()
    log.take("s", decision("m-1"))
    assert log.newest(5, kind="Delete") == []
    assert log.newest(5, cluster="borealis") == []
    assert len(log.newest(5, words="cheap")) == 1


def test_only_the_last_minute_counts_as_per_minute() -> None:
    log = DecisionLog()
    minute = 60 * 10**9
    log.take("s", decision("old", at=10**12))
    log.take("s", decision("new", at=10**12 + minute))
    assert log.per_minute(10**12 + minute + 1) == {"Provision": 1}


def test_a_point_too_early_is_passed_over_and_old_ones_go() -> None:
    history = History(kept=2)
    for seconds in (10.0, 10.5, 12.0, 14.0):
        history.add(Point(seconds, 1.0, 0, {"Idle": 1}, 0, 0.0))
    assert history.document()["time"] == [12.0, 14.0]
    assert history.document(since=12.0)["states"] == {"Idle": [1]}
    assert History().document()["time"] == []


def test_of_a_scrape_only_what_is_shown_is_read() -> None:
    page = (
        "# HELP x y\n"
        'bigfleet_shard_rollup_age_seconds{stat="max"} 4.5\n'
        'bigfleet_shard_provider_rpc_total{provider="a\\"b",method="List",code="OK"} 7.0\n'
        "bigfleet_shard_stockouts_cooling 2.0\n"
        "bigfleet_shard_stockouts_cooling broken\n"
        "process_cpu_seconds_total 99\n"
    )
    scrape = read_scrape(page)
    assert scrape.one("rollup_age_seconds", stat="max") == 4.5
    assert scrape.total("provider_rpc_total", provider='a"b') == 7.0
    assert scrape.one("stockouts_cooling") == 2.0
    assert scrape.one("rollup_age_seconds", stat="p50") is None
    assert len(scrape.samples) == 3


def test_cycles_are_taken_once_and_a_line_that_cannot_be_read_is_skipped() -> None:
    def line(cycle: int, at: int) -> str:
        return json.dumps(
            {
                "cycle": cycle, "start_unix_nanos": at, "trigger": "tick", "wall_ns": 5_000_000,
                "cpu_ns": 1, "phases": {"emit": 1_000_000}, "needs": 1, "machines": 2,
                "changes": 0, "actions": {}, "shortfalls": 0,
            }
        )  # fmt: skip

    cycles = Cycles()
    cycles.take(f"{line(1, 10**9)}\nnonsense\n{line(2, 2 * 10**9)}\n")
    cycles.take(f"{line(2, 2 * 10**9)}\n{line(1, 3 * 10**9)}")
    assert [c.cycle for c in cycles.newest(9)] == [1, 2, 1]
    assert cycles.newest(1)[0].phases == {"emit": 1.0}


def test_a_quantile_of_nothing_is_nothing() -> None:
    assert quantile([], 0.99) is None
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([1.0], 0.99) == 1.0
