"""Where instances of a provider come from: a running target, an executable, or a test's own server.

A plan says what an instance is needed for; a source turns it into a running instance. Behaviours
that need restarts, other options or TLS boot through the workshop and never see which source it is.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from bigfleet_conformance.registry import LaneName


@dataclass(frozen=True, slots=True)
class TlsPaths:
    """The three files of mutual TLS."""

    certificate: Path
    key: Path
    ca: Path


@dataclass(frozen=True, slots=True)
class BootPlan:
    """One instance: for which lane, on which port offset, with which options of the contract."""

    lane: LaneName
    offset: int
    seed_count: int
    state: Path | None = None
    slow_ms: int = 0
    transition_timeout_s: float | None = None
    reconcile_interval_s: float | None = None
    heal_after_s: float | None = None
    tls: TlsPaths | None = None
    extra: tuple[str, ...] = ()
    name: str = ""

    @property
    def label(self) -> str:
        """For the names of log files."""
        return self.name or str(self.lane)

    @property
    def world(self) -> str:
        """Boots of one world share a fake cloud: restarts and copies, but no other story."""
        return f"{self.label.partition('-')[0]}-{self.slow_ms}"

    def at(self, offset: int) -> "BootPlan":
        """The same instance on another port."""
        return replace(self, offset=offset)


class Instance(Protocol):
    """A running provider."""

    @property
    def address(self) -> str:
        """host:port of its gRPC server."""
        ...

    @property
    def boot_s(self) -> float:
        """How long it took until the port was open."""
        ...

    async def kill(self) -> None:
        """End it as SIGKILL does."""
        ...

    async def stop(self) -> int:
        """End it as SIGTERM does; the exit code."""
        ...

    def alive(self) -> bool:
        """Whether it still runs."""
        ...

    def last_words(self) -> str:
        """The end of its output, for the error of a boot that came to nothing."""
        ...

    def resident_bytes(self) -> int | None:
        """Resident memory, where that can be known."""
        ...


class Source(Protocol):
    """Something that can boot instances of one provider."""

    @property
    def name(self) -> str:
        """What the provider calls itself."""
        ...

    @property
    def version(self) -> str:
        """Its version."""
        ...

    @property
    def command(self) -> str:
        """How it is started, for a person."""
        ...

    @property
    def help(self) -> str:
        """What its --help says: naming an optional flag is the claim to have it."""
        ...

    async def boot(self, plan: BootPlan) -> Instance:
        """Start an instance and wait for its port; BootError with its last words otherwise."""
        ...
