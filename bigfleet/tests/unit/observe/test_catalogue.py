"""The catalogue of the shard, as promised to users, against what a fresh process exports.

One line per metric: name, type, then each label with its values. `...` is an open label: no series
before its first event.
"""

import itertools

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from bigfleet.observe.distribution import FINE, LONG, MEDIUM
from bigfleet.observe.shard import ShardMetrics

STATES = (
    "Speculative", "Creating", "Idle", "Configuring",
    "Configured", "Draining", "Deleting", "Failed",
)  # fmt: skip
TYPES = ("BareMetal", "Reserved", "OnDemand", "Spot")
BUCKETS = (
    "0", "0.5", "1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1024", "2048", "4096",
    "8192", "16384", "32768", "65536", "131072", "262144", "524288", "1048576", "2097152",
    "4194304", "8388608", "pinned",
)  # fmt: skip
KINDS = ("Bootstrap", "Provision", "Reclaim", "Preempt", "Delete", "Unspecified")

CATALOGUE = """
cycle_duration_seconds            histogram-F
cycle_phase_duration_seconds      histogram-F  phase=ingest,reconcile,snapread,normalise,phase1,phase2,phase3,emit,execute
cycles_total                      counter      trigger=tick,wakeup
last_cycle_timestamp_seconds      gauge
cycle_changes_total               counter      kind=need_added,need_changed,need_removed,machine_changed
start_to_first_decision_seconds   gauge
epoch                             gauge
demand_machines                   gauge        interruption_penalty_bucket=BUCKETS
shortfalls                        gauge
shortfalls_by_priority            gauge        priority_class=critical,service,batch,other
shortfalls_aged                   gauge        bucket=1-9,10-59,60-299,300+
phantom_machines                  gauge        reason=node_not_ready,absent,state_conflict
machines_lost_total               counter      capacity_type=TYPES
provider_removals_held            gauge        provider=... region=...
state_jumps_total                 counter
spend_dollars_per_hour            gauge        capacity_type=TYPES state=PRICED
machines_rejected_total           counter      reason=price,interruption_probability,structural
transition_age_max_seconds        gauge        state=Creating,Configuring,Draining,Deleting
provisioning_latency_seconds      histogram-L
request_bootstrap_seconds         histogram-M
configure_phase_seconds           histogram-M
join_phase_seconds                histogram-L
create_phase_seconds              histogram-L
drain_phase_seconds               histogram-L
actions_total                     counter      kind=KINDS
action_execute_outcomes_total     counter      kind=KINDS outcome=success,no_session,blob_error,provider_error,fenced,ctx_canceled,transition_error,transition_raced_to_idle,stale_state,inventory_miss,missing_profile,other
actions_deferred_total            counter
actions_dropped_total             counter
actions_deduped_total             counter
action_queue_depth                gauge
execute_inflight                  gauge
reclaims_capped_total             counter
reclaims_unforced_total           counter
idle_releases_total               counter
create_failures_total             counter      reason=out_of_capacity,quota,throttled,bad_request,unavailable
provisions_held_total             counter      reason=spend_limit,quota
stockouts_cooling                 gauge
actions_suppressed_total          counter      kind=KINDS
actions_dryrun_total              counter      kind=KINDS
actuation_paused                  gauge
phase1_occ_proposals_total        counter      outcome=committed,conflict
phase1_occ_displacements_total    counter
phase1_occ_retries_exhausted_total counter
active_sessions                   gauge
session_lifecycle_total           counter      event=installed,removed,replaced
session_identity_rejected_total   counter
clusters_frozen                   gauge
decisions_discarded_total         counter
rollups_accepted_total            counter
rollups_rejected_total            counter      cluster=...
rollups_over_limit_total          counter      cluster=... limit=...
rollup_ingest_seconds             histogram-M
rollup_quarantined                gauge        cluster=...
rollup_age_seconds                gauge        stat=p50,p95,max
clusters_stale                    gauge
provider_rpc_duration_seconds     histogram-M  provider=... method=...
provider_rpc_total                counter      provider=... method=... code=...
provider_reconcile_age_seconds    gauge        provider=... region=...
coordinator_report_total          counter      outcome=success,not_leader,error
coordinator_report_age_seconds    gauge
coordinator_term                  gauge
instructions_total                counter      kind=assign_domain,unassign_domain,reassign_speculative,cross_shard_drain,transfer_ownership outcome=done,failed,stale_term,duplicate
machines_transferred_total        counter      direction=in,out
"""  # noqa: E501 - a table

NAMED = {"STATES": STATES, "TYPES": TYPES, "BUCKETS": BUCKETS, "KINDS": KINDS, "PRICED": STATES[1:]}
SETS = {"F": FINE, "M": MEDIUM, "L": LONG}
Series = tuple[str, frozenset[tuple[str, str]]]


def metrics() -> ShardMetrics:
    return ShardMetrics(lambda: 0, version="1.2.3", revision="abc")


def promised() -> tuple[dict[str, str], set[Series]]:
    """Types by family, and the series that must be there from the start."""
    types: dict[str, str] = {}
    series: set[Series] = set()
    for line in CATALOGUE.strip().splitlines():
        name, kind, *labels = line.split()
        kind, _, bounds = kind.partition("-")
        full = f"bigfleet_shard_{name}"
        types[full.removesuffix("_total")] = kind
        if any(label.endswith("=...") for label in labels):
            continue
        lists = [
            (key, NAMED.get(v, v.split(","))) for key, _, v in (x.partition("=") for x in labels)
        ]
        for values in itertools.product(*(values for _, values in lists)):
            fixed = frozenset(zip((key for key, _ in lists), values, strict=True))
            if kind == "histogram":
                series |= {(f"{full}_sum", fixed), (f"{full}_count", fixed)}
                edges = [*map(str, map(float, SETS[bounds])), "+Inf"]
                series |= {(f"{full}_bucket", fixed | {("le", edge)}) for edge in edges}
            else:
                series.add((full, fixed))
    bucket = "interruption_penalty_bucket"
    types["bigfleet_shard_inventory_machines"] = "gauge"
    for state, kind in itertools.product(STATES, TYPES):
        for value in BUCKETS if state == "Configured" else ("0",):
            labels_of = {("state", state), ("capacity_type", kind), (bucket, value)}
            series.add(("bigfleet_shard_inventory_machines", frozenset(labels_of)))
    return types, series


def exported(registry: CollectorRegistry) -> tuple[dict[str, str], dict[Series, float]]:
    types: dict[str, str] = {}
    series: dict[Series, float] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        types[family.name] = family.type
        for sample in family.samples:
            series[sample.name, frozenset(sample.labels.items())] = sample.value
    return types, series


def test_every_metric_of_the_catalogue_is_there_with_its_type_and_none_besides() -> None:
    types, _ = exported(metrics().registry)
    ours = {name: kind for name, kind in types.items() if name.startswith("bigfleet_shard_")}
    assert ours == promised()[0]


def test_every_closed_series_exists_from_the_start_at_zero() -> None:
    _, series = exported(metrics().registry)
    ours = {key: value for key, value in series.items() if key[0].startswith("bigfleet_shard_")}
    assert set(ours) == promised()[1]
    assert not any(ours.values())


def test_a_process_also_says_what_it_is_and_how_it_fares() -> None:
    types, series = exported(metrics().registry)
    labels = {dict(key[1])["component"]: dict(key[1]) for key in series if "build_info" in key[0]}
    assert labels["shard"]["version"] == "1.2.3"
    assert labels["shard"]["revision"] == "abc"
    assert set(labels["shard"]) == {"component", "version", "revision", "python"}
    assert {"process_cpu_seconds", "process_resident_memory_bytes"} <= set(types)
    assert {"python_gc_collections", "python_gc_objects_collected"} <= set(types)


def test_the_end_of_certificates_is_told_only_where_there_are_any() -> None:
    made = metrics()
    name = "bigfleet_tls_certificate_expiry_timestamp_seconds"
    assert name not in exported(made.registry)[0]
    made.tls_expiry("server", 1000.0)
    made.tls_expiry("ca", 2000.0)
    made.tls_expiry("server", 3000.0)
    _, series = exported(made.registry)
    ends = {dict(key[1])["role"]: value for key, value in series.items() if key[0] == name}
    assert ends == {"server": 3000.0, "ca": 2000.0}


def test_a_busy_shard_stays_below_five_thousand_series() -> None:
    made = metrics()
    for n in range(6):
        made.provider_known(f"provider-{n}", "region")
        for method in ("Create", "Configure", "Drain", "Delete", "Get", "List"):
            made.provider_call(f"provider-{n}", method, "OK", 0.1)
    for n in range(100):
        made.rollup_rejected(f"cluster-{n}")
    assert len(exported(made.registry)[1]) < 5000


def test_two_components_of_one_process_do_not_share_series() -> None:
    one, other = metrics(), metrics()
    one.action_passed("Bootstrap")
    key = ("bigfleet_shard_actions_total", frozenset({("kind", "Bootstrap")}))
    assert exported(one.registry)[1][key] == 1
    assert exported(other.registry)[1][key] == 0
