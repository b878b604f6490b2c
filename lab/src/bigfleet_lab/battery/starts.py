"""How long a provider takes to be ready with many slots, and how much memory it then has."""

import time
from dataclasses import dataclass
from pathlib import Path

from bigfleet_providerkit.testing import ProviderProcess


@dataclass(frozen=True)
class StartReport:
    """`resident_mb` is what the kernel counts as resident, in units of 1,000,000 bytes."""

    ready_s: float
    resident_mb: float


def start_report(provider: ProviderProcess, began_monotonic_s: float) -> StartReport:
    """Wait until a provider that was just booted opens its port, and measure it."""
    provider.wait_open(60.0)
    ready = time.monotonic() - began_monotonic_s
    status = Path(f"/proc/{provider.process.pid}/status").read_text("utf-8")
    (resident,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return StartReport(ready, int(resident) * 1024 / 1e6)
