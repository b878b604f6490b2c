"""What a run is asked to do: the target and the options, checked before anything starts."""

from dataclasses import dataclass
from pathlib import Path

from bigfleet_conformance.errors import UsageError
from bigfleet_conformance.registry import Capability, Profile
from bigfleet_conformance.runner.source import Source

ALL = "all"
NEEDS_EXECUTABLE = (Profile.DURABLE, Profile.SCALE, Profile.SECURE)


@dataclass(frozen=True, slots=True)
class ClientTls:
    """TLS as a client; with the CA's key one certificate per shard id is minted."""

    ca: Path
    certificate: Path | None = None
    key: Path | None = None
    server_name: str = ""
    ca_key: Path | None = None

    @property
    def mutual(self) -> bool:
        """Whether the suite shows a certificate as well."""
        return self.certificate is not None or self.ca_key is not None


@dataclass(frozen=True, slots=True)
class Target:
    """What is certified: exactly one of an address, a provider of ours, a command or a source."""

    address: str = ""
    provider: str = ""
    command: str = ""
    source: Source | None = None
    name: str = ""
    version: str = ""
    slow_address: str = ""
    fault_command: str = "bigfleet-fault-provider"
    tls: ClientTls | None = None

    def validate(self) -> None:
        """Exactly one way to the provider."""
        given = [self.address, self.provider, self.command, self.source]
        if sum(bool(one) for one in given) != 1:
            raise UsageError("give exactly one of --target, --provider and --exec")
        if self.address and ":" not in self.address:
            raise UsageError(f"--target {self.address!r} is not host:port")


@dataclass(frozen=True, slots=True)
class Options:
    """Everything else; the defaults are those of the command line."""

    profiles: tuple[str, ...] = (Profile.CORE,)
    scope: str = "full"
    claims: tuple[str, ...] = ()
    substrate: str = "memory"
    quick: bool = False
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    seed: int = 1
    seed_count: int = 256
    scale_seed: int = 8_000
    large_seed: int = 100_000
    soak_s: float = 10.0
    port: int = 9099
    jobs: int = 8
    settle_s: float = 30.0
    loss_window_s: float = 30.0
    interrupted_s: float = 30.0
    slow_ms: int = 500
    out: Path | None = None
    keep: bool = False

    @property
    def partial(self) -> bool:
        """Whether the run leaves something out on purpose."""
        return bool(self.quick or self.only or self.skip)

    def validate(self, target: Target) -> None:
        """Options that contradict each other are named."""
        known = {str(profile) for profile in Profile} | {ALL}
        for profile in self.profiles:
            if profile not in known:
                raise UsageError(f"unknown profile {profile!r}; choose from {', '.join(known)}")
        if not self.profiles:
            raise UsageError("no profile is given, so nothing would be required")
        capabilities = {str(capability).lower() for capability in Capability}
        for claim in self.claims:
            if claim.lower() not in capabilities:
                raise UsageError(
                    f"unknown capability {claim!r}; choose from {', '.join(sorted(capabilities))}"
                )
        if self.scope not in ("full", "base"):
            raise UsageError(f"--scope is full or base, not {self.scope!r}")
        if self.substrate not in ("memory", "http"):
            raise UsageError(f"--substrate is memory or http, not {self.substrate!r}")
        if target.address:
            for profile in NEEDS_EXECUTABLE:
                if profile in self.profiles:
                    raise UsageError(
                        f"profile {profile} restarts the provider; use --provider or --exec "
                        "instead of --target"
                    )
            if self.substrate == "http":
                raise UsageError("--substrate http boots the provider; use --provider or --exec")
        for name, value in (("--jobs", self.jobs), ("--seed-count", self.seed_count)):
            if value < 1:
                raise UsageError(f"{name} is at least 1, not {value}")
        if self.settle_s <= 0 or self.soak_s <= 0:
            raise UsageError("--settle-timeout and --soak are longer than 0")
