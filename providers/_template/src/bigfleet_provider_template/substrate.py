"""The ten methods that speak to the cloud.

Here the cloud is a `MemorySubstrate`; the comment in each method says what a real one does there.
The methods stay short: no retry, no metric, no state, no thread. `kit.acall` (or `kit.call` for an
SDK that blocks) applies limits, counts, classifies and retries.
"""

from collections.abc import AsyncIterator, Mapping, Sequence

from bigfleet_providerkit import (
    Binding,
    Capacity,
    Host,
    HostCommand,
    HostResult,
    Launch,
    MemorySubstrate,
    Notice,
    PriceKey,
)
from bigfleet_providerkit.kit import Kit


class TemplateSubstrate:
    """The cloud of this provider."""

    def __init__(self, kit: Kit, cloud: MemorySubstrate) -> None:
        self._kit = kit
        self._cloud = cloud

    async def launch(self, order: Launch) -> Host:
        """Start a host and return when it runs."""
        # Give the cloud `order.operation_id` as its idempotency token and all of `order.tags` in
        # the same call. A cloud without tokens: look up by operation and machine id first, and fail
        # when the look-up fails. Then poll with `await kit.pause()` until the host runs.
        return await self._kit.acall("CreateHost", lambda: self._cloud.launch(order))

    async def terminate(self, host: Host) -> None:
        """Return when the host is gone and no longer billed."""
        # Delete the host, wait until it is gone, then what launch made beside it: disks, addresses.
        await self._kit.acall("DeleteHost", lambda: self._cloud.terminate(host))

    async def list_managed(self, refs: Sequence[str] | None = None) -> Sequence[Host]:
        """All hosts with our label, or exactly these."""
        # All pages and all power states, filtered by tag; raise rather than return a part. With
        # refs ask by id, whatever tags the hosts carry.
        return await self._kit.acall("ListHosts", lambda: self._cloud.list_managed(refs))

    async def ensure_running(self, host: Host) -> None:
        """Bring a stopped host back."""
        # Start what is stopped, resume what is suspended; no effect on a running host.
        await self._kit.acall("StartHost", lambda: self._cloud.ensure_running(host))

    async def run_on_host(self, host: Host, command: HostCommand) -> HostResult:
        """Run the kit's script on the host."""
        # One of the kit's channels: ssh, agent, command API, guest agent. Never put the secret
        # where others can read it.
        return await self._cloud.run_on_host(host, command)

    async def set_binding(self, host: Host, binding: Binding) -> None:
        """Write the complete tag set."""
        # `kit.codec.tags(binding, host.pin)` is the set; replace, do not merge.
        await self._kit.acall("SetTags", lambda: self._cloud.set_binding(host, binding))

    async def prices(self) -> Mapping[PriceKey, float]:
        """Live prices in the declared currency."""
        # Read the price list of the region; leave out what was not really read.
        return await self._kit.acall("ListPrices", self._cloud.prices)

    async def capacities(self) -> Mapping[str, Capacity]:
        """Live shapes by instance type."""
        # Read the catalogue of types; the pinned shapes serve until then.
        return await self._kit.acall("ListTypes", self._cloud.capacities)

    async def node_ready(self, host: Host, cluster: str) -> bool:
        """Whether the host's node is Ready in that cluster."""
        # Only where the substrate itself can know, as a managed node pool does; else leave it out:
        # the hook's exit code and --cluster-kubeconfigs are asked anyway.
        return await self._cloud.node_ready(host, cluster)

    async def interruptions(self) -> AsyncIterator[Notice]:
        """Notices about hosts that will be taken away."""
        # Follow the cloud's event queue, reconnect by yourself; leave it out where there is none.
        async for notice in self._cloud.interruptions():
            yield notice
