"""Documents of the API, made of the state: one function per screen or part of one.

Field names are a promise: docs/guides/dashboard.md lists them. What is not known is null.
"""

from __future__ import annotations

from collections import Counter
from typing import Final
from urllib.parse import quote

import numpy as np

from bigfleet.model import MachineState
from bigfleet_dashboard.cost import spend_per_hour, spending
from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.state.machines import CAPACITY, STATES
from bigfleet_dashboard.state.needs import CLASSES, unmet_by_class
from bigfleet_dashboard.state.shards import ShardState

_SECOND: Final = 1e9
_LATE_SECONDS: Final = 30.0


def overview(fleet: Fleet) -> dict[str, object]:
    """The numbers at the top, and what is wrong."""
    now = fleet.clock()
    shards = list(fleet.shards.values())
    clusters = fleet.clusters()
    unmet = unmet_by_class(fleet.needs())
    p50 = [ms for s in shards if (ms := s.cycle_ms(0.5, now)) is not None]
    p99 = [ms for s in shards if (ms := s.cycle_ms(0.99, now)) is not None]
    actions = fleet.decisions.per_minute(int(now * _SECOND))
    return {
        "unix_seconds": round(now, 3),
        "version": fleet.version,
        "machines_version": fleet.machines_version,
        "shards": {"total": len(shards), "answering": sum(s.answering for s in shards)},
        "clusters": {"total": len(clusters), "connected": len(fleet.sessions())},
        "machines": {
            "total": len(fleet.map),
            "by_state": fleet.map.by_state(),
            "by_capacity_type": fleet.map.by_capacity(),
        },
        "needs": {"total": sum(len(s.needs) for s in shards), "unmet": sum(unmet.values())},
        "unmet_by_priority": unmet,
        "spend_per_hour": round(spend_per_hour(fleet.map), 4),
        "cycle_ms": {
            "p50": round(max(p50), 3) if p50 else None,
            "p99": round(max(p99), 3) if p99 else None,
        },
        "actions_per_minute": {"total": sum(actions.values()), "by_kind": actions},
        "leader": fleet.coordinator.leader or None,
        "problems": problems(fleet),
        "sources": fleet.sources.documents(),
    }


def problems(fleet: Fleet) -> list[dict[str, object]]:
    """What is wrong, the worst first, each with what to do."""
    found: list[tuple[int, str, str, str]] = []
    for source in fleet.sources.documents():
        if source["state"] == "failing":
            text = f"{source['name']}: {source['text']}"
            found.append((1, text, str(source["remedy"] or ""), "/topology"))
    if not fleet.shards and fleet.coordinator.at_seconds:
        remedy = "nothing is decided: start one that is told the coordinator's address"
        found.append((1, "no shard has registered", remedy, "/shards"))
    for shard in fleet.shards.values():
        link = f"/shards/{quote(shard.shard_id, safe='')}"
        if not shard.answering and shard.trouble:
            text = f"shard {shard.shard_id} does not answer: {shard.trouble}"
            found.append((0, text, "its clusters keep their machines; start it again", link))
        for rail in shard.status.rails if shard.answering and shard.status else ():
            found.append((1, f"shard {shard.shard_id}: {rail}", "see the shard's rails", link))
        for provider in shard.status.providers if shard.answering and shard.status else ():
            if not provider.reachable:
                text = f"provider {provider.name} is not reachable: {provider.last_error}"
                found.append((0, text, "what runs goes on; start it again", "/providers"))
    counts = unmet_by_class(fleet.needs())
    for name in CLASSES:
        if counts[name]:
            weight = 0 if name == "critical" else 1 if name == "service" else 2
            text = (
                f"{counts[name]} unmet {'need' if counts[name] == 1 else 'needs'} of class {name}"
            )
            found.append(
                (
                    weight,
                    text,
                    "open one to read why, and what would help",
                    f"/needs?class={name}&verdict=unmet",
                )
            )
    failed = fleet.map.by_state()["Failed"]
    if failed:
        text = f"{failed} {'machine' if failed == 1 else 'machines'} failed"
        found.append(
            (2, text, "replaced where needed; each says what happened", "/machines?state=Failed")
        )
    words = ("error", "warning", "notice")
    return [
        {"weight": words[weight], "text": text, "remedy": remedy, "link": link}
        for weight, text, remedy, link in sorted(found)
    ]


def shard_row(shard: ShardState, fleet: Fleet) -> dict[str, object]:
    """A shard in the list."""
    now, status = fleet.clock(), shard.status
    states = np.bincount(shard.machines.state, minlength=len(STATES))
    registered = next((e for e in fleet.coordinator.shards if e.shard_id == shard.shard_id), None)
    heartbeat_s = registered.last_heartbeat_unix_ns / _SECOND if registered else 0
    p50, p99 = shard.cycle_ms(0.5, now), shard.cycle_ms(0.99, now)
    return {
        "id": shard.shard_id,
        "address": shard.address,
        "answering": shard.answering,
        "trouble": shard.trouble or None,
        "cycle": status.cycle if status else None,
        "epoch": status.epoch if status else None,
        "paused": bool(status and status.paused),
        "dry_run": bool(status and status.dry_run),
        "machines": len(shard.machines),
        "by_state": {STATES[n]: int(states[n]) for n in range(1, len(STATES))},
        "needs": len(shard.needs),
        "unmet": sum(not row.satisfied for row in shard.needs),
        "sessions": len(shard.sessions),
        "cycle_ms": {"p50": _round(p50), "p99": _round(p99)},
        "reported_at_unix_seconds": round(heartbeat_s, 3) or None,
        "late": bool(heartbeat_s and now - heartbeat_s > _LATE_SECONDS),
        "rails": list(status.rails) if status else [],
    }


def shard_document(shard: ShardState, fleet: Fleet) -> dict[str, object]:
    """Everything about one shard."""
    now, scrape = fleet.clock(), shard.scrape
    return {
        **shard_row(shard, fleet),
        "pause_reason": shard.status.pause_reason if shard.status else None,
        "phases_ms": {"p50": shard.phase_ms(0.5, now), "p99": shard.phase_ms(0.99, now)},
        "cycles": [cycle.document() for cycle in shard.cycles.newest(120)],
        "session_clusters": sorted(shard.sessions),
        "providers": [
            {
                "name": provider.name,
                "address": provider.address,
                "reachable": provider.reachable,
                "machines": provider.machines,
                "last_list_unix_seconds": round(provider.last_list_unix_ns / _SECOND, 3) or None,
                "last_error": provider.last_error or None,
            }
            for provider in (shard.status.providers if shard.status else ())
        ],
        "actions": {
            sample.labels.get("kind", ""): sample.value for sample in scrape.every("actions_total")
        },
        "queue": {
            "waiting": scrape.one("action_queue_depth"),
            "running": scrape.one("execute_inflight"),
        },
        "rollup_age_seconds": {
            stat: scrape.age("rollup_age_seconds", now, stat=stat) for stat in ("p50", "p95", "max")
        },
        "stockouts_cooling": scrape.one("stockouts_cooling"),
        "reclaims_capped_total": scrape.one("reclaims_capped_total"),
        "reclaims_unforced_total": scrape.one("reclaims_unforced_total"),
        "phantom_machines": scrape.total("phantom_machines"),
        "errors": [
            {"unix_seconds": round(each.at_seconds, 3), "text": each.text}
            for each in reversed(shard.errors)
        ],
        "http": {"address": shard.http_address or None, "trouble": shard.http_trouble or None},
    }


def clusters(fleet: Fleet) -> list[dict[str, object]]:
    """Every cluster with what it asks for and what it has."""
    sessions = {name: s for s in fleet.shards.values() for name in s.sessions}
    states, dollars = _bound(fleet)
    requested: dict[str, Counter[str]] = {}
    for row in fleet.needs():
        count = requested.setdefault(row.cluster, Counter())
        count["needs"] += 1
        count["unmet"] += not row.satisfied
        count["machines"] += row.machines
        count[f"unmet_{row.priority_class}"] += not row.satisfied
    return [
        {
            "id": name,
            "shard": _home(fleet, name, sessions.get(name)),
            "connected": name in sessions,
            "needs": requested.get(name, Counter())["needs"],
            "unmet": requested.get(name, Counter())["unmet"],
            "unmet_by_priority": {
                each: requested.get(name, Counter())[f"unmet_{each}"] for each in CLASSES
            },
            "machines_wanted": requested.get(name, Counter())["machines"],
            "bound": states.get(name, {}).get("Configured", 0),
            "upcoming": states.get(name, {}).get("Configuring", 0),
            "draining": states.get(name, {}).get("Draining", 0),
            "spend_per_hour": round(dollars.get(name, 0.0), 4),
            "acknowledgement_lag_seconds": _lag(fleet, name, sessions.get(name)),
            "upcoming_nodes": fleet.upcoming.get(name),
        }
        for name in fleet.clusters()
    ]


def cluster_document(fleet: Fleet, name: str) -> dict[str, object] | None:
    """Everything about one cluster; None for an unknown one."""
    row = next((each for each in clusters(fleet) if each["id"] == name), None)
    if row is None:
        return None
    fleet_map = fleet.map
    here = np.flatnonzero(fleet_map.cluster == fleet.names.find_cluster(name))
    kinds = Counter(CAPACITY[fleet_map.classes[int(c)].capacity_type] for c in fleet_map.cls[here])
    zones = Counter(fleet_map.classes[int(c)].zone for c in fleet_map.cls[here])
    types = Counter(fleet_map.classes[int(c)].instance_type for c in fleet_map.cls[here])
    binding = fleet.coordinator.bindings.get(name)
    return {
        **row,
        "by_capacity_type": dict(kinds),
        "by_zone": dict(zones),
        "by_instance_type": dict(types),
        "bound_since_unix_seconds": binding.bound_at_unix_ns / _SECOND if binding else None,
        "need_rows": [each.document() for each in fleet.needs() if each.cluster == name][:500],
        "decisions": [entry.document() for entry in fleet.decisions.newest(50, cluster=name)],
    }


def _bound(fleet: Fleet) -> tuple[dict[str, dict[str, int]], dict[str, float]]:
    """Per cluster its machines by state, and what they cost."""
    fleet_map = fleet.map
    states: dict[str, dict[str, int]] = {}
    dollars: dict[str, float] = {}
    rows = np.flatnonzero(fleet_map.cluster >= 0)
    for number in np.unique(fleet_map.cluster[rows]).tolist():
        here = rows[fleet_map.cluster[rows] == number]
        counts = np.bincount(fleet_map.state[here], minlength=len(MachineState))
        name = fleet.names.clusters[number]
        states[name] = {STATES[n]: int(counts[n]) for n in range(1, len(STATES)) if counts[n]}
        live = here[spending(fleet_map)[here]]
        dollars[name] = float(fleet_map.price[fleet_map.cls[live]].sum())
    return states, dollars


def _home(fleet: Fleet, name: str, session: ShardState | None) -> str | None:
    binding = fleet.coordinator.bindings.get(name)
    return binding.shard_id if binding else session.shard_id if session else None


def _lag(fleet: Fleet, name: str, session: ShardState | None) -> float | None:
    """The operator's own figure where Prometheus has it, else the oldest of its shard."""
    if name in fleet.rollup_ages:
        return round(fleet.rollup_ages[name], 1)
    if session is None:
        return None
    age = session.scrape.age("rollup_age_seconds", fleet.clock(), stat="max")
    return None if age is None else round(age, 1)


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
