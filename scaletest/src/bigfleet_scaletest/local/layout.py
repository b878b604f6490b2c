"""Which processes a run on this machine consists of, and where each listens."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bigfleet_lab.demo.layout import DemoProcess
from bigfleet_lab.profiles.actions import shard_names
from bigfleet_scaletest.provider.process import LABEL
from bigfleet_scaletest.run_options import PlannedRun

LOAD: Final = "load"
REGION: Final = "local"
STORE_MEMBERS: Final = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class ProcessAddress:
    """Where a process listens: its service, and its metrics."""

    name: str
    service: str
    http: str


@dataclass(frozen=True, slots=True)
class LocalLayout:
    """All processes of a run. Ports are given in the order members, coordinators, providers,
    shards; two for each."""

    run: PlannedRun
    folder: Path
    ports: tuple[int, ...]
    etcd: Path | None = None

    @staticmethod
    def port_count(run: PlannedRun) -> int:
        """Ports that a run needs."""
        members = len(STORE_MEMBERS) if run.profile.coordinators > 1 else 0
        return 2 * (members + run.profile.coordinators + 2 * run.profile.shards)

    def _at(self, number: int, name: str) -> ProcessAddress:
        service, http = self.ports[2 * number : 2 * number + 2]
        return ProcessAddress(name, f"127.0.0.1:{service}", f"127.0.0.1:{http}")

    @property
    def members(self) -> tuple[ProcessAddress, ...]:
        """Of etcd: client and peer address; none with one coordinator, which has its own store."""
        if self.run.profile.coordinators == 1:
            return ()
        return tuple(self._at(n, f"etcd-{name}") for n, name in enumerate(STORE_MEMBERS))

    @property
    def coordinators(self) -> tuple[ProcessAddress, ...]:
        """The replicas."""
        first = len(self.members)
        return tuple(
            self._at(first + n, f"coordinator-{n}") for n in range(self.run.profile.coordinators)
        )

    @property
    def providers(self) -> tuple[ProcessAddress, ...]:
        """One for each shard."""
        first = len(self.members) + len(self.coordinators)
        return tuple(self._at(first + n, f"provider-{n}") for n in range(self.run.profile.shards))

    @property
    def shards(self) -> tuple[ProcessAddress, ...]:
        """The shards."""
        first = len(self.members) + len(self.coordinators) + len(self.providers)
        names = shard_names(self.run.profile.shards)
        return tuple(self._at(first + n, name) for n, name in enumerate(names))

    @property
    def samples(self) -> Path:
        """Where the load driver writes."""
        return self.folder / "load.jsonl"

    def log(self, name: str) -> Path:
        """The log of a process."""
        return self.folder / "logs" / f"{name}.log"

    def parts(self) -> tuple[DemoProcess, ...]:
        """Everything but the load driver, which starts when the shards can be reached."""
        return (
            *(self._member(each) for each in self.members),
            *(self._coordinator(each) for each in self.coordinators),
            *(self._provider(n, each) for n, each in enumerate(self.providers)),
            *(self._shard(n, each) for n, each in enumerate(self.shards)),
        )

    def load(self) -> DemoProcess:
        """The load driver."""
        shards = (word for at in self.shards for word in ("--shard", f"{at.name}={at.service}"))
        words = (
            *_module("bigfleet_scaletest.load.driver"),
            *self.run.options.words(), *shards, "--samples", str(self.samples),
        )  # fmt: skip
        return DemoProcess(LOAD, "simulated clusters", words, takes_orders=True)

    def _member(self, at: ProcessAddress) -> DemoProcess:
        peers = ",".join(f"{each.name}=http://{each.http}" for each in self.members)
        words = (
            str(self.etcd), f"--name={at.name}", f"--data-dir={self.folder / at.name}",
            f"--listen-client-urls=http://{at.service}",
            f"--advertise-client-urls=http://{at.service}",
            f"--listen-peer-urls=http://{at.http}",
            f"--initial-advertise-peer-urls=http://{at.http}",
            f"--initial-cluster={peers}", "--initial-cluster-state=new", "--log-level=error",
        )  # fmt: skip
        return DemoProcess(at.name, "etcd member", words, at.service)

    def _coordinator(self, at: ProcessAddress) -> DemoProcess:
        members = ",".join(each.service for each in self.members)
        store = ("--store", f"etcd://{members}/scaletest") if members else ()
        words = (
            *_command("coordinator"), "--id", at.name, "--listen", at.service,
            "--metrics-addr", at.http, "--data-dir", str(self.folder / at.name), *store,
        )  # fmt: skip
        return DemoProcess(at.name, "coordinator", words, at.service)

    def _provider(self, number: int, at: ProcessAddress) -> DemoProcess:
        words = (
            *_module("bigfleet_scaletest.provider.process"), *self.run.options.words(),
            "--shard", str(number), "--addr", at.service, "--metrics-addr", at.http,
            "--state", str(self.folder / f"{at.name}.db"),
        )  # fmt: skip
        return DemoProcess(at.name, "simulated provider", words, at.service, takes_orders=True)

    def _shard(self, number: int, at: ProcessAddress) -> DemoProcess:
        run, provider = self.run, self.providers[number]
        coordinators = (
            w for each in self.coordinators for w in ("--coordinator-addr", each.service)
        )
        words = (
            *_command("shard"), "--shard-id", at.name, "--listen", at.service,
            "--metrics-addr", at.http, "--data-dir", str(self.folder / at.name),
            "--provider-addr", f"{LABEL}-{number}={provider.service}@{REGION}", *coordinators,
            "--cycle-interval", f"{run.setting('cycleIntervalSeconds'):g}s",
            "--execute-concurrency", f"{run.setting('executeConcurrency'):.0f}",
            "--max-actions-per-cycle", f"{run.setting('maxActionsPerCycle'):.0f}",
            "--metrics-warmup-cycles", f"{run.setting('metricsWarmupCycles'):.0f}",
            "--phase-attribution-log",
        )  # fmt: skip
        return DemoProcess(at.name, "shard", words, at.service)


def _module(name: str) -> tuple[str, ...]:
    return (sys.executable, "-m", name)


def _command(name: str) -> tuple[str, ...]:
    return (*_module("bigfleet.cli.main"), name)
