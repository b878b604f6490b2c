"""The catalogues of operator and pod controller, as promised, against what a fresh process exports.

One line per metric: name, type, then each label with its values. `...` is an open label: no series
before its first event.
"""

import itertools

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from bigfleet.observe.distribution import MEDIUM
from bigfleet.observe.operator import OperatorMetrics
from bigfleet.observe.podcontroller import PodControllerMetrics

OPERATOR = """
rollup_duration_seconds             histogram
rollup_phase_duration_seconds       histogram  phase=list,build,enqueue
rollup_age_seconds                  gauge
rollup_rows                         gauge
rollup_bytes                        gauge
acknowledge_duration_seconds        histogram
acknowledged_total                  counter
capacity_requests                   gauge      phase=Pending,Acknowledged
capacity_requests_skipped_total     counter    reason=bad_operator,bad_quantity
session_connected                   gauge
session_reconnects_total            counter
outbox_dropped_total                counter
dispatch_inflight                   gauge
node_state_update_duration_seconds  histogram  phase=Provisioning,Launched,Registered,Ready,Draining,Drained,Failed
upcoming_node_writes_total          counter    op=create,spec_update,status_update,delete outcome=success,conflict,error,noop
upcoming_node_op_duration_seconds   histogram  op=create,spec_update,status_update,delete
phantom_nodes                       gauge
bootstrap_requests_total            counter    outcome=success,unsatisfiable,error
drains_total                        counter    outcome=drained,deadline,node_gone,cancelled
evictions_total                     counter    outcome=success,blocked,gone,error
api_requests_total                  counter    verb=... resource=... code_class=...
api_duration_seconds                histogram  verb=get,list,watch,create,patch,delete
"""  # noqa: E501 - a table
POD_CONTROLLER = """
reconciles_total            counter    outcome=cr_created,cr_exists,cr_updated,pod_gone,pod_terminal,pod_skipped,pod_unsupported,error
reconcile_duration_seconds  histogram
queue_depth                 gauge
watch_restarts_total        counter    reason=expired,closed,error
api_requests_total          counter    verb=... resource=... code_class=...
"""  # noqa: E501 - a table
Series = tuple[str, frozenset[tuple[str, str]]]


def promised(prefix: str, catalogue: str) -> tuple[dict[str, str], set[Series]]:
    types: dict[str, str] = {}
    series: set[Series] = set()
    for line in catalogue.strip().splitlines():
        name, kind, *labels = line.split()
        full = prefix + name
        types[full.removesuffix("_total")] = kind
        if any(label.endswith("=...") for label in labels):
            continue
        lists = [(key, v.split(",")) for key, _, v in (one.partition("=") for one in labels)]
        for values in itertools.product(*(values for _, values in lists)):
            fixed = frozenset(zip((key for key, _ in lists), values, strict=True))
            if kind == "histogram":
                series |= {(f"{full}_sum", fixed), (f"{full}_count", fixed)}
                edges = [*map(str, map(float, MEDIUM)), "+Inf"]
                series |= {(f"{full}_bucket", fixed | {("le", edge)}) for edge in edges}
            else:
                series.add((full, fixed))
    return types, series


@pytest.mark.parametrize(
    ("registry", "prefix", "catalogue"),
    [
        (OperatorMetrics(lambda: 0.0, version="1").registry, "bigfleet_operator_", OPERATOR),
        (
            PodControllerMetrics(version="1").registry,
            "bigfleet_unschedulable_pod_controller_",
            POD_CONTROLLER,
        ),
    ],
)
def test_a_fresh_process_exports_exactly_what_is_promised(
    registry: CollectorRegistry, prefix: str, catalogue: str
) -> None:
    types, series = promised(prefix, catalogue)
    found = [
        family
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        if family.name.startswith(prefix)
    ]
    assert {family.name: family.type for family in found} == types
    shown = {
        (sample.name, frozenset(sample.labels.items()))
        for family in found
        for sample in family.samples
    }
    assert shown == series


def test_calls_of_the_kubernetes_client_are_counted() -> None:
    metrics = OperatorMetrics(lambda: 0.0, version="1")
    metrics.requested("patch", "nodes", "409", 0.2)
    labels = {"verb": "patch", "resource": "nodes", "code_class": "409"}
    value = metrics.registry.get_sample_value("bigfleet_operator_api_requests_total", labels)
    assert value == 1


def test_ages_are_computed_when_they_are_read() -> None:
    now = [0.0]
    metrics = OperatorMetrics(lambda: now[0], version="1")
    now[0] = 7.0
    assert metrics.registry.get_sample_value("bigfleet_operator_rollup_age_seconds") == 7
    metrics.rollup_taken()
    assert metrics.registry.get_sample_value("bigfleet_operator_rollup_age_seconds") == 0


def test_a_replica_that_stands_by_says_nothing_of_a_session_it_should_not_have() -> None:
    metrics = OperatorMetrics(lambda: 0.0, version="1")
    read = metrics.registry.get_sample_value
    assert read("bigfleet_operator_session_connected") == 0
    metrics.standing_by(lambda: True)
    assert read("bigfleet_operator_session_connected") is None
    assert read("bigfleet_operator_rollup_age_seconds") is None
    metrics.standing_by(lambda: False)
    metrics.session(connected=True)
    assert read("bigfleet_operator_session_connected") == 1
