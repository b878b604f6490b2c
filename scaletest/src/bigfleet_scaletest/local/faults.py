"""Disturbances of a run on this machine: what strikes which process, and what is recorded.

An action is fired at its offset, watched until its samples are complete and then handed to
`checks`. Only processes that this run started are struck, by their own process ids.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import bigfleet.wire.grpc_env  # noqa: F401 - before grpc

# isort: split
import grpc.aio

from bigfleet.wire.channel import open_channel
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import coordinator_pb2_grpc as rpc
from bigfleet_lab.demo.supervisor import Process, Supervisor
from bigfleet_lab.profiles.actions import kind_of
from bigfleet_lab.profiles.model import RunnerAction
from bigfleet_scaletest.local.checks import ActionRecord, CheckedWindow, first_decision, windows
from bigfleet_scaletest.local.domains import assigned, probe
from bigfleet_scaletest.local.layout import LocalLayout
from bigfleet_scaletest.record.samples import FleetSample, total

SUPPORTED: Final = ("kill-coordinator-leader", "kill-shard-{name}", "kill-provider-{name}")
"""Forms of the actions that this substrate carries out."""
BEFORE_SECONDS: Final = 30.0
_DOWN_SECONDS: Final[Mapping[str, float]] = {"coordinator": 5.0, "shard": 1.0, "provider": 5.0}
_GONE_SECONDS: Final = 10.0
_PROBE_SECONDS: Final = 30.0
_CALL_SECONDS: Final = 1.0


class FaultRunner:
    """Fires actions and keeps what came of each."""

    def __init__(
        self,
        layout: LocalLayout,
        supervisor: Supervisor,
        samples: list[FleetSample],
        cycles: Callable[[], list[dict[str, Any]]],
        restarted: Callable[[str], None],
    ) -> None:
        self._layout, self._supervisor = layout, supervisor
        self._samples, self._cycles, self._restarted = samples, cycles, restarted
        self.results: list[dict[str, Any]] = []
        self.fired: list[tuple[str, float]] = []
        """Actions and when they happened, on the wall clock."""
        self.measured: dict[str, float] = {}
        """Gates that an action measures."""

    async def carry_out(self, action: RunnerAction) -> None:
        """Strike, watch, judge."""
        result: dict[str, Any] = {"action": action.action, "atSeconds": action.at_seconds}
        self.results.append(result)
        try:
            record = await self._strike(action)
        except (LookupError, RuntimeError, OSError) as error:
            result |= {"fireError": str(error), "assertError": f"could not be fired: {error}"}
            return
        checked = windows(record)
        missed = [each for each in checked if not each.passed]
        result |= {
            "firedAt": record.fired_unix_s,
            "effect": f"{record.struck} gone after {record.gone_seconds} s",
            "asserted": True,
            "assertError": "; ".join(_missed_text(each) for each in missed),
            "windows": [each.document() for each in checked],
        }
        self._measure(record, checked)

    def _measure(self, record: ActionRecord, checked: list[CheckedWindow]) -> None:
        found = {each.check: each.measured_seconds for each in checked}
        if record.action == "kill-coordinator-leader" and found["probeWrite"] is not None:
            self._keep_worst("coordinatorFailoverSeconds", found["probeWrite"])
        decided = first_decision(record) if record.action.startswith("kill-shard-") else None
        if decided is not None:
            self._keep_worst("shardRestartToFirstDecisionSeconds", decided)

    def _keep_worst(self, gate: str, seconds: float) -> None:
        self.measured[gate] = max(seconds, self.measured.get(gate, 0.0))

    async def _strike(self, action: RunnerAction) -> ActionRecord:
        found = kind_of(action.action)
        assert found is not None
        kind, name = found
        struck = self._leader() if kind.form == "kill-coordinator-leader" else name
        if kind.form.startswith("kill-provider"):
            struck = name if name.startswith("provider-") else f"provider-{name}"
        before = self._samples[-1]
        state = await self._state()
        fired, gone = await self._kill(self._supervisor[struck])
        self.fired.append((action.action, fired))
        facts: dict[str, Any] = {"stateBefore": state, "churnPods": self._churn_pods(before)}
        if kind.form == "kill-coordinator-leader":
            facts["probeSeconds"] = await self._probe(fired)
        if struck.startswith("bigfleet-shard-"):
            self._restarted(struck)
        await asyncio.sleep(max(0.0, fired + kind.samples_seconds - time.time()))
        facts["stateAfter"] = await self._state()
        return ActionRecord(
            action=action.action,
            struck=struck,
            fired_unix_s=fired,
            until_unix_s=fired,
            before=before,
            samples=[s for s in self._samples if s.unix_s >= fired - BEFORE_SECONDS],
            cycles=[
                c for c in self._cycles() if c["start_unix_nanos"] / 1e9 >= fired - BEFORE_SECONDS
            ],
            cycle_interval_s=self._layout.run.setting("cycleIntervalSeconds"),
            gone_seconds=gone,
            facts=facts,
            expect=action.expect,
        )

    async def _kill(self, process: Process) -> tuple[float, float | None]:
        """When it was killed, and how long until it was gone."""
        if process.process is None or process.pid is None:
            raise RuntimeError(f"{process.part.name} does not run")
        name = process.part.name
        down = next(s for kind, s in _DOWN_SECONDS.items() if kind in name)
        ended = asyncio.ensure_future(process.process.wait())
        fired = time.time()
        process.strike(signal.SIGKILL, down)
        done, _ = await asyncio.wait((ended,), timeout=_GONE_SECONDS)
        return fired, time.time() - fired if done else None

    def _leader(self) -> str:
        for name, series in self._samples[-1].processes.items():
            if total(series, "bigfleet_coordinator_is_leader") == 1:
                return name
        raise LookupError("no coordinator replica leads: wait until one does")

    def _churn_pods(self, before: FleetSample) -> float:
        """Pods that churn alone may have unbound at any moment: two roll-up intervals' worth."""
        interval = self._layout.run.setting("rollupIntervalSeconds")
        per_minute = self._layout.run.profile.load.churn_per_minute
        return float(before.load.get("bound", 0)) * per_minute * 2 * interval / 60

    async def _probe(self, since: float) -> float | None:
        """Seconds until some replica commits a write."""
        for number in itertools.count():
            if time.time() - since > _PROBE_SECONDS:
                break
            request = probe(self._layout, f"probe-{since:.0f}-{number}")
            if await assigned(self._layout, request, _CALL_SECONDS):
                return time.time() - since
            await asyncio.sleep(0.05)
        return None

    async def _state(self) -> dict[str, list[str]] | None:
        """Shards, clusters and domains that the leader lists; None where none answers."""
        for replica in self._layout.coordinators:
            async with open_channel(replica.service, None) as channel:
                stub: Any = rpc.CoordinatorStub(channel)
                try:
                    shards = await stub.ListShards(pb.ListShardsRequest(), timeout=5.0)
                    clusters = await stub.ListClusters(pb.ListClustersRequest(), timeout=5.0)
                    domains = await stub.ListDomainAssignments(
                        pb.ListDomainAssignmentsRequest(), timeout=5.0
                    )
                except grpc.aio.AioRpcError:
                    continue
                return {
                    "shards": [each.shard_id for each in shards.shards],
                    "clusters": [each.cluster_id for each in clusters.clusters],
                    "domains": [each.topology_value for each in domains.assignments],
                }
        return None


def _missed_text(window: CheckedWindow) -> str:
    if window.limit_seconds is None:
        return f"{window.check} ({window.detail})" if window.detail else window.check
    seconds = window.measured_seconds
    took = "not seen" if seconds is None else f"{seconds:.1f} s"
    return f"{window.check}: {took}, at most {window.limit_seconds:g} s"
