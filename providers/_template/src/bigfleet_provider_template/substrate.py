"""The methods that speak to the cloud.

The comment in each says what to look for in another cloud. The methods stay short: no retry, no
metric, no state, no thread. `kit.acall` (or `kit.call` for an SDK that blocks) applies limits,
counts, classifies and retries; `kit.until_running` and `kit.until_gone` wait for a host,
`kit.wait_for` for anything else that is under way.
"""

from collections.abc import AsyncIterator, Sequence
from functools import partial

from bigfleet_provider_template.client import Body, CloudClient
from bigfleet_provider_template.guest import CloudGuest
from bigfleet_providerkit import (
    Binding,
    Capacity,
    CapacityType,
    Host,
    HostCommand,
    HostResult,
    Launch,
    Notice,
    NoticeKind,
    Power,
    PriceKey,
    SourceData,
)
from bigfleet_providerkit.codec.tags import CLUSTER, MACHINE, OPERATION, PROVIDER
from bigfleet_providerkit.hostexec.channels.guest import GuestChannel
from bigfleet_providerkit.kit import Kit

PAGE = 100
EVENTS_EVERY = 5.0
POWER = {
    "starting": Power.STARTING,
    "running": Power.RUNNING,
    "leaving": Power.RUNNING,
    "stopped": Power.STOPPED,
    "ending": Power.ENDING,
    "ended": Power.GONE,
    "reclaimed": Power.PREEMPTED,
}
PAID = {"on_demand": CapacityType.ON_DEMAND, "spot": CapacityType.SPOT}


class TemplateSubstrate:
    """The cloud of this provider."""

    def __init__(self, kit: Kit, cloud: CloudClient) -> None:
        self._kit = kit
        self._cloud = cloud
        self._channel = GuestChannel(CloudGuest(kit, cloud), kit.clock, kit.pause)

    async def launch(self, order: Launch) -> Host:
        """Start a host and return when it runs."""
        # The operation id is the cloud's idempotency token, and all tags go in the same call. A
        # cloud without tokens launches through `kit.launch_once`, and sends with `once=True`.
        body: Body = {
            "name": order.name,
            "type": order.instance_type,
            "zone": order.zone,
            "spot": order.capacity_type is CapacityType.SPOT,
            "tags": dict(order.tags),
            "user_data": order.user_data,
            "token": order.operation_id,
        }
        made = await self._kit.acall("CreateHost", partial(self._cloud.post, "/v1/hosts", body))
        return await self._kit.until_running(Host(made["id"]))

    async def terminate(self, host: Host) -> None:
        """Return when the host is gone and no longer billed."""
        # Then remove what launch made beside the host: disks, interfaces, addresses.
        where = f"/v1/hosts/{host.ref}"
        await self._kit.acall("DeleteHost", partial(self._cloud.delete, where))
        await self._kit.until_gone(host)

    async def list_managed(self, refs: Sequence[str] | None = None) -> Sequence[Host]:
        """All hosts with our label, or exactly these."""
        # All pages and all power states, or an error: never a part. By refs whatever their tags;
        # with them it also serves everyone who waits for a host, once per poll interval.
        if refs is None:
            codec = self._kit.codec
            label = f"{codec.key(PROVIDER)}={codec.encode(self._kit.label)}"
            return await self._pages({"tag": label})
        parts = [",".join(refs[at : at + PAGE]) for at in range(0, len(refs), PAGE)]
        return [host for part in parts for host in await self._pages({"ids": part})]

    async def ensure_running(self, host: Host) -> None:
        """Bring a stopped host back."""
        # Start what is stopped, resume what is suspended; no effect on a running host.
        where = f"/v1/hosts/{host.ref}/start"
        await self._kit.acall("StartHost", partial(self._cloud.post, where))

    async def run_on_host(self, host: Host, command: HostCommand) -> HostResult:
        """Run the kit's script on the host."""
        # One of the kit's channels. Never put the secret where others can read it.
        return await self._channel.run(host, command)

    async def set_binding(self, host: Host, binding: Binding) -> None:
        """Write the complete tag set."""
        # Tags that others put on the host stay; of ours, what is absent must go. A cloud that
        # can remove single tags needs no look at those that are there.
        where = f"/v1/hosts/{host.ref}"
        shown = await self._kit.acall("GetHost", partial(self._cloud.get, where))
        where, body = f"{where}/tags", {"tags": self._kit.codec.merged(shown["tags"], binding)}
        await self._kit.acall("SetTags", partial(self._cloud.put, where, body))

    async def prices(self) -> SourceData:
        """Live prices in the declared currency."""
        # Leave out what was not really read; the seed table serves there.
        shown = await self._kit.acall("ListPrices", partial(self._cloud.get, "/v1/prices"))
        return SourceData(
            prices={
                PriceKey(row["type"], row["zone"], PAID[row["paid"]]): float(row["hourly"])
                for row in shown["prices"]
                if row["paid"] in PAID
            }
        )

    async def shapes(self) -> SourceData:
        """Live shapes by instance type."""
        # The pinned shapes serve until this was read.
        shown = await self._kit.acall("ListTypes", partial(self._cloud.get, "/v1/types"))
        return SourceData(
            capacities={
                row["name"]: Capacity(cpu=row["cpus"] * 1000, memory=row["memory_gib"] * 1024**3)
                for row in shown["types"]
            }
        )

    async def node_ready(self, host: Host, cluster: str) -> bool:
        """Whether the host's node is Ready in that cluster."""
        # Only where the cloud itself can know, as a managed node pool does; else leave it out: the
        # hook's exit code and --cluster-kubeconfigs are asked anyway.
        where = f"/v1/hosts/{host.ref}"
        shown = await self._kit.acall("GetHost", partial(self._cloud.get, where))
        return bool(shown["node"] == cluster)

    async def interruptions(self) -> AsyncIterator[Notice]:
        """Notices about hosts that will be taken away."""
        # Follow the cloud's queue of events until cancelled; leave it out where there is none.
        seen = 0
        while True:
            shown = await self._kit.acall(
                "ListEvents", partial(self._cloud.get, "/v1/events", {"after": str(seen)})
            )
            for event in shown["events"]:
                seen = max(seen, int(event["number"]))
                now = self._kit.clock.now()
                yield Notice(event["host"], NoticeKind.WARNING, 0.99, now, float(event["ends"]))
            await self._kit.clock.sleep(EVENTS_EVERY)

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._cloud.aclose()

    async def _pages(self, query: dict[str, str]) -> list[Host]:
        hosts: list[Host] = []
        cursor = ""
        while True:
            wanted = {**query, "limit": str(PAGE), **({"cursor": cursor} if cursor else {})}
            shown = await self._kit.acall(
                "ListHosts", partial(self._cloud.get, "/v1/hosts", wanted)
            )
            hosts += [self._read(row) for row in shown["hosts"]]
            cursor = shown["next"]
            if not cursor:
                return hosts

    def _read(self, row: Body) -> Host:
        codec, tags = self._kit.codec, row["tags"]
        return Host(
            ref=row["id"],
            machine_id=codec.read(tags, MACHINE) or "",
            operation_id=codec.read(tags, OPERATION) or "",
            instance_type=row["type"],
            zone=row["zone"],
            capacity_type=codec.capacity_type(tags),
            power=POWER.get(row["state"], Power.BROKEN),
            cluster=codec.read(tags, CLUSTER),
            address=row["address"],
            created=float(row["created"]),
        )
