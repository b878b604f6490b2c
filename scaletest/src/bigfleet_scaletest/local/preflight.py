"""Known before anything starts: whether a run fits this machine and can be done here."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom
from typing import Final

from bigfleet_lab.profiles.actions import kind_of
from bigfleet_lab.profiles.errors import ProfileError
from bigfleet_lab.profiles.fleet_plan import nominal_pods
from bigfleet_scaletest.local.faults import SUPPORTED
from bigfleet_scaletest.run_options import PlannedRun

_MEMINFO: Final = Path("/proc/meminfo")
_MB: Final = 1e6
_COORDINATOR, _MEMBER, _SHARD, _PROVIDER, _DRIVER, _RUNNER = 130, 60, 260, 150, 130, 150
"""Megabytes of a process that has nothing yet."""
_SHARD_RECORD, _PROVIDER_RECORD, _POD, _OBJECT = 0.0025, 0.006, 0.00001, 0.006
"""Megabytes of each."""
_PODS_PER_OBJECT: Final = 18
_LOCAL_PORTS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


def estimated_bytes(run: PlannedRun) -> float:
    """Memory that a run takes on this machine."""
    profile = run.profile
    fixed = profile.coordinators * _COORDINATOR + profile.shards * (_SHARD + _PROVIDER)
    fixed += _DRIVER + _RUNNER + (3 * _MEMBER if profile.coordinators > 1 else 0)
    varying = run.records * (_SHARD_RECORD + _PROVIDER_RECORD)
    varying += nominal_pods(profile) * (_POD + _OBJECT / _PODS_PER_OBJECT)
    return (fixed + varying) * _MB


def available_bytes() -> float:
    """Memory that processes can have now."""
    for line in _MEMINFO.read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return float(line.split()[1]) * 1024
    raise ProfileError(str(_MEMINFO), "does not say how much memory is available")


def check(run: PlannedRun, etcd: Path | None) -> None:
    """Refuse what cannot be done here, all of it at once."""
    wrong = list(_complaints(run, etcd))
    if wrong:
        raise ProfileError(f"{run.profile.name} on {run.substrate.name}", "; ".join(wrong))


def _complaints(run: PlannedRun, etcd: Path | None) -> Iterator[str]:
    needed, there = estimated_bytes(run), available_bytes()
    most = min(there, run.substrate.memory_gib * 1024**3)
    if needed > most:
        yield (
            f"not enough memory: {needed / 1e9:.1f} GB are estimated, {most / 1e9:.1f} GB can be "
            f"used; take a smaller form, such as --scale-factor {0.8 * most / needed:.2g}"
        )
    if run.profile.coordinators > 1 and (etcd is None or not shutil.which(str(etcd))):
        yield (
            f"three coordinators need etcd, and {etcd or 'none'} cannot be run: `make kube-tools` "
            "builds it, --etcd PATH names another"
        )
    if run.substrate.kube_clusters:
        yield (
            f"kubeClusters is {run.substrate.kube_clusters}: real control planes are not part of "
            "this substrate yet; set kubeClusters: 0"
        )
    for action in run.profile.actions:
        found = kind_of(action.action)
        if found is None or found[0].form not in SUPPORTED:
            known = ", ".join(SUPPORTED)
            yield f"action {action.action} is not done on this substrate yet: it does {known}"
    yield from _provider(run)


def _provider(run: PlannedRun) -> Iterator[str]:
    provider = run.profile.provider
    given = {
        "provider.stockouts": provider.stockouts, "provider.quota": provider.quota,
        "provider.rateLimit": provider.rate_limit, "provider.spot": provider.spot,
        "provider.correlatedFailures": provider.correlated_failures,
        "provider.createFailureRatio": provider.create_failure_ratio,
        "provider.consistencyLagSeconds": provider.consistency_lag_seconds,
    }  # fmt: skip
    for name, value in given.items():
        if value:
            yield f"{name} is not modelled on this substrate yet: leave it out"
    if run.profile.slo.expect_cost_routing:
        yield "slo.expectCostRouting is not measured on this substrate yet"


def free_ports(count: int) -> tuple[int, ...]:
    """Ports that no process has, none of those that the kernel hands out to callers."""
    lowest = int(_LOCAL_PORTS.read_text(encoding="ascii").split()[0])
    found: dict[int, None] = {}
    for port in SystemRandom().sample(range(10_000, lowest), min(20 * count, lowest - 10_000)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found[port] = None
        if len(found) == count:
            return tuple(found)
    raise ProfileError("127.0.0.1", f"{count} free ports are needed, {len(found)} are there")
