"""Cycles, what they decided, and what rails held back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bigfleet.decision import ActionKind, Counters
from bigfleet.observe.distribution import FINE
from bigfleet.observe.metrics import Instruments

PHASES: Final = (
    "ingest", "reconcile", "snapread", "normalise", "phase1", "phase2", "phase3", "emit", "execute",
)  # fmt: skip
TRIGGERS: Final = ("tick", "wakeup")
CHANGES: Final = ("need_added", "need_changed", "need_removed", "machine_changed")
KINDS: Final = ("Bootstrap", "Provision", "Reclaim", "Preempt", "Delete", "Unspecified")
HELD: Final = ("spend_limit", "quota")
_NS: Final = 1e9


def kind_label(kind: ActionKind | str) -> str:
    """How an action is counted; what has no label of its own is Unspecified."""
    title = kind.title if isinstance(kind, ActionKind) else kind
    return title if title in KINDS else "Unspecified"


class CycleMetrics:
    """Written by the cycle, each series at most once per cycle."""

    def __init__(self, make: Instruments, warmup_cycles: int) -> None:
        self._warmup = warmup_cycles
        self._cycle_seconds = make.histogram(
            "cycle_duration_seconds", "Wall time of one decision cycle.", FINE
        )
        self._phase_seconds = make.histogram(
            "cycle_phase_duration_seconds", "Wall time of one phase.", FINE, phase=PHASES
        )
        self._cycles = make.counter("cycles_total", "Finished cycles.", trigger=TRIGGERS)
        self._last_cycle = make.gauge(
            "last_cycle_timestamp_seconds", "Unix time at which the last cycle finished."
        )
        self._changes = make.counter(
            "cycle_changes_total", "Input changes the cycles looked at.", kind=CHANGES
        )
        self._first = make.gauge(
            "start_to_first_decision_seconds", "Process start to end of the first whole cycle."
        )
        self._epoch = make.gauge("epoch", "Fencing epoch.")
        self._actions = make.counter("actions_total", "Decided and passed on.", kind=KINDS)
        self._deferred = make.counter("actions_deferred_total", "Held back by the cycle's limit.")
        self._dropped = make.counter("actions_dropped_total", "Refused by a full queue.")
        self._deduped = make.counter("actions_deduped_total", "The machine is busy or moved on.")
        self._suppressed = make.counter(
            "actions_suppressed_total", "Not executed because of a pause.", kind=KINDS
        )
        self._dry = make.counter(
            "actions_dryrun_total", "Not executed because of dry-run.", kind=KINDS
        )
        self._paused = make.gauge("actuation_paused", "The kill switch.")
        self._capped = make.counter("reclaims_capped_total", "Held back by the per-cluster cap.")
        self._unforced = make.counter("reclaims_unforced_total", "Reclaims at unchanged demand.")
        self._releases = make.counter("idle_releases_total", "Idle machines given back.")
        self._provisions_held = make.counter(
            "provisions_held_total", "Provisions a limit held back.", reason=HELD
        )
        self._cooling = make.gauge("stockouts_cooling", "Offerings set aside after a stock-out.")
        self._frozen = make.gauge(
            "clusters_frozen", "Clusters left out of decisions because of their work."
        )
        self._discarded = make.counter(
            "decisions_discarded_total", "Decisions given up because they took too long."
        )
        self._proposals = make.counter(
            "phase1_occ_proposals_total",
            "Claims of phase 1 granted, and refused because another row took the machine.",
            outcome=("committed", "conflict"),
        )
        self._displaced = make.counter(
            "phase1_occ_displacements_total", "Claims moved to a higher row."
        )
        self._exhausted = make.counter(
            "phase1_occ_retries_exhausted_total", "Rows given up after the retry limit."
        )

    def cycle(
        self,
        seconds: float,
        phases: Mapping[str, float],
        trigger: str,
        changes: Mapping[str, int],
        finished_ns: int,
    ) -> None:
        """One finished cycle; `changes` and `phases` by the names of the catalogue."""
        if self._warmup > 0:
            self._warmup -= 1
        else:
            self._cycle_seconds.observe(seconds)
            for phase, took in phases.items():
                self._phase_seconds.labels(phase).observe(took)
        self._cycles.labels(trigger).inc()
        for kind, count in changes.items():
            self._changes.labels(kind).inc(count)
        self._last_cycle.set(finished_ns / _NS)

    def clusters_frozen(self, count: int) -> None:
        """So many clusters were left out of the last decision."""
        self._frozen.set(count)

    def decision_discarded(self) -> None:
        """A decision took too long."""
        self._discarded.inc()

    def first_decision(self, seconds: float) -> None:
        """The first cycle that ran all phases ended so long after the process started."""
        self._first.set(seconds)

    def epoch(self, epoch: int) -> None:
        """The fencing epoch of this process."""
        self._epoch.set(epoch)

    def occ(self, counters: Counters, claims: int) -> None:
        """How phase 1 went; `claims` were granted."""
        self._proposals.labels("committed").inc(claims)
        self._proposals.labels("conflict").inc(counters.conflicts)
        self._displaced.inc(counters.displacements)
        self._exhausted.inc(counters.exhausted_retries)

    def action_passed(self, kind: ActionKind | str) -> None:
        """Decided and passed on."""
        self._actions.labels(kind_label(kind)).inc()

    def actions_suppressed(self, counts: Mapping[str, int]) -> None:
        """Not executed because of a pause."""
        for kind, count in counts.items():
            self._suppressed.labels(kind_label(kind)).inc(count)

    def actions_dryrun(self, counts: Mapping[str, int]) -> None:
        """Not executed because of dry-run."""
        for kind, count in counts.items():
            self._dry.labels(kind_label(kind)).inc(count)

    def actions_deferred(self, count: int) -> None:
        """Held back by the limit per cycle."""
        self._deferred.inc(count)

    def actions_dropped(self, count: int) -> None:
        """Refused by a full queue."""
        self._dropped.inc(count)

    def actions_deduped(self, count: int) -> None:
        """Refused because the machine is busy or has moved on."""
        self._deduped.inc(count)

    def actuation_paused(self, paused: bool) -> None:
        """The kill switch."""
        self._paused.set(paused)

    def reclaims_capped(self, count: int) -> None:
        """Reclaims held back by the cap."""
        self._capped.inc(count)

    def reclaims_unforced(self, count: int) -> None:
        """Reclaims that nothing asked for."""
        self._unforced.inc(count)

    def idle_released(self) -> None:
        """An Idle machine was given back after its hold."""
        self._releases.inc()

    def provisions_held(self, reason: str, count: int) -> None:
        """Provisions held back by `spend_limit` or `quota`."""
        self._provisions_held.labels(reason).inc(count)

    def stockouts_cooling(self, count: int) -> None:
        """Offerings set aside now."""
        self._cooling.set(count)
