"""How long real providers take to be ready with 20,000 slots, and their memory then.

The executable of a provider with the SDK of its cloud, on the imitation of that cloud over HTTP, as
its conformance.yaml starts both. The slower of a start with a new store and one with that store
counts; the larger memory counts. The CPU time of the provider goes to stderr, because the seconds
depend on what else runs.
"""

import os
import sys
import time
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from providerkit.bench.rows import Bar, Row, Scenario, expect, row

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.runner.cloud import FakeCloud
from bigfleet_conformance.runner.resolve import Configuration, load_configuration
from bigfleet_lab.battery import StartReport, start_report
from bigfleet_providerkit.testing import ProviderProcess, Remote

SLOTS = 20_000
PROVIDERS = Path("providers")


@dataclass(frozen=True, slots=True)
class RealProvider:
    """A provider of a cloud, the package of its SDK, and its bars in seconds and megabytes."""

    name: str
    sdk: str
    ready_s: float
    resident_mb: float

    @property
    def bars(self) -> tuple[Bar, Bar]:
        """Two rows: seconds and memory."""
        return (
            Bar(f"provider.start-http.{self.name}.{SLOTS}", self.ready_s, "s", "lower"),
            Bar(f"provider.memory-http.{self.name}.{SLOTS}", self.resident_mb, "MB", "lower"),
        )


REAL_PROVIDERS = (
    RealProvider("hetzner", "hcloud", 6.0, 250.0),
    RealProvider("digitalocean", "pydo", 8.0, 450.0),
    RealProvider("aws", "boto3", 6.0, 300.0),
)


def boot(configuration: Configuration, words: dict[str, str], folder: Path) -> ProviderProcess:
    """The provider on a cloud that is there, with its state in a folder."""
    arguments = [filled(text, words) for text in configuration.http_args]
    environment = {name: filled(text, words) for name, text in configuration.http_environment}
    command = Path(sys.executable).parent / configuration.executable
    return ProviderProcess(
        [str(command)], f"--seed-count={SLOTS}", f"--state={folder / 'state.db'}",
        "--log-level=warning", *arguments, log=folder / "log",
        # Modules are compiled in an image; without that a start compiles the SDK each time.
        environment={**environment, "PYTHONDONTWRITEBYTECODE": ""},
    )  # fmt: skip


def filled(text: str, words: dict[str, str]) -> str:
    """A text of conformance.yaml with what the cloud said about itself."""
    for name, value in words.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def cpu_s(process: int) -> float:
    """CPU seconds that a process has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure_real_start(provider: RealProvider, folder: Path) -> list[Row]:
    """Two starts of one provider."""
    setup = f"make providers-setup NAME={provider.name}"
    expect(find_spec(provider.sdk) is not None, f"{provider.sdk} is not installed; run {setup}")
    configuration = load_configuration(PROVIDERS / provider.name / "conformance.yaml")
    cloud = FakeCloud(configuration.http_cloud, folder)
    reports: list[StartReport] = []
    try:
        words = await cloud.words(provider.name, 0)
        for kind in ("new", "kept"):
            began = time.monotonic()
            with boot(configuration, words, folder) as process:
                report = start_report(process, began)
                used = cpu_s(process.process.pid)
                async with process.channel() as channel:
                    machines = (await Remote(channel).list(pb.ListFilter())).machines
                expect(len(machines) == SLOTS, f"{len(machines)} machines instead of {SLOTS}")
                expect(process.stop() == 0, f"{provider.name} did not stop cleanly")
            sys.stderr.write(f"  {provider.name}, {kind} store: {report}, {used:.2f} s of CPU\n")
            reports.append(report)
    finally:
        await cloud.close()
    ready, memory = provider.bars
    seconds = max(report.ready_s for report in reports)
    megabytes = max(report.resident_mb for report in reports)
    return [
        row(ready.name, [], ready.bar, value=seconds, unit="s"),
        row(memory.name, [], memory.bar, value=megabytes, unit="MB"),
    ]


SCENARIOS = tuple(
    Scenario(partial(measure_real_start, provider), provider.bars) for provider in REAL_PROVIDERS
)
