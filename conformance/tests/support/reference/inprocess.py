"""A source for the runner: reference providers inside the test's own process.

Boots take milliseconds, and a kill ends everything the instance had started. The state file is the
only thing that is left, as after SIGKILL.
"""

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bigfleet_conformance.errors import BootError
from bigfleet_conformance.runner.source import BootPlan
from reference.config import Config, OptionError, parse
from reference.provider import Provider
from reference.server import Server
from reference.store import StoreError


@dataclass(slots=True)
class InProcessInstance:
    """One running reference provider."""

    server: Server
    address: str
    boot_s: float
    running: bool = True

    async def kill(self) -> None:
        """End at once."""
        if self.running:
            self.running = False
            await self.server.stop()

    async def stop(self) -> int:
        """End; there is nothing to finish."""
        await self.kill()
        return 0

    def alive(self) -> bool:
        """Whether it serves."""
        return self.running

    def last_words(self) -> str:
        """It writes nothing."""
        return "it ended after it had opened its port"

    def resident_bytes(self) -> int | None:
        """Memory of the whole process: good enough for a bound."""
        try:
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        except OSError:
            return None
        return pages * resource.getpagesize()


@dataclass(slots=True)
class InProcess:
    """Boots one kind of reference provider."""

    provider_type: type[Provider] = Provider
    server_type: type[Server] = Server
    name: str = "reference"
    version: str = "1.0.0"
    command: str = "reference"
    help: str = "--slow-ms --reconcile-interval --heal-after --tls-cert --state"
    kit_version: str = ""
    offers_delete: bool = True
    before_boot: Callable[[], None] | None = None

    async def boot(self, plan: BootPlan) -> InProcessInstance:
        """Start a server on a free port."""
        began = time.monotonic()
        try:
            provider = self.provider_type(self._config(plan))
        except (StoreError, OptionError) as error:
            raise BootError(str(error), 1) from error
        server = self.server_type(provider)
        await server.start()
        return InProcessInstance(server, server.address, time.monotonic() - began)

    def _config(self, plan: BootPlan) -> Config:
        arguments = ["--addr=127.0.0.1:0", f"--seed-count={plan.seed_count}", *plan.extra]
        arguments += [f"--slow-ms={plan.slow_ms}", "--provider=certify"]
        if plan.state is not None:
            arguments.append(f"--state={plan.state}")
        if plan.transition_timeout_s is not None:
            arguments.append(f"--transition-timeout={plan.transition_timeout_s}s")
        if plan.reconcile_interval_s is not None:
            arguments.append(f"--reconcile-interval={plan.reconcile_interval_s}s")
        if plan.heal_after_s is not None:
            arguments.append(f"--heal-after={plan.heal_after_s}s")
        if plan.tls is not None:
            arguments.append(f"--tls-cert={plan.tls.certificate}")
            arguments.append(f"--tls-key={plan.tls.key}")
            arguments.append(f"--tls-ca={plan.tls.ca}")
        if not self.offers_delete:
            arguments.append("--without-delete")
        return parse(arguments)
