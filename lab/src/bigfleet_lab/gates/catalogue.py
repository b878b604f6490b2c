"""Every gate, in the order in which a summary names the first failure.

`slo` fails the run; `goal` is this project's own, tighter bar. Thresholds that depend on the
profile are None here and set by `profiles.gate_rules`. A p99 needs 20 samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

P99_SAMPLES: Final = 20


@dataclass(frozen=True, slots=True)
class Gate:
    """One gate."""

    name: str
    unit: str
    slo: float | None
    dev_slo: float | None = None
    """Wider, for profiles that are marked as development ones."""
    at_least: bool = False
    samples: int = 1
    """Samples it needs; with fewer the gate is unmeasured."""
    goal: float | None = None
    measured: str = ""
    always: bool = True
    """Whether it belongs to every run; others have a cause in the profile."""

    def threshold(self, dev: bool) -> float | None:
        """The SLO of this profile."""
        return self.dev_slo if dev and self.dev_slo is not None else self.slo


_ALL: Final = (
    Gate(
        "loadgenCRsActive",
        "ratio",
        0.999,
        at_least=True,
        measured="lowest sample of demand that a shard has acknowledged, over what is wanted",
    ),
    Gate(
        "shardsReportingCycle",
        "shards",
        None,
        at_least=True,
        measured="shards with a cycle, in the minute with the fewest",
    ),
    Gate(
        "shardConfigurePhaseP99Seconds",
        "s",
        15,
        samples=P99_SAMPLES,
        measured="Bootstrap leaves the queue until Configure is accepted, worst shard",
    ),
    Gate(
        "bootstrapSuccessRatio",
        "ratio",
        0.99,
        at_least=True,
        measured="Bootstraps that ended well over all that ended",
    ),
    Gate(
        "operatorNodeStateUpdateP99Seconds",
        "s",
        1.5,
        5,
        samples=P99_SAMPLES,
        measured="a node's state reaches the API server",
    ),
    Gate(
        "shardShortfalls",
        "rows",
        0,
        measured="largest sum over shards, outside 60 s after an action or burst",
    ),
    Gate(
        "shardShortfallsDelta",
        "rows",
        None,
        always=False,
        measured="change of a standing shortfall",
    ),
    Gate(
        "shortfallAboveLowestClass",
        "rows",
        0,
        always=False,
        measured="shortfalls above the class that may lack",
    ),
    Gate("preemptActions", "actions", 1, at_least=True, always=False, measured="Preempt actions"),
    Gate(
        "costRoutingCorrect",
        "machines",
        1,
        at_least=True,
        always=False,
        measured="machines on the right side of the price flip",
    ),
    Gate(
        "costRoutingMisrouted",
        "machines",
        0,
        always=False,
        measured="machines on the wrong side of it",
    ),
    Gate(
        "burstCoveredSeconds",
        "s",
        None,
        always=False,
        measured="from the start of a burst until no row of it is unmet",
    ),
    Gate(
        "endToEndPodBindP50Seconds",
        "s",
        10,
        30,
        samples=P99_SAMPLES,
        measured="a pod is made until it is bound",
    ),
    Gate(
        "shardCycleDurationP99Seconds",
        "s",
        5,
        samples=P99_SAMPLES,
        measured="exact, worst shard, cycles of the window",
    ),
    Gate(
        "shardDecisionP99Seconds",
        "s",
        None,
        samples=P99_SAMPLES,
        measured="normalise and phases 1 to 3 of a cycle, exact, worst shard",
    ),
    Gate("operatorRollupP99Seconds", "s", 1, 2, samples=P99_SAMPLES, measured="a roll-up is made"),
    Gate(
        "operatorAckP99Seconds",
        "s",
        12,
        30,
        samples=P99_SAMPLES,
        measured="a roll-up is sent until its shard acknowledges it",
    ),
    Gate("coordinatorApplyErrorRate", "ratio", 0.001, measured="failed writes over all writes"),
    Gate("operatorOutboxDropsPerSec", "1/s", 0, measured="answers of operators dropped"),
    Gate("reclaimActionsDuringSoak", "actions", None, measured="Reclaims from the settle mark on"),
    Gate("reclaimsUnforced", "actions", 0, measured="Reclaims at unchanged demand"),
    Gate(
        "releasedRatio",
        "ratio",
        0.95,
        at_least=True,
        always=False,
        measured="machines released over machines that the shed pods needed",
    ),
    Gate(
        "reclaimsPerReleased",
        "ratio",
        1.1,
        always=False,
        measured="Reclaims over machines released",
    ),
    Gate(
        "coordinatorFailoverSeconds",
        "s",
        10,
        goal=10,
        always=False,
        measured="kill of the leader until another one has committed a write",
    ),
    Gate(
        "shardRestartToFirstDecisionSeconds",
        "s",
        30,
        goal=10,
        always=False,
        measured="start of the process until the end of its first full cycle",
    ),
    Gate(
        "phantomMachines",
        "machines",
        0,
        measured="largest in the window, outside 60 s after an action",
    ),
    Gate("orphanHosts", "hosts", 0, measured="at the end"),
)
GATES: Final[Mapping[str, Gate]] = {gate.name: gate for gate in _ALL}
