"""What a provider writes: six methods about one substrate, and the values they exchange.

Every method may be called again after any failure, and none keeps state that matters: what must
survive a restart goes into `Host.notes`, which the store keeps. Methods raise the classes of
`errors`; retries, metrics, threads and time limits are the kit's.
"""

import enum
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from bigfleet_providerkit.machines.state import CapacityType

if TYPE_CHECKING:
    from bigfleet_providerkit.offerings.offering import Offering


class Power(enum.StrEnum):
    """What a substrate says about a host."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"
    ENDING = "ending"
    GONE = "gone"
    PREEMPTED = "preempted"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Launch:
    """One order for a host. `operation_id` is the token that makes it idempotent.

    `first` is false after a retry or a resume: an earlier attempt may have made the host already.
    `last_sent_monotonic_s` is when that attempt ended at the latest, where this process knows.
    `pin` belongs to `host_key`, and both stay the same in every attempt.
    """

    machine_id: str
    operation_id: str
    instance_type: str
    zone: str
    capacity_type: CapacityType
    name: str
    tags: Mapping[str, str]
    deadline: float
    image: str = ""
    arch: str = "amd64"
    disk_gb: int = 0
    reservation: str = ""
    placement_group: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)
    user_data: str = ""
    host_key: str = ""
    pin: str = ""
    first: bool = True
    last_sent_monotonic_s: float | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """A host as the substrate shows it.

    `provider_id` is what the cloud's controller manager writes as the providerID of its Node, for
    example `aws:///eu-west-1a/i-1`; the part after its last slash is `ref`. Empty where the node's
    providerID is `ref` itself.
    """

    ref: str
    machine_id: str = ""
    operation_id: str = ""
    instance_type: str = ""
    zone: str = ""
    capacity_type: CapacityType | None = None
    power: Power = Power.RUNNING
    cluster: str | None = None
    address: str = ""
    created: float = 0.0
    pin: str = ""
    node_name: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    provider_id: str = ""

    def with_notes(self, **notes: str) -> "Host":
        """The same host with some notes added."""
        return replace(self, notes={**self.notes, **notes})


class CommandKind(enum.StrEnum):
    """What is to be done on a host."""

    CONFIGURE = "configure"
    DRAIN = "drain"
    PROBE = "probe"


@dataclass(frozen=True, slots=True)
class HostCommand:
    """The kit's wrapper script for one step on one host; `secret` is the bootstrap blob."""

    kind: CommandKind
    script: str
    limit: float
    operation_id: str
    secret: bytes = b""
    cluster: str = ""
    grace: int = 0
    label: str = ""
    taints: tuple[str, ...] = ()
    provider_id: str = ""


@dataclass(frozen=True, slots=True)
class HostResult:
    """How a command ended: its exit code and the last 4 KiB of each output."""

    exit_code: int
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class Binding:
    """The complete tag set of a host; `cluster` is None where it belongs to none."""

    machine_id: str
    operation_id: str
    capacity_type: CapacityType
    cluster: str | None
    pin: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags of `--tags` and of the offering, for the cloud's own bills."""
    launch: str = ""
    """What the host was made of, hashed; empty where that is not known."""


@dataclass(frozen=True, slots=True)
class PriceKey:
    """What a price is for; `place` is a zone or a region."""

    instance_type: str
    place: str
    capacity_type: CapacityType


@dataclass(frozen=True, slots=True)
class Capacity:
    """The shape of an instance type: milli-CPUs, bytes, accelerators, architecture."""

    cpu: int
    memory: int
    gpus: int = 0
    accelerator: str = ""
    arch: str = "amd64"
    pods: int = 0
    """How many pods a node of this type takes; 0 = the kubelet's 110."""
    extended: Mapping[str, int] = field(default_factory=dict)
    """Other resources that pods can ask for, by name: `amd.com/gpu`, `aws.amazon.com/neuron` ..."""


class NoticeKind(enum.StrEnum):
    """What a substrate announces about a host."""

    WARNING = "warning"
    REBALANCE = "rebalance"
    GONE = "gone"
    RETRACTED = "retracted"


@dataclass(frozen=True, slots=True)
class Notice:
    """An announcement about one host. `ends` is Unix seconds, or None when no end is named."""

    ref: str
    kind: NoticeKind
    probability: float
    received: float
    ends: float | None = None


class Substrate(Protocol):
    """The cloud, hypervisor or rack behind a provider."""

    async def launch(self, order: Launch) -> Host:
        """Start a host and return when it runs; a second call with the same operation id returns
        the first call's host."""
        ...

    async def terminate(self, host: Host) -> None:
        """Return when the host and what launch made for it are gone; absent is success."""
        ...

    async def list_managed(self, refs: Sequence[str] | None = None) -> Sequence[Host]:
        """All hosts with this provider's label, or exactly these by id; all of them, or raise."""
        ...

    async def ensure_running(self, host: Host) -> None:
        """Bring a stopped, paused or suspended host back."""
        ...

    async def run_on_host(self, host: Host, command: HostCommand) -> HostResult:
        """Run the script on the host within its limit and deliver the secret unseen by others."""
        ...

    async def set_binding(self, host: Host, binding: Binding) -> None:
        """Write the complete tag set of a host."""
        ...


@runtime_checkable
class KnowsReadiness(Protocol):
    """Optional: a substrate that can see nodes itself."""

    async def node_ready(self, host: Host, cluster: str) -> bool:
        """Whether the Node of this host is Ready in that cluster."""
        ...


@runtime_checkable
class KnowsInterruptions(Protocol):
    """Optional: a substrate that announces the end of hosts."""

    def interruptions(self) -> AsyncIterator[Notice]:
        """Notices as they come; reconnects by itself."""
        ...


@runtime_checkable
class ChecksPermissions(Protocol):
    """Optional: a substrate that can try its permissions without using them."""

    async def missing_permissions(self) -> Sequence[str]:
        """The names of those that are not granted; asked for by `check`."""
        ...


@runtime_checkable
class AcceptsOfferings(Protocol):
    """Optional: a substrate that has to see whether it can hold what is offered."""

    async def accept(self, offerings: "Sequence[Offering]") -> None:
        """Raise OptionError with one sentence; called at start and when offerings change."""
        ...


@dataclass(frozen=True, slots=True)
class Litter:
    """What a host or a cancelled launch left behind: an interface, a volume, user data, a tag.

    `operation` is the Create it was made for, where that is known; it stays while that Create runs
    and while a host has it.
    """

    ref: str
    kind: str
    created: float
    operation: str = ""


@runtime_checkable
class LeavesLitter(Protocol):
    """Optional: a substrate where a host consists of more than the host."""

    async def leftovers(self) -> Sequence[Litter]:
        """What carries this provider's label and belongs to no host; all of it, or raise."""
        ...

    async def discard(self, litter: Litter) -> None:
        """Remove one; absent is success. Called after the orphan grace, within the same rails."""
        ...


@runtime_checkable
class Serves(Protocol):
    """Optional: a substrate that listens, for example to agents of its hosts."""

    async def serve(self) -> None:
        """Listen; called by the start of a provider and not by `check`, which may run beside it."""
        ...


@runtime_checkable
class Closes(Protocol):
    """Optional: a substrate that holds connections."""

    async def aclose(self) -> None:
        """Let go of everything; called once, at the end."""
        ...


@runtime_checkable
class RenewsCredentials(Protocol):
    """Optional: a substrate whose credentials can be fetched again."""

    async def renew_credentials(self) -> None:
        """Fetch them; the call that was refused is then repeated once."""
        ...
