"""The whole catalogue of metrics, as promised to users, against what every process exports.

A name, a type or a label that changes breaks users' alerts: it has to be changed here as well.
Values of labels and series that exist from the start are tested beside each part.
"""

import re

import pytest

import metric_reference
import query_reference
from metric_reference import PAGE, PREFIXES, Family, families, registries

PROMISED = """
[Shard]
counter:
    actions_deduped_total actions_deferred_total actions_dropped_total
    decisions_discarded_total idle_releases_total
    phase1_occ_displacements_total phase1_occ_retries_exhausted_total reclaims_capped_total
    reclaims_unforced_total rollups_accepted_total session_identity_rejected_total
    state_jumps_total
counter capacity_type:
    machines_lost_total
counter cluster:
    rollups_rejected_total
counter cluster limit:
    rollups_over_limit_total
counter code method provider:
    provider_rpc_total
counter direction:
    machines_transferred_total
counter event:
    session_lifecycle_total
counter kind:
    actions_dryrun_total actions_suppressed_total actions_total cycle_changes_total
counter kind outcome:
    action_execute_outcomes_total instructions_total
counter outcome:
    coordinator_report_total phase1_occ_proposals_total
counter reason:
    create_failures_total machines_rejected_total provisions_held_total
counter trigger:
    cycles_total
gauge:
    action_queue_depth active_sessions actuation_paused clusters_frozen clusters_stale
    coordinator_report_age_seconds coordinator_term epoch execute_inflight
    last_cycle_timestamp_seconds shortfalls start_to_first_decision_seconds stockouts_cooling
gauge bucket:
    shortfalls_aged
gauge capacity_type interruption_penalty_bucket state:
    inventory_machines
gauge capacity_type state:
    spend_dollars_per_hour
gauge cluster:
    rollup_quarantined
gauge interruption_penalty_bucket:
    demand_machines
gauge priority_class:
    shortfalls_by_priority
gauge provider region:
    provider_reconcile_age_seconds provider_removals_held
gauge reason:
    phantom_machines
gauge stat:
    rollup_age_seconds
gauge state:
    transition_age_max_seconds
histogram:
    configure_phase_seconds create_phase_seconds cycle_duration_seconds drain_phase_seconds
    join_phase_seconds provisioning_latency_seconds request_bootstrap_seconds
    rollup_ingest_seconds
histogram method provider:
    provider_rpc_duration_seconds
histogram phase:
    cycle_phase_duration_seconds
[Coordinator]
counter:
    addresses_refused_total leader_changes_total
counter op reason:
    store_errors_total
counter outcome:
    apply_total snapshot_exports_total
counter outcome tier:
    rebalance_moves_total
counter reason:
    rebalance_suppressed_total
counter surface:
    identity_rejected_total
counter tier:
    rebalance_machines_total
gauge:
    has_leader is_leader raft_term snapshot_last_success_timestamp_seconds store_term
gauge shard:
    pending_instructions shard_report_age_seconds
gauge table:
    state_entries
histogram:
    rebalance_adoption_seconds rebalance_sweep_duration_seconds
histogram op:
    store_duration_seconds
[Operator]
counter:
    acknowledged_total outbox_dropped_total session_reconnects_total
counter code_class resource verb:
    api_requests_total
counter op outcome:
    upcoming_node_writes_total
counter outcome:
    bootstrap_requests_total drains_total evictions_total
counter reason:
    capacity_requests_skipped_total
gauge:
    dispatch_inflight phantom_nodes rollup_age_seconds rollup_bytes rollup_rows session_connected
gauge phase:
    capacity_requests
histogram:
    acknowledge_duration_seconds rollup_duration_seconds
histogram op:
    upcoming_node_op_duration_seconds
histogram phase:
    node_state_update_duration_seconds rollup_phase_duration_seconds
histogram verb:
    api_duration_seconds
[Pod controller]
counter code_class resource verb:
    api_requests_total
counter outcome:
    reconciles_total
counter reason:
    watch_restarts_total
gauge:
    queue_depth
histogram:
    reconcile_duration_seconds
[Provider]
counter:
    heal_failures_total panics_total spot_interruptions_total
counter capacity_type:
    hosts_lost_total
counter code method:
    rpc_total
counter kind:
    transition_timeouts_total
counter kind outcome:
    transitions_total
counter method:
    fenced_total idempotent_replays_total
counter op:
    api_retries_total api_throttles_total store_errors_total
counter op outcome:
    api_calls_total
counter outcome:
    price_refresh_total reconcile_total
gauge:
    orphan_hosts price_last_success_timestamp_seconds reconcile_last_success_timestamp_seconds
gauge backend provider version:
    info
gauge capacity_type state:
    machines
gauge resource:
    allocatable_difference_ratio
gauge kind:
    transition_age_max_seconds transition_timeout_seconds transitions_inflight
histogram kind:
    transition_duration_seconds
histogram method:
    rpc_duration_seconds
histogram op:
    api_duration_seconds store_duration_seconds
"""
NEVER = {"machine", "node", "pod", "namespace", "instance_type", "fingerprint", "instance", "job"}


def promised(part: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Type and labels by name."""
    found: dict[str, tuple[str, frozenset[str]]] = {}
    section = PROMISED.partition(f"[{part}]\n")[2].partition("[")[0]
    kind, labels = "", frozenset[str]()
    for line in section.splitlines():
        if not line.startswith(" "):
            kind, *words = line.rstrip(":").split()
            labels = frozenset(words)
            continue
        for name in line.split():
            found[PREFIXES[part] + name] = (kind, labels)
    return found


@pytest.fixture(scope="module")
def exported() -> dict[str, list[Family]]:
    return {part: [*families(one, PREFIXES[part])] for part, one in registries().items()}


@pytest.mark.parametrize("part", PREFIXES)
def test_a_part_exports_what_is_promised_and_nothing_else(
    part: str, exported: dict[str, list[Family]]
) -> None:
    assert {one.name: (one.kind, one.labels) for one in exported[part]} == promised(part)


@pytest.mark.parametrize("part", PREFIXES)
def test_names_are_in_base_units_and_labels_name_no_machine(
    part: str, exported: dict[str, list[Family]]
) -> None:
    for one in exported[part]:
        assert one.name.endswith("_total") == (one.kind == "counter"), one.name
        assert not re.search(r"_(ms|millis|minutes|hours|kb|mb|percent)(_|$)", one.name)
        assert not one.labels & NEVER, one.name
        if one.kind == "histogram":
            assert one.name.endswith("_seconds")


def test_the_page_is_what_processes_export() -> None:
    assert PAGE.read_text("utf-8") == metric_reference.page(), "run make boards"


def test_the_promised_queries_are_written_down() -> None:
    assert query_reference.PAGE.read_text("utf-8") == query_reference.page(), "run make boards"
