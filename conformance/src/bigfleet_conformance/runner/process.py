"""Executables: boots a provider as its users do, over the flags of the contract.

Every process started here is ended here, whatever way a run ends. Its output goes to a file; the
last lines of a failed boot are part of the error.
"""

import asyncio
import os
import re
import shlex
import shutil
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bigfleet_conformance.errors import BootError, UsageError
from bigfleet_conformance.runner.cloud import FakeCloud
from bigfleet_conformance.runner.source import BootPlan

BOOT_LIMIT_S = 20.0
LATE_END_S = 10.0
STOP_LIMIT_S = 10.0
QUESTION_LIMIT_S = 30.0
LAST_LINES = 40
PROVIDERKIT = re.compile(r"providerkit[ =:/v]*(\d[\w.+-]*)", re.IGNORECASE)


def free_port() -> int:
    """A port on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def find_executable(name: str) -> str:
    """An executable beside this Python or on the path."""
    beside = Path(sys.executable).parent / name
    if beside.exists():
        return str(beside)
    found = shutil.which(name)
    if found is None:
        raise UsageError(f"no executable {name!r} beside {sys.executable} or on the path")
    return found


def names_flag(help_text: str, name: str) -> bool:
    """Whether a help text names a flag, with two dashes or, as Go's flag package does, with one."""
    return re.search(rf"(?<![\w-])--?{re.escape(name)}(?![\w-])", help_text) is not None


def duration(seconds: float) -> str:
    """A duration as providers read it."""
    return f"{round(seconds * 1000)}ms" if seconds != int(seconds) else f"{int(seconds)}s"


@dataclass(slots=True)
class ProcessInstance:
    """A provider in a process of its own."""

    process: asyncio.subprocess.Process
    address: str
    boot_s: float
    log: Path

    async def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def stop(self) -> int:
        """SIGTERM, and wait for the end."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return await asyncio.wait_for(self.process.wait(), STOP_LIMIT_S)
        except TimeoutError:
            await self.kill()
            return -int(signal.SIGKILL)

    def alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.returncode is None

    def last_words(self) -> str:
        """The last lines of its log."""
        return f"it ended after it had opened its port:\n{tail(self.log)}"

    def resident_bytes(self) -> int | None:
        """Resident memory, on systems that tell."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        except OSError:
            return None
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found.group(1)) * 1024 if found else None


@dataclass(slots=True)
class Executable:
    """A source that starts a command."""

    arguments: tuple[str, ...]
    logs: Path
    base_port: int = 0
    name: str = "unknown"
    version: str = "unknown"
    help: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    cloud: FakeCloud | None = None
    kit_version: str = ""
    given: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """For a person, and for repeating the run: as it was given, not where it was found."""
        return shlex.join(self.given or self.arguments)

    @classmethod
    async def ask(cls, command: str | Sequence[str], logs: Path, **facts: object) -> "Executable":
        """Find the command and ask it for its help and version."""
        arguments = shlex.split(command) if isinstance(command, str) else list(command)
        if not arguments:
            raise UsageError("the command is empty")
        given = tuple(arguments)
        arguments[0] = find_executable(arguments[0])
        made = cls(tuple(arguments), logs, given=given, **facts)  # type: ignore[arg-type]
        made.help = await made._question("--help")
        told = await made._question("--version") if names_flag(made.help, "version") else ""
        words = told.split()
        if words:
            made.name = words[0]
            made.version = next((w for w in words[1:] if w[:1].isdigit()), made.version)
        kit = PROVIDERKIT.search(told)
        made.kit_version = kit.group(1) if kit else ""
        return made

    async def _question(self, flag: str) -> str:
        process = await asyncio.create_subprocess_exec(
            *self.arguments,
            flag,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self._environment({}) | {"COLUMNS": "200", "NO_COLOR": "1"},
        )
        try:
            out, _ = await asyncio.wait_for(process.communicate(), QUESTION_LIMIT_S)
        except TimeoutError:
            process.kill()
            await process.wait()
            return ""
        return out.decode(errors="replace")

    async def boot(self, plan: BootPlan) -> ProcessInstance:
        """Start, and wait until the port is open."""
        port = self.base_port + plan.offset if self.base_port else free_port()
        filled = await self._cloud_words(plan)
        arguments = [*self.arguments, *self._flags(plan, port, filled)]
        self.logs.mkdir(parents=True, exist_ok=True)
        log = self.logs / f"{plan.label}-{port}.log"
        began = time.monotonic()
        with log.open("ab") as out:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self._environment(filled),
            )
        address = f"127.0.0.1:{port}"
        try:
            await self._wait_for_port(process, port, log, began)
        except BaseException:
            if process.returncode is None:
                process.kill()
                await process.wait()
            raise
        return ProcessInstance(process, address, time.monotonic() - began, log)

    async def _cloud_words(self, plan: BootPlan) -> dict[str, str]:
        if self.cloud is None:
            return {}
        return await self.cloud.words(plan.world, plan.slow_ms)

    def _flags(self, plan: BootPlan, port: int, filled: Mapping[str, str]) -> list[str]:
        flags = [f"--addr=127.0.0.1:{port}", "--provider=certify"]
        if self.cloud is None and (not self.help or names_flag(self.help, "use-fake-backend")):
            flags.append("--use-fake-backend")
        flags.append(f"--seed-count={plan.seed_count}")
        if plan.state is not None:
            flags.append(f"--state={plan.state}")
        if plan.transition_timeout_s is not None:
            flags.append(f"--transition-timeout={duration(plan.transition_timeout_s)}")
        optional = {
            "slow-ms": plan.slow_ms if plan.slow_ms and self.cloud is None else None,
            "reconcile-interval": _maybe(plan.reconcile_interval_s),
            "heal-after": _maybe(plan.heal_after_s),
        }
        flags += [
            f"--{name}={value}"
            for name, value in optional.items()
            if value is not None and names_flag(self.help, name)
        ]
        if plan.tls is not None:
            flags.append(f"--tls-cert={plan.tls.certificate}")
            flags.append(f"--tls-key={plan.tls.key}")
            flags.append(f"--tls-ca={plan.tls.ca}")
        return [*flags, *(_fill(text, filled) for text in self.extra), *plan.extra]

    def _environment(self, filled: Mapping[str, str]) -> dict[str, str]:
        own = {name: _fill(value, filled) for name, value in self.environment.items()}
        return {**os.environ, "BIGFLEET_PROVIDER_METRICS_ADDR": "0", **own}

    async def _wait_for_port(
        self, process: asyncio.subprocess.Process, port: int, log: Path, began: float
    ) -> None:
        while True:
            if process.returncode is not None:
                raise BootError(
                    f"{self.command} ended with exit code {process.returncode}:\n{tail(log)}",
                    process.returncode,
                )
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                if time.monotonic() - began > BOOT_LIMIT_S and not await _ends_soon(process):
                    raise BootError(
                        f"{self.command} did not open port {port} within {BOOT_LIMIT_S:g} s:\n"
                        f"{tail(log)}"
                    ) from None
                await asyncio.sleep(0.02)
                continue
            writer.close()
            # A port that answers may be another party's while ours is about to fail.
            await asyncio.sleep(0.02)
            if process.returncode is None:
                return

    async def close(self) -> None:
        """End what belongs to the source itself."""
        if self.cloud is not None:
            await self.cloud.close()


async def _ends_soon(process: asyncio.subprocess.Process) -> bool:
    """Whether a process that is late is one that refuses to start, and only slow to end."""
    try:
        await asyncio.wait_for(process.wait(), LATE_END_S)
    except TimeoutError:
        return False
    return True


def _maybe(seconds: float | None) -> str | None:
    return None if seconds is None else duration(seconds)


def _fill(text: str, words: Mapping[str, str]) -> str:
    for name, value in words.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def tail(log: Path) -> str:
    """The last lines of a log."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-LAST_LINES:])
