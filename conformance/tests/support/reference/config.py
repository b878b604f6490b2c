"""What a reference provider is started with: the flags of the contract."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


def seconds(text: str) -> float:
    """A duration such as 500ms, 2s or 3m; a plain number is seconds."""
    for suffix, factor in (("ms", 0.001), ("s", 1.0), ("m", 60.0)):
        if text.endswith(suffix):
            return float(text.removesuffix(suffix)) * factor
    return float(text)


@dataclass(frozen=True, slots=True)
class Config:
    """The options of one instance."""

    addr: str = "127.0.0.1:0"
    provider: str = "reference"
    seed_count: int = 64
    state: Path | None = None
    transition_timeout_s: float = 60.0
    slow_s: float = 0.0
    reconcile_interval_s: float = 120.0
    heal_after_s: float = 0.0
    tls: tuple[Path, Path, Path] | None = None
    offers_delete: bool = True


class OptionError(Exception):
    """The flags make no sense."""


def parse(arguments: Sequence[str]) -> Config:
    """The flags of the contract."""
    parser = argparse.ArgumentParser(prog="reference-provider", description=__doc__)
    parser.add_argument("--addr", default="127.0.0.1:9001")
    parser.add_argument("--provider", default="reference")
    parser.add_argument("--use-fake-backend", action="store_true")
    parser.add_argument("--seed-count", type=int, default=64)
    parser.add_argument("--state", type=Path)
    parser.add_argument("--transition-timeout", type=seconds, default=60.0)
    parser.add_argument("--slow-ms", type=float, default=0.0)
    parser.add_argument("--reconcile-interval", type=seconds, default=120.0)
    parser.add_argument("--heal-after", type=seconds, default=0.0)
    parser.add_argument("--tls-cert", type=Path)
    parser.add_argument("--tls-key", type=Path)
    parser.add_argument("--tls-ca", type=Path)
    parser.add_argument("--without-delete", action="store_true")
    parser.add_argument("--version", action="version", version="reference 1.0.0")
    found = parser.parse_args(arguments)
    files = (found.tls_cert, found.tls_key, found.tls_ca)
    if any(files) and not all(files):
        raise OptionError("--tls-cert, --tls-key and --tls-ca belong together: give all or none")
    return Config(
        addr=found.addr,
        provider=found.provider,
        seed_count=found.seed_count,
        state=found.state,
        transition_timeout_s=found.transition_timeout,
        slow_s=found.slow_ms / 1000,
        reconcile_interval_s=found.reconcile_interval,
        heal_after_s=found.heal_after,
        tls=files if all(files) else None,
        offers_delete=not found.without_delete,
    )
