"""Everyone who can say whether a node is Ready, asked together.

The hook's exit 0 is a promise; a substrate that sees nodes and a kubeconfig for the cluster are
looks of our own. Until all that apply say yes the machine stays CONFIGURING. After a restart the
hook's promise is found on the host itself, as the id of its operation.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from bigfleet_providerkit.clock import Clock
from bigfleet_providerkit.errors import NotReady, SubstrateError
from bigfleet_providerkit.substrate import Host, KnowsReadiness, Substrate

# The time-out of the transition says less than we can: be a little earlier.
LAST_WORD = 0.05


class NodeWatch(Protocol):
    """A look at the nodes of clusters for which there is a kubeconfig."""

    def covers(self, cluster: str) -> bool:
        """Whether there is a kubeconfig for this cluster."""
        ...

    async def ready(self, host: Host, machine: str, cluster: str) -> bool:
        """Whether the machine's Node is Ready there."""
        ...

    def allocatable(self, host: Host, machine: str, cluster: str) -> Mapping[str, object]:
        """What the machine's Node reports as allocatable; empty while that is not known."""
        ...

    async def aclose(self) -> None:
        """Look no more."""
        ...


class Judge:
    """Asks all that apply."""

    def __init__(
        self, substrate: Substrate, watch: NodeWatch | None, clock: Clock, poll: float
    ) -> None:
        self._substrate = substrate
        self._watch = watch
        self._clock = clock
        self._poll = poll

    async def seen(self, host: Host, machine: str, cluster: str) -> bool | None:
        """What can be seen: Ready, not Ready, or None when no source can see nodes."""
        verdicts = []
        if isinstance(self._substrate, KnowsReadiness):
            verdicts.append(await self._substrate.node_ready(host, cluster))
        if self._watch is not None and self._watch.covers(cluster):
            verdicts.append(await self._watch.ready(host, machine, cluster))
        return all(verdicts) if verdicts else None

    async def wait(self, host: Host, machine: str, cluster: str, until: float) -> None:
        """Return when the hook's promise is confirmed, or no source can confirm it."""
        last = "the node is not Ready"
        while True:
            try:
                if await self.seen(host, machine, cluster) is not False:
                    return
            except SubstrateError as error:
                last = str(error)
            left = until - self._clock.monotonic() - LAST_WORD
            if left <= 0:
                raise NotReady(f"{last} in cluster {cluster} after the hook had ended")
            await self._clock.sleep(min(self._poll, left))

    async def resumed(
        self, host: Host, machine: str, cluster: str, done_on_host: Callable[[], Awaitable[bool]]
    ) -> None:
        """Return when a Configure that was cut off turns out to have worked; else go on asking."""
        while True:
            try:
                if await self.seen(host, machine, cluster) or await done_on_host():
                    return
            except SubstrateError:
                # Not knowing does not decide it; the deadline of the operation ends this.
                pass
            await self._clock.sleep(self._poll)

    def reported(self, host: Host, machine: str, cluster: str) -> Mapping[str, object]:
        """What the machine's Node reports as allocatable, where a kubeconfig shows it."""
        if self._watch is None or not self._watch.covers(cluster):
            return {}
        return self._watch.allocatable(host, machine, cluster)

    async def aclose(self) -> None:
        """Look no more."""
        if self._watch is not None:
            await self._watch.aclose()
