"""The processes of a shard benchmark, and what a shard says of itself."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bigfleet.cli.errors import FailureError

_PACKAGE: Final = "bigfleet_lab.bench_shard"
_POLL_SECONDS: Final = 0.05


def free_port() -> int:
    """A port on which no process listens just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Child:
    """A process that prints `ready` when it can be used."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def wait_ready(self) -> None:
        """Return when it says so."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == "ready":
                return
        raise FailureError(f"a process ended before it was ready; its last words: {self.tail()}")

    def ask(self) -> Any:
        """What it measured since it was last asked."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def tail(self) -> str:
        """The end of its log."""
        return " ".join(self._log.read_text(errors="replace").split()[-40:])

    def kill(self) -> None:
        """End it without warning."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


@dataclass
class Shard:
    """A shard's process, its ports and its data directory."""

    data: Path
    provider: int
    """Its provider's port; 0: the coordinator says whom to dial."""
    listen: int
    http: int
    log: Path
    flags: tuple[str, ...] = ()
    shard_id: str = "bench"
    child: Child | None = None
    started: float = 0.0

    def start(self) -> None:
        """Begin a process; it may be the second one on this directory."""
        self.started = time.monotonic()
        address = f"bench=127.0.0.1:{self.provider}"
        self.child = Child(
            [
                sys.executable, "-m", "bigfleet.cli.main", "shard", "--shard-id", self.shard_id,
                "--listen", f"127.0.0.1:{self.listen}", "--metrics-addr", f"127.0.0.1:{self.http}",
                "--data-dir", str(self.data),
                *(("--provider-addr", address) if self.provider else ()), *self.flags,
            ],
            self.log,
        )  # fmt: skip

    def kill(self) -> None:
        """End it without warning."""
        if self.child is not None:
            self.child.kill()

    @property
    def address(self) -> str:
        """Where its operators dial."""
        return f"127.0.0.1:{self.listen}"

    def cycles(self, since: int = 0) -> list[dict[str, Any]]:
        """Its cycles from one on; none while it does not answer."""
        url = f"http://127.0.0.1:{self.http}/debug/cycles?since={since}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return [json.loads(line) for line in answer.read().splitlines() if line]
        except OSError:
            return []

    def wait_cycle(self, wanted: str, seconds: float, **fields: int) -> dict[str, Any]:
        """The first cycle that has at least this much of each field."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for cycle in self.cycles():
                if all(cycle[name] >= least for name, least in fields.items()):
                    return cycle
            assert self.child is not None
            if self.child.process.poll() is not None:
                raise FailureError(f"the shard ended: {self.child.tail()}")
            time.sleep(_POLL_SECONDS)
        raise FailureError(f"no cycle {wanted} within {seconds:.0f} s")

    def memory(self) -> tuple[int, int]:
        """Bytes it holds now, and the most it ever held."""
        assert self.child is not None
        text = Path(f"/proc/{self.child.process.pid}/status").read_text()
        found = {line.split(":")[0]: line.split()[1] for line in text.splitlines() if "kB" in line}
        return int(found["VmRSS"]) * 1024, int(found["VmHWM"]) * 1024


@dataclass
class ShardBench:
    """Provider, shard and operators of one run."""

    provider: Child
    shard: Shard
    operators: Child


@contextmanager
def running(
    workload: str,
    machines: int,
    *,
    interval: float = 10.0,
    churn: float = 0.03,
    spread: float | None = None,
    flags: Sequence[str] = (),
) -> Iterator[ShardBench]:
    """All processes, ready; ended and gone afterwards.

    Operators begin over `spread` seconds, by default over the interval of their roll-ups.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="bigfleet-bench-")))
        port = free_port()
        provider = Child(
            [sys.executable, "-m", f"{_PACKAGE}.provider", workload, str(machines), str(port)],
            folder / "provider.log",
        )
        stack.callback(provider.kill)
        provider.wait_ready()
        shard = Shard(
            folder / "data", port, free_port(), free_port(), folder / "shard.log", tuple(flags)
        )
        stack.callback(shard.kill)
        shard.start()
        shard.wait_cycle("with the machines", 180.0, machines=machines)
        operators = Child(
            [
                sys.executable, "-m", f"{_PACKAGE}.operators", workload, str(machines),
                shard.address, str(interval), str(churn),
                str(interval if spread is None else spread),
            ],
            folder / "operators.log",
        )  # fmt: skip
        stack.callback(operators.kill)
        operators.wait_ready()
        yield ShardBench(provider, shard, operators)
