"""Documents about places and suppliers: topology, moves between shards, providers and prices."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import numpy as np

from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.state.machines import CAPACITY, STATES
from bigfleet_dashboard.state.shards import ShardState

_SECOND: Final = 1e9
_MOST_MOVES: Final = 200


def topology(fleet: Fleet) -> dict[str, object]:
    """Who owns what, who leads, and what moves."""
    view = fleet.coordinator
    return {
        "leader": view.leader or None,
        "replicas": [
            {"address": r.address, "role": r.role, "text": r.text or None} for r in view.replicas
        ],
        "store": {
            "read_ms": round(view.call_ms, 2) or None,
            "answered_at_unix_seconds": round(view.at_seconds, 3) or None,
            "state": fleet.sources.state("coordinator"),
        },
        "term": max(
            (s.scrape.one("coordinator_term") or 0 for s in fleet.shards.values()), default=None
        ),
        "shards": [
            {
                "id": entry.shard_id,
                "address": entry.address,
                "registered_at_unix_seconds": entry.registered_at_unix_ns / _SECOND,
                "heartbeat_unix_seconds": entry.last_heartbeat_unix_ns / _SECOND or None,
                "clusters": sum(b.shard_id == entry.shard_id for b in view.bindings.values()),
                "domains": sum(d.shard_id == entry.shard_id for d in view.domains),
            }
            for entry in view.shards
        ],
        "domains": [
            {"key": d.topology_key, "value": d.topology_value, "shard": d.shard_id}
            for d in view.domains
        ],
        "quotas": [
            {"provider": q.provider, "region": q.region, "per_shard": dict(q.per_shard)}
            for q in view.quotas
        ],
        "clusters": [
            {
                "id": b.cluster_id,
                "shard": b.shard_id,
                "bound_at_unix_seconds": b.bound_at_unix_ns / _SECOND,
            }
            for b in view.bindings.values()
        ],
        "instructions": [_instruction(each) for each in view.instructions],
        "moves": [
            _move(each)
            for each in sorted(view.moves, key=lambda m: -m.updated_unix_ns)[:_MOST_MOVES]
        ],
        "zones": _zones(fleet),
    }


def providers(fleet: Fleet) -> dict[str, object]:
    """Every provider, as registered and as each shard meets it; and what things cost."""
    found: dict[str, dict[str, object]] = {}
    for entry in fleet.coordinator.providers:
        found[entry.name] = {
            "name": entry.name,
            "address": entry.address,
            "region": entry.region,
            "registered": True,
            "registered_for": list(entry.shards),
            "shards": [],
        }
    for shard in fleet.shards.values():
        for status in shard.status.providers if shard.status else ():
            row = found.setdefault(
                status.name,
                {"name": status.name, "address": status.address, "region": "",
                 "registered": False, "registered_for": [], "shards": []},
            )  # fmt: skip
            shards = row["shards"]
            assert isinstance(shards, list)
            shards.append(
                {
                    "shard": shard.shard_id,
                    "reachable": shard.answering and status.reachable,
                    "machines": status.machines,
                    "last_list_unix_seconds": round(status.last_list_unix_ns / _SECOND, 3) or None,
                    "last_error": status.last_error or None,
                    **_calls(shard, status.name, fleet.clock()),
                }
            )
    return {
        "providers": [found[name] for name in sorted(found)],
        "stockouts_cooling": sum(
            s.scrape.one("stockouts_cooling") or 0 for s in fleet.shards.values()
        ),
        "create_failures": _failures(fleet),
        "prices": prices(fleet),
    }


def prices(fleet: Fleet) -> list[dict[str, object]]:
    """What there is to be had, by class: price, risk, and how many are where."""
    fleet_map = fleet.map
    rows, cells = [], len(fleet_map.classes) * len(STATES)
    table = np.bincount(fleet_map.cls * len(STATES) + fleet_map.state, minlength=cells)
    for found, counts in zip(
        fleet_map.classes, table.reshape(-1, len(STATES)).tolist(), strict=True
    ):
        rows.append(
            {
                "instance_type": found.instance_type,
                "zone": found.zone,
                "capacity_type": CAPACITY[found.capacity_type],
                "price_per_hour": found.price,
                "interruption_probability": found.probability,
                "shard": found.shard,
                "machines": sum(counts),
                "by_state": {STATES[n]: counts[n] for n in range(1, len(STATES)) if counts[n]},
            }
        )
    return sorted(rows, key=lambda r: (r["instance_type"], r["capacity_type"], r["zone"]))


def _calls(shard: ShardState, provider: str, now: float) -> dict[str, object]:
    """Calls of a shard to a provider since it started: how many, how slow, how many failed."""
    methods: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for sample in shard.scrape.every("provider_rpc_total", provider=provider):
        method = methods[sample.labels.get("method", "")]
        method["calls"] += sample.value
        method["errors"] += 0 if sample.labels.get("code") == "OK" else sample.value
    for name, key in (("sum", "seconds"), ("count", "timed")):
        family = f"provider_rpc_duration_seconds_{name}"
        for sample in shard.scrape.every(family, provider=provider):
            methods[sample.labels.get("method", "")][key] += sample.value
    return {
        "methods": [
            {
                "method": name,
                "calls": int(m["calls"]),
                "errors": int(m["errors"]),
                "mean_ms": round(1000 * m["seconds"] / m["timed"], 2) if m["timed"] else None,
            }
            for name, m in sorted(methods.items())
        ],
        "reconcile_age_seconds": shard.scrape.age(
            "provider_reconcile_age_seconds", now, provider=provider
        ),
        "removals_held": shard.scrape.one("provider_removals_held", provider=provider),
    }


def _failures(fleet: Fleet) -> dict[str, int]:
    failures: dict[str, int] = defaultdict(int)
    for shard in fleet.shards.values():
        for sample in shard.scrape.every("create_failures_total"):
            failures[sample.labels.get("reason", "")] += int(sample.value)
    return dict(failures)


def _zones(fleet: Fleet) -> list[dict[str, object]]:
    """Machines by zone and state, as the shards list them."""
    fleet_map = fleet.map
    zones = sorted({c.zone for c in fleet_map.classes})
    of_class = np.array([zones.index(c.zone) for c in fleet_map.classes], np.int64)
    rows = []
    for number, zone in enumerate(zones):
        here = of_class[fleet_map.cls] == number if len(fleet_map) else np.zeros(0, np.bool_)
        counts = np.bincount(fleet_map.state[here], minlength=len(STATES))
        by_state = {STATES[n]: int(counts[n]) for n in range(1, len(STATES))}
        rows.append({"zone": zone, "machines": int(here.sum()), "by_state": by_state})
    return rows


def _instruction(each: pb.PendingInstruction) -> dict[str, object]:
    return {
        "shard": each.shard_id,
        "id": each.instruction.instruction_id,
        "kind": each.instruction.WhichOneof("payload"),
        "tries": each.tries,
        "last_reason": each.last_reason or None,
        "enqueued_at_unix_seconds": each.enqueued_at_unix_ns / _SECOND,
    }


def _move(move: pb.Move) -> dict[str, object]:
    return {
        "id": move.id,
        "tier": pb.Move.Tier.Name(move.tier).removeprefix("TIER_"),
        "donor": move.donor,
        "recipient": move.recipient,
        "machines": len(move.machine_ids) or move.count,
        "phase": move.phase,
        "created_at_unix_seconds": move.created_unix_ns / _SECOND,
        "updated_at_unix_seconds": move.updated_unix_ns / _SECOND,
        "reason": move.reason or None,
    }
