"""What must hold after a disturbance, decided from samples and cycles alone.

Every function takes what was seen and answers with windows: a name, how long it may take, how long
it took, and whether that is good enough. Nothing is read from processes here, so the same record
gives the same verdict again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from bigfleet_scaletest.record.samples import FleetSample, total

_LONGEST_SAMPLE_GAP: Final = 5.0
_QUIET_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class ActionRecord:
    """An action as it was carried out."""

    action: str
    struck: str
    """The process."""
    fired_unix_s: float
    until_unix_s: float
    """End of the disturbance: of a cut its end, of a kill the kill."""
    before: FleetSample
    samples: Sequence[FleetSample]
    """From 30 s before to the end of its time."""
    cycles: Sequence[Mapping[str, Any]]
    cycle_interval_s: float
    gone_seconds: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Probe writes and lists of the coordinator, before and after."""
    expect: Mapping[str, float] = field(default_factory=dict)

    def after(self, since: float | None = None) -> Iterator[FleetSample]:
        """Samples after the event."""
        start = self.fired_unix_s if since is None else since
        return (each for each in self.samples if each.unix_s > start)

    def first(
        self, holds: Callable[[FleetSample], bool], since: float | None = None
    ) -> float | None:
        """Seconds until something held for the first time."""
        start = self.fired_unix_s if since is None else since
        for sample in self.after(since):
            if holds(sample):
                return sample.unix_s - start
        return None


@dataclass(frozen=True, slots=True)
class CheckedWindow:
    """One thing that must hold."""

    check: str
    passed: bool
    limit_seconds: float | None = None
    measured_seconds: float | None = None
    detail: str = ""

    def document(self) -> dict[str, Any]:
        """For the summary."""
        measured = self.measured_seconds
        return {
            "check": self.check, "limitSeconds": self.limit_seconds,
            "measuredSeconds": None if measured is None else round(measured, 2),
            "passed": self.passed, "detail": self.detail,
        }  # fmt: skip


def windows(record: ActionRecord) -> list[CheckedWindow]:
    """Everything that must hold after this action."""
    found = [_sampled(record)]
    if record.action == "kill-coordinator-leader":
        found += _leader_kill(record)
    elif record.action.startswith("kill-shard-"):
        found += _shard_kill(record)
    elif record.action.startswith("partition-coordinator-from-shard-"):
        found += _partition(record)
    else:
        found += _provider_kill(record)
    return found


def _window(record: ActionRecord, check: str, limit: float, seconds: float | None) -> CheckedWindow:
    limit = min(limit, record.expect.get(check, limit))
    return CheckedWindow(check, seconds is not None and seconds <= limit, limit, seconds)


def _sampled(record: ActionRecord) -> CheckedWindow:
    times = [each.unix_s for each in record.samples]
    gap = max((later - now for now, later in pairwise(times)), default=float("inf"))
    return CheckedWindow("sampled", gap <= _LONGEST_SAMPLE_GAP, _LONGEST_SAMPLE_GAP, gap)


def _number(sample: FleetSample, process: str, name: str, label: str = "") -> float | None:
    return total(sample.processes.get(process, {}), name, label)


# -- the coordinator -----------------------------------------------------------------------------


def _leaders(sample: FleetSample) -> dict[str, float]:
    """Replicas that lead, and the term of each."""
    return {
        name: _number(sample, name, "bigfleet_coordinator_raft_term") or 0.0
        for name in sample.processes
        if _number(sample, name, "bigfleet_coordinator_is_leader") == 1
    }


def _leader_kill(record: ActionRecord) -> Iterator[CheckedWindow]:
    term = _leaders(record.before).get(record.struck, 0.0)

    def another_leads(sample: FleetSample) -> bool:
        return any(
            name != record.struck and number > term for name, number in _leaders(sample).items()
        )

    yield _window(record, "processGone", 1, record.gone_seconds)
    yield _window(record, "newLeader", 10, record.first(another_leads))
    yield _window(record, "probeWrite", 10, record.facts.get("probeSeconds"))
    yield _window(record, "shardReports", 20, _all_report(record, record.fired_unix_s))
    # A sample taken at the kill may still show the replica: first it has to be absent.
    absent = record.first(lambda s: record.struck not in s.processes)
    back = (
        None
        if absent is None
        else record.first(
            lambda s: _number(s, record.struck, "bigfleet_coordinator_has_leader") == 1,
            since=record.fired_unix_s + absent,
        )
    )
    back = None if back is None or absent is None else absent + back
    yield _window(record, "oldReplicaFollows", 60, back)
    twice = [
        sample
        for sample in record.samples
        if len(set(_leaders(sample).values())) < len(_leaders(sample))
    ]
    yield CheckedWindow("oneLeaderPerTerm", not twice, detail=f"{len(twice)} samples with two")
    yield _state_kept(record)
    yield _sessions_held(record, ())
    yield from _no_two_ticks_missed(record, ())


def _all_report(record: ActionRecord, since: float) -> float | None:
    """Until every shard has had another report accepted."""
    name, label = "bigfleet_shard_coordinator_report_total", 'outcome="success"'
    first = next(record.after(since), None)
    if first is None:
        return None
    shards = [p for p in record.before.processes if p.startswith("bigfleet-shard-")]
    start = {shard: _number(first, shard, name, label) or 0.0 for shard in shards}
    return record.first(
        lambda s: all((_number(s, shard, name, label) or 0.0) > start[shard] for shard in shards),
        since,
    )


def _state_kept(record: ActionRecord) -> CheckedWindow:
    before, after = record.facts.get("stateBefore"), record.facts.get("stateAfter")
    if not before or not after:
        return CheckedWindow("stateKept", passed=False, detail="the coordinator was not listed")
    lost = {name: sorted(set(had) - set(after.get(name, ()))) for name, had in before.items()}
    text = ", ".join(f"{len(ids)} {name} lost" for name, ids in lost.items() if ids)
    return CheckedWindow("stateKept", not text, detail=text)


# -- shards --------------------------------------------------------------------------------------


def _shard_kill(record: ActionRecord) -> Iterator[CheckedWindow]:
    shard, sessions = record.struck, record.before.load.get("sessions", {})
    fired = record.fired_unix_s

    def connected(sample: FleetSample) -> int:
        return int(sample.load.get("sessions", {}).get(shard, -1))

    yield _window(record, "processGone", 1, record.gone_seconds)
    dropped = record.first(lambda s: connected(s) == 0)
    yield _window(record, "sessionsSeenAtZero", 30, dropped)
    mine = [c for c in record.cycles if c["shard"] == shard and c["start_unix_nanos"] / 1e9 > fired]
    again = (mine[0]["start_unix_nanos"] + mine[0]["wall_ns"]) / 1e9 - fired if mine else None
    yield _window(record, "cyclesAgain", 30, again)
    yield _window(record, "startToFirstDecision", 30, first_decision(record))
    back = record.first(
        lambda s: connected(s) == sessions.get(shard), since=fired + (dropped or 0.0)
    )
    yield _window(record, "sessionsBack", 45, None if back is None else back + (dropped or 0.0))
    yield _epoch(record)
    quiet = [
        c for c in mine
        if c["start_unix_nanos"] / 1e9 < fired + _QUIET_SECONDS
        and (c["actions"].get("Reclaim") or c["actions"].get("Delete"))
    ]  # fmt: skip
    yield CheckedWindow("noReclaimOrDelete", not quiet, detail=f"{len(quiet)} cycles with one")
    restored = record.first(
        lambda s: _number(s, shard, "bigfleet_shard_shortfalls") == 0 and connected(s) > 0,
        since=fired + (dropped or 0.0),
    )
    settled = None if restored is None else restored + (dropped or 0.0)
    yield _window(record, "shortfallsZero", 60, settled)
    yield _sessions_held(record, (shard,))
    yield from _no_two_ticks_missed(record, (shard,))
    yield _pods_stay(record)


def first_decision(record: ActionRecord) -> float | None:
    """From the start of the new process to the end of its first full cycle, as it says itself."""
    for sample in record.after(record.fired_unix_s + (record.gone_seconds or 0.0)):
        value = _number(sample, record.struck, "bigfleet_shard_start_to_first_decision_seconds")
        epoch = _number(sample, record.struck, "bigfleet_shard_epoch")
        if value and epoch != _number(record.before, record.struck, "bigfleet_shard_epoch"):
            return value
    return None


def _epoch(record: ActionRecord) -> CheckedWindow:
    name = "bigfleet_shard_epoch"
    before = _number(record.before, record.struck, name)
    last = next(
        (v for s in reversed(record.samples) if (v := _number(s, record.struck, name)) is not None),
        None,
    )
    fenced = _number(
        record.samples[-1], record.struck,
        "bigfleet_shard_action_execute_outcomes_total", 'outcome="fenced"',
    )  # fmt: skip
    good = before is not None and last == before + 1 and not fenced
    return CheckedWindow("epochPlusOne", good, detail=f"{before} -> {last}, {fenced or 0:g} fenced")


def _sessions_held(record: ActionRecord, struck: tuple[str, ...]) -> CheckedWindow:
    before: Mapping[str, int] = record.before.load.get("sessions", {})
    least = {
        name: min((s.load["sessions"][name] for s in record.after() if s.load), default=-1)
        for name in before
        if name not in struck
    }
    fallen = [f"{name}: {before[name]} -> {n}" for name, n in least.items() if n < before[name]]
    good = not fallen and bool(before)
    return CheckedWindow("sessionsHeld", good, detail="; ".join(fallen))


def _no_two_ticks_missed(record: ActionRecord, struck: tuple[str, ...]) -> Iterator[CheckedWindow]:
    for shard in sorted({str(c["shard"]) for c in record.cycles} - set(struck)):
        begun = [c["start_unix_nanos"] / 1e9 for c in record.cycles if c["shard"] == shard]
        gap = max((later - now for now, later in pairwise(begun)), default=float("inf"))
        limit = 3 * record.cycle_interval_s
        yield CheckedWindow(f"cyclesOf:{shard}", gap < limit, limit, gap)


def _pods_stay(record: ActionRecord) -> CheckedWindow:
    had = record.before.load.get("bound", 0)
    allowed = record.facts.get("churnPods", 0)
    least = min((s.load["bound"] for s in record.after() if s.load), default=0)
    good = had > 0 and least >= had - allowed
    return CheckedWindow("podsStayBound", good, detail=f"{had} -> {least}, churn {allowed:g}")


# -- edges and providers -------------------------------------------------------------------------


def _partition(record: ActionRecord) -> Iterator[CheckedWindow]:
    shard, name = record.struck, "bigfleet_shard_coordinator_report_total"
    failed = _number(record.before, shard, name, 'outcome="error"') or 0.0
    yield _window(
        record, "reportsFail", 20,
        record.first(lambda s: (_number(s, shard, name, 'outcome="error"') or 0.0) > failed),
    )  # fmt: skip
    during = [
        c["start_unix_nanos"] / 1e9
        for c in record.cycles
        if c["shard"] == shard
        and record.fired_unix_s <= c["start_unix_nanos"] / 1e9 <= record.until_unix_s
    ]
    edges = [record.fired_unix_s, *during, record.until_unix_s]
    gap = max(later - now for now, later in pairwise(edges))
    yield CheckedWindow("cyclesDuringCut", gap <= 20, 20, gap)
    short = [s for s in record.after() if (_number(s, shard, "bigfleet_shard_shortfalls") or 0) > 0]
    yield CheckedWindow("shortfallsUnchanged", not short, detail=f"{len(short)} samples with one")
    yield _sessions_held(record, ())
    yield _window(record, "reportAccepted", 20, _all_report(record, record.until_unix_s))


def _provider_kill(record: ActionRecord) -> Iterator[CheckedWindow]:
    shard = record.struck.replace("provider-", "bigfleet-shard-")
    fired = record.fired_unix_s
    yield _window(record, "processGone", 1, record.gone_seconds)
    answered = record.first(
        lambda s: (
            record.struck in s.processes
            and (_number(s, shard, "bigfleet_shard_provider_reconcile_age_seconds") or 99.0)
            < s.unix_s - fired - (record.gone_seconds or 0.0)
        ),
        since=fired + (record.gone_seconds or 0.0),
    )
    yield _window(record, "listAnswered", 15, answered)
    reclaims = [
        c for c in record.cycles
        if c["start_unix_nanos"] / 1e9 > fired and c["actions"].get("Reclaim")
    ]  # fmt: skip
    yield CheckedWindow("noReclaim", not reclaims, detail=f"{len(reclaims)} cycles with one")
    yield _sessions_held(record, ())
