"""Reads metrics and cycles of all processes of a run, beside each other, each with a deadline."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from bigfleet_scaletest.local.layout import LocalLayout
from bigfleet_scaletest.record.samples import FleetSample, parse_metrics

PREFIXES: Final = (
    "bigfleet_shard_actions_total", "bigfleet_shard_action_execute_outcomes_total",
    "bigfleet_shard_configure_phase_seconds", "bigfleet_shard_coordinator_report",
    "bigfleet_shard_cycles_total", "bigfleet_shard_demand_machines", "bigfleet_shard_epoch",
    "bigfleet_shard_inventory_machines", "bigfleet_shard_phantom_machines",
    "bigfleet_shard_provider_reconcile_age_seconds", "bigfleet_shard_provider_rpc_total",
    "bigfleet_shard_reclaims_unforced_total", "bigfleet_shard_shortfalls",
    "bigfleet_shard_active_sessions", "bigfleet_shard_start_to_first_decision_seconds",
    "bigfleet_coordinator_is_leader", "bigfleet_coordinator_has_leader",
    "bigfleet_coordinator_raft_term", "bigfleet_coordinator_apply_total",
    "bigfleet_coordinator_state_entries", "bigfleet_provider_orphan_hosts",
    "bigfleet_provider_machines", "process_resident_memory_bytes", "process_open_fds",
)  # fmt: skip
_TIMEOUT_SECONDS: Final = 3.0


def fetch(address: str, path: str) -> str:
    """A page; empty while the process does not answer."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=_TIMEOUT_SECONDS) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


class FleetScraper:
    """One run's processes, read again and again."""

    def __init__(self, layout: LocalLayout) -> None:
        self._layout = layout
        self._load_at = 0
        self._since: dict[str, int] = {}
        self.cycles: list[dict[str, Any]] = []
        """Every cycle of every shard, with its shard's name."""

    async def sample(self) -> FleetSample:
        """All processes now."""
        at = self._layout
        pages = {each.name: each.http for each in (*at.coordinators, *at.providers, *at.shards)}
        texts = await asyncio.gather(
            *(asyncio.to_thread(fetch, address, "/metrics") for address in pages.values())
        )
        processes = {
            name: parse_metrics(text, PREFIXES)
            for name, text in zip(pages, texts, strict=True)
            if text
        }
        return FleetSample(time.time(), processes, self._load_line(at.samples))

    async def read_cycles(self) -> None:
        """Cycles that ended since the last look."""
        for shard in self._layout.shards:
            since = self._since.get(shard.name, 0)
            text = await asyncio.to_thread(fetch, shard.http, f"/debug/cycles?since={since}")
            for cycle in _cycles(text):
                self.cycles.append({"shard": shard.name, **cycle})
                self._since[shard.name] = int(cycle["cycle"]) + 1

    def restarted(self, shard: str) -> None:
        """A new process counts its cycles from the beginning."""
        self._since[shard] = 0

    def _load_line(self, path: Path) -> Mapping[str, Any]:
        """The newest complete line of the load driver, with the latencies of all since the last."""
        if not path.exists():
            return {}
        with path.open("rb") as source:
            source.seek(self._load_at)
            content = source.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._load_at += len(whole)
        lines = [json.loads(line) for line in whole.splitlines()]
        if not lines:
            return {}
        found: dict[str, Any] = dict(lines[-1])
        for name in ("ack_s", "rollup_s"):
            found[name] = [value for line in lines for value in line[name]]
        return found


def _cycles(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line:
            yield json.loads(line)
