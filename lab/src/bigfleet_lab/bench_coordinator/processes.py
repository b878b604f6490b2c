"""A coordinator's process, and what it says of itself."""

from __future__ import annotations

import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bigfleet.cli.errors import FailureError
from bigfleet_lab.bench_shard.processes import Child, free_port

_START_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05


@dataclass
class Coordinator:
    """One that leads, on its embedded store."""

    folder: Path
    address: str
    http: int
    child: Child | None = None

    def start(self) -> None:
        """Begin a process, and wait until it leads; it may be the second one on this store."""
        self.child = Child(
            [
                sys.executable, "-m", "bigfleet.cli.main", "coordinator", "--id", "bench",
                "--listen", self.address, "--metrics-addr", f"127.0.0.1:{self.http}",
                "--data-dir", str(self.folder),
            ],
            self.folder.with_suffix(".log"),
        )  # fmt: skip
        deadline = time.monotonic() + _START_SECONDS
        while not self._leads():
            if self.child.process.poll() is not None or time.monotonic() > deadline:
                raise FailureError(f"the coordinator does not lead: {self.child.tail()}")
            time.sleep(_POLL_SECONDS)

    def kill(self) -> None:
        """End it without warning."""
        if self.child is not None:
            self.child.kill()

    def _leads(self) -> bool:
        try:
            return self.metrics().get("is_leader") == 1
        except OSError:
            return False

    def metrics(self) -> dict[str, float]:
        """Its series, by name and labels as they are written."""
        url = f"http://127.0.0.1:{self.http}/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return {
            name.removeprefix("bigfleet_coordinator_"): float(value)
            for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")
        }

    def memory(self) -> tuple[int, int]:
        """Bytes it holds now, and the most it ever held."""
        assert self.child is not None
        text = Path(f"/proc/{self.child.process.pid}/status").read_text(encoding="ascii")
        found = {line.split(":")[0]: line.split()[1] for line in text.splitlines() if "kB" in line}
        return int(found["VmRSS"]) * 1024, int(found["VmHWM"]) * 1024


@contextmanager
def coordinator(folder: Path) -> Iterator[Coordinator]:
    """A coordinator on the store in a folder; it leads when the block begins."""
    made = Coordinator(folder, f"127.0.0.1:{free_port()}", free_port())
    try:
        made.start()
        yield made
    finally:
        made.kill()
