"""What a dashboard is told: where the fleet is, where it listens, and who may look.

Plain values; flags, variables and files are read by the command line. Everything is optional but a
source: without a coordinator there are only the shards named here.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from bigfleet_dashboard.errors import ConfigError
from bigfleet_dashboard.hosts import AllowedHosts

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
LOOPBACK = ("127.0.0.0/8", "::1/128")


@dataclass(frozen=True, slots=True)
class Tls:
    """Client certificate, key and CA bundle; the certificate's identity is readonly."""

    cert: Path
    key: Path
    ca: Path

    @classmethod
    def of(cls, cert: str, key: str, ca: str) -> Tls | None:
        """All three or none."""
        given = {"--tls-cert": cert, "--tls-key": key, "--tls-ca": ca}
        missing = [flag for flag, path in given.items() if not path]
        if len(missing) == len(given):
            return None
        if missing:
            raise ConfigError(f"TLS needs all three files: add {' and '.join(missing)}")
        return cls(Path(cert), Path(key), Path(ca))


@dataclass(frozen=True, slots=True)
class Auth:
    """Who may look: a header that a proxy in front sets, believed from these networks only."""

    header: str = ""
    proxies: tuple[Network, ...] = ()

    @classmethod
    def of(cls, header: str, proxies: tuple[str, ...]) -> Auth:
        """From flags; loopback is believed where no network is named."""
        try:
            nets = tuple(ipaddress.ip_network(text) for text in proxies or LOOPBACK)
        except ValueError as error:
            raise ConfigError(f"--auth-proxy: {error}; write a network as 10.0.0.0/8") from None
        return cls(header.lower(), nets)


@dataclass(frozen=True, slots=True)
class Config:
    """One dashboard."""

    host: str = "127.0.0.1"
    port: int = 8700
    coordinators: tuple[str, ...] = ()
    shards: tuple[str, ...] = ()
    """Shards to look at beside those the coordinator names."""
    shard_http: tuple[tuple[str, str], ...] = ()
    """Shard id -> host:port of its /metrics; else the port of its address plus 1000."""
    prometheus: str = ""
    clusters: tuple[tuple[str, str], ...] = ()
    """Cluster id -> address of its API server (or of a kubectl proxy)."""
    cluster_token_file: Path | None = None
    demo_socket: Path | None = None
    tls: Tls | None = None
    auth: Auth = Auth()
    allowed_hosts: tuple[str, ...] = ()
    """Host names it answers to beside its own; `hosts` has the rule."""
    poll_seconds: float = 2.0

    def __post_init__(self) -> None:
        if not self.coordinators and not self.shards:
            raise ConfigError(
                "there is nothing to show: name a coordinator with --coordinator host:port, or a "
                "shard with --shard host:port"
            )
        AllowedHosts(self.host, self.allowed_hosts)


def split_address(text: str, flag: str) -> tuple[str, int]:
    """`host:port` or `:port`, which is all interfaces."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"{flag} {text!r} is not an address: write host:port or :port")
    return host.removeprefix("[").removesuffix("]") or "0.0.0.0", int(port)
