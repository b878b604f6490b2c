"""Fleet gauges: of one cycle, agreeing with each other, with ages of the moment."""

from bigfleet.decision import Plan, Policy
from bigfleet.decision.policy import SECOND
from bigfleet.model import Machine, Need
from bigfleet.observe.shard import ShardMetrics, ShortfallCounts
from bigfleet.observe.shard.ages import TransitionAges
from bigfleet.observe.shard.fleet import not_ready
from living import Living
from worlds import NOW, S, machine, need, serving


def plan_of(machines: list[Machine], needs: list[Need]) -> Plan:
    return Living().plan(machines, needs, NOW)


def value(metrics: ShardMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"bigfleet_shard_{name}", labels)


def machines_in(metrics: ShardMetrics, state: str, bucket: str) -> float | None:
    return value(
        metrics,
        "inventory_machines",
        state=state,
        capacity_type="OnDemand",
        interruption_penalty_bucket=bucket,
    )


def test_a_series_stays_from_its_first_use_on() -> None:
    metrics = ShardMetrics(lambda: NOW, version="1")
    asked = need(interruption=7)
    configuring = machine("m-1", S.CONFIGURING, serves=asked)
    assert machines_in(metrics, "Configuring", "16") is None
    metrics.decided(plan_of([configuring], [asked]), Policy(), NOW, ShortfallCounts(), {})
    assert machines_in(metrics, "Configuring", "16") == 1
    metrics.decided(plan_of([serving("m-1", asked)], [asked]), Policy(), NOW, ShortfallCounts(), {})
    assert machines_in(metrics, "Configuring", "16") == 0
    assert machines_in(metrics, "Configured", "16") == 1


def test_the_age_of_a_transition_grows_between_cycles() -> None:
    now = [NOW]
    metrics, ages = ShardMetrics(lambda: now[0], version="1"), TransitionAges(lambda: now[0])
    first, second = machine("m-1", S.CREATING), machine("m-2", S.CREATING)
    ages(None, first)
    now[0] += 5 * SECOND
    ages(None, second)
    plan = plan_of([first, second], [])
    metrics.decided(plan, Policy(), now[0], ShortfallCounts(), ages.oldest())
    now[0] += 10 * SECOND
    assert value(metrics, "transition_age_max_seconds", state="Creating") == 15
    assert value(metrics, "transition_age_max_seconds", state="Draining") == 0
    ages(first, machine("m-1", S.IDLE))
    metrics.decided(plan, Policy(), now[0], ShortfallCounts(), ages.oldest())
    assert value(metrics, "transition_age_max_seconds", state="Creating") == 10
    ages(second, None)
    assert ages.oldest() == {}


def test_late_nodes_are_phantoms_unless_the_whole_cluster_is_down() -> None:
    asked = need(cpu=40)
    late = [serving(f"l-{n}", asked, not_ready_for=1000) for n in range(3)]
    fine = [serving(f"f-{n}", asked) for n in range(7)]
    policy = Policy()
    assert not_ready(plan_of(late + fine, [asked]).fleet, policy, NOW) == 3
    assert not_ready(plan_of(late + fine[:3], [asked]).fleet, policy, NOW) == 0
    assert not_ready(plan_of(fine, [asked]).fleet, policy, NOW) == 0


def test_an_empty_shard_shows_zeros() -> None:
    metrics = ShardMetrics(lambda: NOW, version="1")
    metrics.decided(plan_of([], []), Policy(), NOW, ShortfallCounts(), {})
    assert value(metrics, "shortfalls") == 0
    assert machines_in(metrics, "Configured", "pinned") == 0
    assert value(metrics, "demand_machines", interruption_penalty_bucket="pinned") == 0
