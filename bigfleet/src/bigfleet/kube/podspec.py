"""What a Pod asks a node for, as kube-scheduler counts it.

The scheduler's rule, in its own order: containers are added up together with sidecars (init
containers that never end); the peak of the init phase counts where it is higher, and every init
container runs beside the sidecars started before it; amounts stated for the whole Pod take the
place of the sum; the overhead of the runtime comes on top. A Pod that is being resized counts with
the greater of what it has and what it wants. Only the fields that this needs are read.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from bigfleet.model import QuantityError, Resources, add, maximum, parse_resources

POD_LEVEL: Final = ("cpu", "memory")
_POD_LEVEL_PREFIX: Final = "hugepages-"
_MILLI: Final = 1000
_INFEASIBLE: Final = "Infeasible"


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    pass


class ContainerResources(_Part, frozen=True):
    """Requests and limits of a container or a Pod, as texts."""

    requests: dict[str, str] | None = None
    limits: dict[str, str] | None = None


_NOTHING: Final = ContainerResources()


class Container(_Part, frozen=True):
    """One container. An init container that restarts always is a sidecar."""

    name: str = ""
    resources: ContainerResources | None = None
    restart_policy: str = ""

    @property
    def is_sidecar(self) -> bool:
        """Whether an init container stays for the life of the Pod."""
        return self.restart_policy == "Always"


class ContainerStatus(_Part, frozen=True):
    """What a container has been given."""

    name: str = ""
    resources: ContainerResources | None = None
    allocated_resources: dict[str, str] | None = None


class PodCondition(_Part, frozen=True):
    """A condition of a Pod or a Node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: str = ""


class PodResourceSpec(Protocol):
    """The part of a Pod's spec that says what it asks for."""

    @property
    def containers(self) -> tuple[Container, ...]:
        """What runs in it."""

    @property
    def init_containers(self) -> tuple[Container, ...]:
        """What runs before, and sidecars."""

    @property
    def overhead(self) -> dict[str, str] | None:
        """What its runtime takes."""

    @property
    def resources(self) -> ContainerResources | None:
        """What is stated for the whole Pod."""


class PodResourceStatus(Protocol):
    """The part of a Pod's status that says what it has."""

    @property
    def container_statuses(self) -> tuple[ContainerStatus, ...]:
        """Of its containers."""

    @property
    def init_container_statuses(self) -> tuple[ContainerStatus, ...]:
        """Of its init containers."""

    @property
    def conditions(self) -> tuple[PodCondition, ...]:
        """Whether a resize is under way, among others."""


def pod_resources(spec: PodResourceSpec, given: PodResourceStatus | None = None) -> dict[str, int]:
    """Milli-units the Pod takes on a node, `pods: 1` among them; what is zero is left out.

    Raises QuantityError for an amount that cannot be read.
    """
    counted = _CountedAmounts(given)
    total: dict[str, int] = {}
    for container in spec.containers:
        total = add(total, counted.by(container))
    sidecars: Resources = {}
    peak: Resources = {}
    for container in spec.init_containers:
        wanted = counted.by(container)
        if container.is_sidecar:
            total = add(total, wanted)
            sidecars = add(sidecars, wanted)
            peak = maximum(peak, sidecars)
        else:
            peak = maximum(peak, add(wanted, sidecars))
    total = maximum(total, peak)
    for name, amount in requests_of(spec.resources).items():
        if name in POD_LEVEL or name.startswith(_POD_LEVEL_PREFIX):
            total[name] = amount
    total = add(total, parse_resources(spec.overhead or {}, "overhead"))
    total["pods"] = _MILLI
    return {name: amount for name, amount in total.items() if amount > 0}


def requests_of(amounts: ContainerResources | None) -> dict[str, int]:
    """Requests as numbers; a limit without a request is a request as well."""
    stated = amounts or _NOTHING
    return parse_resources({**(stated.limits or {}), **(stated.requests or {})})


class _CountedAmounts:
    """What each container counts with, its resize included."""

    def __init__(self, given: PodResourceStatus | None) -> None:
        self._statuses: dict[str, ContainerStatus] = {}
        self._is_infeasible = False
        if given is not None:
            statuses = (*given.container_statuses, *given.init_container_statuses)
            self._statuses = {status.name: status for status in statuses}
            self._is_infeasible = any(
                c.type == "PodResizePending" and c.reason == _INFEASIBLE for c in given.conditions
            )

    def by(self, container: Container) -> Resources:
        wanted = requests_of(container.resources)
        status = self._statuses.get(container.name)
        if status is None or (status.resources is None and status.allocated_resources is None):
            return wanted
        try:
            has = maximum(
                parse_resources((status.resources or _NOTHING).requests or {}),
                parse_resources(status.allocated_resources or {}),
            )
        except QuantityError:
            return wanted
        return has if self._is_infeasible and has else maximum(wanted, has)
