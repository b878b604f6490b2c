"""What the methods of `ShardMetrics` count, and what ages, goes and comes by itself."""

import pytest

from bigfleet.decision import ActionKind, Counters
from bigfleet.model import CapacityType
from bigfleet.observe.shard import ShardMetrics

HOUR = 3600 * 10**9


class World:
    """Metrics with a clock that is set by hand."""

    def __init__(self, warmup: int = 0) -> None:
        self.seconds = 1000.0
        self.metrics = ShardMetrics(
            lambda: int(self.seconds * 1e9), version="1", warmup_cycles=warmup
        )

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"bigfleet_shard_{name}", labels)

    def cycle(self) -> None:
        self.metrics.cycle(
            0.02, {"ingest": 0.01, "phase1": 0.01}, "tick", {"need_added": 2}, 5 * 10**9
        )


@pytest.fixture
def world() -> World:
    return World()


def test_warm_up_skips_the_histograms_and_nothing_else() -> None:
    world = World(warmup=2)
    for _ in range(3):
        world.cycle()
    assert world.value("cycle_duration_seconds_count") == 1
    assert world.value("cycle_phase_duration_seconds_count", phase="phase1") == 1
    assert world.value("cycles_total", trigger="tick") == 3
    assert world.value("cycle_changes_total", kind="need_added") == 6
    assert world.value("last_cycle_timestamp_seconds") == 5


def test_an_action_without_a_label_of_its_own_is_unspecified(world: World) -> None:
    world.metrics.action_passed(ActionKind.KEEP)
    world.metrics.action_passed(ActionKind.PREEMPT)
    world.metrics.action_ended("Keep", "success")
    world.metrics.action_ended("Delete", "something new")
    assert world.value("actions_total", kind="Unspecified") == 1
    assert world.value("actions_total", kind="Preempt") == 1
    assert world.value("action_execute_outcomes_total", kind="Unspecified", outcome="success") == 1
    assert world.value("action_execute_outcomes_total", kind="Delete", outcome="other") == 1


def test_rails_are_counted_by_kind_and_reason(world: World) -> None:
    made = world.metrics
    made.actions_suppressed({"Reclaim": 3})
    made.actions_dryrun({"Provision": 2})
    made.actions_deferred(4)
    made.actions_dropped(5)
    made.actions_deduped(6)
    made.reclaims_capped(7)
    made.reclaims_unforced(8)
    made.idle_released()
    made.provisions_held("quota", 9)
    made.stockouts_cooling(10)
    made.actuation_paused(True)
    made.occ(Counters(conflicts=2), claims=20)
    assert world.value("actions_suppressed_total", kind="Reclaim") == 3
    assert world.value("actions_dryrun_total", kind="Provision") == 2
    assert world.value("actions_deferred_total") == 4
    assert world.value("actions_dropped_total") == 5
    assert world.value("actions_deduped_total") == 6
    assert world.value("reclaims_capped_total") == 7
    assert world.value("reclaims_unforced_total") == 8
    assert world.value("idle_releases_total") == 1
    assert world.value("provisions_held_total", reason="quota") == 9
    assert world.value("stockouts_cooling") == 10
    assert world.value("actuation_paused") == 1
    assert world.value("phase1_occ_proposals_total", outcome="committed") == 20
    assert world.value("phase1_occ_proposals_total", outcome="conflict") == 2


def test_times_of_machines_go_to_their_histograms(world: World) -> None:
    made = world.metrics
    made.provisioned(1.0)
    made.bootstrap_received(2.0)
    made.configure_accepted(3.0)
    made.joined(4.0)
    made.created(5.0)
    made.drained(6.0)
    made.action_queue(7, 8)
    made.create_failed("throttled")
    made.first_decision(9.0)
    made.epoch(10)
    assert world.value("provisioning_latency_seconds_sum") == 1
    assert world.value("request_bootstrap_seconds_sum") == 2
    assert world.value("configure_phase_seconds_sum") == 3
    assert world.value("join_phase_seconds_sum") == 4
    assert world.value("create_phase_seconds_sum") == 5
    assert world.value("drain_phase_seconds_sum") == 6
    assert world.value("action_queue_depth") == 7
    assert world.value("execute_inflight") == 8
    assert world.value("create_failures_total", reason="throttled") == 1
    assert world.value("start_to_first_decision_seconds") == 9
    assert world.value("epoch") == 10


def test_a_provider_has_series_from_when_it_is_dialled(world: World) -> None:
    made = world.metrics
    made.provider_known("aws", "eu")
    world.seconds += 30
    assert world.value("provider_reconcile_age_seconds", provider="aws", region="eu") == 30
    assert world.value("provider_removals_held", provider="aws", region="eu") == 0
    assert world.value("provider_rpc_total", provider="aws", method="Create", code="OK") == 0
    made.provider_merged("aws", "eu")
    made.removals_held("aws", "eu", 12)
    made.provider_call("aws", "List", "UNAVAILABLE", 0.5)
    assert world.value("provider_reconcile_age_seconds", provider="aws", region="eu") == 0
    assert world.value("provider_removals_held", provider="aws", region="eu") == 12
    assert world.value("provider_rpc_total", provider="aws", method="List", code="UNAVAILABLE") == 1
    assert world.value("provider_rpc_duration_seconds_sum", provider="aws", method="List") == 0.5
    made.provider_gone("aws", "eu")
    assert world.value("provider_reconcile_age_seconds", provider="aws", region="eu") is None


def test_losses_jumps_and_refusals_are_counted(world: World) -> None:
    made = world.metrics
    made.machine_lost(CapacityType.SPOT)
    made.machine_lost(CapacityType.UNSPECIFIED)
    made.state_jump()
    made.machine_rejected("price")
    assert world.value("machines_lost_total", capacity_type="Spot") == 1
    assert world.value("machines_lost_total", capacity_type="BareMetal") == 1
    assert world.value("state_jumps_total") == 1
    assert world.value("machines_rejected_total", reason="price") == 1


def test_roll_up_ages_are_those_of_the_moment_they_are_asked_for(world: World) -> None:
    made = world.metrics
    assert world.value("rollup_age_seconds", stat="max") == 0
    for n in range(20):
        made.rollup_accepted(f"c-{n}")
        world.seconds += 10
    assert world.value("rollup_age_seconds", stat="p50") == 100
    assert world.value("rollup_age_seconds", stat="p95") == 190
    assert world.value("rollup_age_seconds", stat="max") == 200
    assert world.value("clusters_stale") == 14
    assert world.value("rollups_accepted_total") == 20


def test_a_known_cluster_that_never_reported_grows_stale(world: World) -> None:
    world.metrics.clusters({"silent"})
    world.seconds += 61
    assert world.value("clusters_stale") == 1
    world.metrics.clusters(set())
    assert world.value("clusters_stale") == 0


def test_series_of_a_cluster_go_an_hour_after_it_went(world: World) -> None:
    made = world.metrics
    made.rollup_rejected("gone")
    made.rollup_quarantined("gone", True)
    made.rollup_rejected("here")
    made.clusters({"gone", "here"})
    made.clusters({"here"})
    world.seconds += 3599
    made.clusters({"here"})
    assert world.value("rollups_rejected_total", cluster="gone") == 1
    assert world.value("rollup_quarantined", cluster="gone") == 1
    world.seconds += 1
    made.clusters({"here"})
    assert world.value("rollups_rejected_total", cluster="gone") is None
    assert world.value("rollup_quarantined", cluster="gone") is None
    assert world.value("rollups_rejected_total", cluster="here") == 1


def test_a_cluster_that_comes_back_within_the_hour_keeps_its_series(world: World) -> None:
    made = world.metrics
    made.rollup_rejected("c")
    made.clusters(set())
    world.seconds += 3000
    made.clusters({"c"})
    made.clusters(set())
    world.seconds += 3000
    made.clusters(set())
    assert world.value("rollups_rejected_total", cluster="c") == 1


def test_a_cluster_never_held_back_has_no_quarantine_series(world: World) -> None:
    world.metrics.rollup_quarantined("c", False)
    assert world.value("rollup_quarantined", cluster="c") is None
    world.metrics.rollup_quarantined("c", True)
    world.metrics.rollup_quarantined("c", False)
    assert world.value("rollup_quarantined", cluster="c") == 0


def test_sessions_and_the_coordinator_are_counted(world: World) -> None:
    made = world.metrics
    made.session_event("installed", 1)
    made.session_identity_rejected()
    made.rollup_ingest(0.5)
    made.coordinator_term(7)
    made.instruction("transfer_ownership", "done")
    made.machines_transferred("out", 3)
    made.coordinator_report("error")
    assert world.value("active_sessions") == 1
    assert world.value("session_lifecycle_total", event="installed") == 1
    assert world.value("session_identity_rejected_total") == 1
    assert world.value("rollup_ingest_seconds_sum") == 0.5
    assert world.value("coordinator_term") == 7
    assert world.value("instructions_total", kind="transfer_ownership", outcome="done") == 1
    assert world.value("machines_transferred_total", direction="out") == 3
    assert world.value("coordinator_report_total", outcome="error") == 1


def test_the_age_of_the_last_report_counts_only_where_there_is_a_coordinator(world: World) -> None:
    world.seconds += 100
    assert world.value("coordinator_report_age_seconds") == 0
    world.metrics.coordinator_expected()
    world.seconds += 100
    world.metrics.coordinator_report("not_leader")
    assert world.value("coordinator_report_age_seconds") == 100
    world.metrics.coordinator_report("success")
    assert world.value("coordinator_report_age_seconds") == 0
