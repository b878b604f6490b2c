"""Which processes the demo consists of, with what flags, and where each keeps its state and log.

The shard's holds are shortened: what takes minutes in a fleet that saves money takes seconds in one
that is looked at. Everything else is as it ships.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

SHARD_ID: Final = "s-1"
HASTE: Final = (
    *("--cycle-interval", "4s"),
    *("--reclaim-hold", "6s", "--reclaim-cap", "0.5", "--reclaim-window", "5s"),
    *("--spot-release-hold", "20s", "--on-demand-release-hold", "45s"),
)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where everything listens."""

    dashboard: str = "127.0.0.1:8700"
    coordinator: str = "127.0.0.1:7790"
    coordinator_http: str = "127.0.0.1:8790"
    shard: str = "127.0.0.1:7780"
    shard_http: str = "127.0.0.1:8780"
    provider: str = "127.0.0.1:9001"
    provider_http: str = "127.0.0.1:9002"

    def by_flag(self) -> dict[str, str]:
        """Every address with the flag that sets it."""
        return {
            "--dashboard-addr": self.dashboard,
            "--coordinator-addr": self.coordinator,
            "--coordinator-metrics-addr": self.coordinator_http,
            "--shard-addr": self.shard,
            "--shard-metrics-addr": self.shard_http,
            "--provider-addr": self.provider,
            "--provider-metrics-addr": self.provider_http,
        }


@dataclass(frozen=True, slots=True)
class DemoProcess:
    """One process."""

    name: str
    what: str
    words: tuple[str, ...] = field(repr=False)
    address: str = ""
    """Where it can be reached once it is up; empty for one that does not listen."""
    takes_orders: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """All processes of one demo."""

    folder: Path
    at: Addresses = Addresses()
    seed: int = 1
    allowed_hosts: tuple[str, ...] = ()
    """Host names under which browsers open the page, beside its own."""

    @property
    def socket(self) -> Path:
        """Where scenarios are asked for."""
        return self.folder / "demo.sock"

    def log(self, part: str) -> Path:
        """The log of a part."""
        return self.folder / "logs" / f"{part}.log"

    def parts(self) -> tuple[DemoProcess, ...]:
        """In the order they are started; each also starts alone."""
        at = self.at
        return (
            DemoProcess(
                "provider", "simulated cloud, 120 machines", self._cloud(), at.provider, True
            ),
            DemoProcess(
                "coordinator", "embedded store (SQLite)", self._coordinator(), at.coordinator
            ),
            DemoProcess("shard", f"{SHARD_ID}, the decision cycle", self._shard(), at.shard),
            DemoProcess(
                "clusters", "three simulated clusters", self._clusters(), takes_orders=True
            ),
            DemoProcess("dashboard", "the page, read-only", self._dashboard(), at.dashboard),
        )

    def document(self) -> dict[str, object]:
        """Where everything is, for programs."""
        return {
            "dashboard": f"http://{self.at.dashboard}/",
            "data_dir": str(self.folder),
            "parts": [
                {
                    "name": part.name,
                    "what": part.what,
                    "address": part.address or None,
                    "log": str(self.log(part.name)),
                }
                for part in self.parts()
            ],
        }

    def _cloud(self) -> tuple[str, ...]:
        return (
            *_module("bigfleet_lab.demo.cloud"),
            *("--addr", self.at.provider, "--metrics-addr", self.at.provider_http),
            *("--state", str(self.folder / "cloud.db"), "--seed", str(self.seed)),
        )

    def _clusters(self) -> tuple[str, ...]:
        seed = ("--seed", str(self.seed))
        return (*_module("bigfleet_lab.demo.clusters"), "--shard", self.at.shard, *seed)

    def _coordinator(self) -> tuple[str, ...]:
        return (
            *_command("coordinator"),
            *("--id", "demo", "--listen", self.at.coordinator),
            *("--metrics-addr", self.at.coordinator_http),
            *("--data-dir", str(self.folder / "coordinator")),
        )

    def _shard(self) -> tuple[str, ...]:
        return (
            *_command("shard"),
            *("--shard-id", SHARD_ID, "--listen", self.at.shard),
            *("--metrics-addr", self.at.shard_http),
            *("--data-dir", str(self.folder / "shard")),
            *("--provider-addr", f"simcloud={self.at.provider}@north-1"),
            *("--coordinator-addr", self.at.coordinator, *HASTE),
        )

    def _dashboard(self) -> tuple[str, ...]:
        return (
            *_command("dashboard"),
            *("--listen", self.at.dashboard, "--coordinator", self.at.coordinator),
            *("--shard-http", f"{SHARD_ID}={self.at.shard_http}"),
            *("--demo-socket", str(self.socket)),
            *(word for host in self.allowed_hosts for word in ("--allowed-host", host)),
        )


def _module(name: str) -> tuple[str, ...]:
    return (sys.executable, "-m", name)


def _command(name: str) -> tuple[str, ...]:
    return (*_module("bigfleet.cli.main"), name)
