"""Servers as the kit sees them: launch, list, power on, label, delete.

The API takes no idempotency token, but a server's name is unique in its project: a Create that is
repeated because its answer was lost is refused (uniqueness_error), and the server of that name is
the host, if its labels say so. Looks at many servers read the project's listing, 50 a page; looks
at few read each by its id, whichever needs fewer of the calls that the project has.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from hcloud import Client
from hcloud.locations.domain import Location
from hcloud.server_types.domain import ServerType
from hcloud.servers.domain import Server, ServerCreatePublicNetwork

from bigfleet_provider_hetzner import seed
from bigfleet_provider_hetzner.errors import of_code
from bigfleet_provider_hetzner.options import HetznerOptions
from bigfleet_provider_hetzner.project import PAGE, Project
from bigfleet_providerkit import (
    Binding,
    Gone,
    Host,
    InvalidRequest,
    Launch,
    Offering,
    Power,
    Retryable,
    SourceData,
    Unauthorized,
)
from bigfleet_providerkit.calls.lookups import numbered_pages
from bigfleet_providerkit.codec.tags import MANAGED, PROVIDER
from bigfleet_providerkit.hostexec.substrates import SshSubstrate
from bigfleet_providerkit.kit import Kit

POWER = {
    "initializing": Power.STARTING,
    "starting": Power.STARTING,
    "running": Power.RUNNING,
    "migrating": Power.RUNNING,
    "rebuilding": Power.RUNNING,
    "stopping": Power.STOPPED,
    "off": Power.STOPPED,
    "deleting": Power.ENDING,
}


class HetznerSubstrate(SshSubstrate):
    """The servers of one project that carry our label."""

    def __init__(self, kit: Kit, client: Client, options: HetznerOptions) -> None:
        super().__init__(kit, options)
        self._client = client
        self._options = options
        self._project = Project(kit, client, options)
        self._servers_in_project = 0

    async def launch(self, order: Launch) -> Host:
        """Create one server and return when it runs."""
        arguments = await self._arguments(order)
        try:
            made = await self._kit.call("CreateServer", self._client.servers.create, **arguments)
        except InvalidRequest as error:
            if not str(error).startswith("uniqueness_error"):
                raise
            return await self._kit.until_running(await self._made_before(order, error))
        try:
            return await self._kit.until_running(Host(str(made.server.id)))
        except Gone as error:
            await self._explain_end(made.action.id)
            raise error from None

    async def terminate(self, host: Host) -> None:
        """Return when the server is gone; its disk and its addresses go with it."""
        server = Server(id=int(host.ref))
        await self._kit.call("DeleteServer", self._client.servers.delete, server)
        await self._kit.until_gone(host)

    async def list_managed(self, refs: Sequence[str] | None = None) -> Sequence[Host]:
        """All servers with our label, or exactly these."""
        if refs is None:
            codec = self._kit.codec
            managed, ours = codec.key(MANAGED), codec.key(PROVIDER)
            label = f"{managed}=true,{ours}={codec.encode(self._kit.label)}"
            return [self._read(row) for row in await self._pages(label_selector=label)]
        if len(refs) <= max(1, -(-self._servers_in_project // PAGE)):
            found = await asyncio.gather(*(self._get(ref) for ref in refs))
            return [self._read(row) for row in found if row is not None]
        wanted, rows = set(refs), await self._pages()
        self._servers_in_project = len(rows)
        return [self._read(row) for row in rows if str(row.id) in wanted]

    async def ensure_running(self, host: Host) -> None:
        """Power a server on that is off; no effect on a running one."""
        await self._kit.call("PowerOn", self._client.servers.power_on, Server(id=int(host.ref)))
        await self._kit.until_running(host)

    async def set_binding(self, host: Host, binding: Binding) -> None:
        """Write our labels. The API replaces all of them, so those of others are sent along."""
        row = await self._kit.call("GetServer", self._client.servers.get_by_id, int(host.ref))
        labels = self._kit.codec.merged(row.labels or {}, binding)
        await self._kit.call("UpdateLabels", self._client.servers.update, row, labels=labels)

    async def read_types(self) -> SourceData:
        """Live prices and shapes, from one listing."""
        return seed.live(await self._project.server_types())

    async def accept(self, offerings: Sequence[Offering]) -> None:
        """Refuse offerings that no Create could fulfil."""
        await self._project.accept(offerings)

    async def missing_permissions(self) -> Sequence[str]:
        """Whether the token may write: it tries to delete a server that cannot exist."""
        try:
            await self._kit.call("DeleteServer", self._client.servers.delete, Server(id=0))
        except Unauthorized as error:
            return [str(error)]
        except (Gone, InvalidRequest):
            pass
        return []

    async def aclose(self) -> None:
        """Let go of the connections."""
        await super().aclose()
        self._client._client._session.close()

    async def _arguments(self, order: Launch) -> dict[str, Any]:
        project, ipv4 = self._project, self._options.public_ipv4
        return {
            "name": order.name,
            "server_type": ServerType(name=order.instance_type),
            "image": await project.image(order.image, order.arch),
            "location": Location(name=order.zone),
            "labels": dict(order.tags),
            "user_data": order.user_data,
            "ssh_keys": [await project.ssh_key()],
            "networks": await project.networks() or None,
            "firewalls": await project.firewalls() or None,
            "placement_group": await project.placement_group(order.placement_group),
            "public_net": ServerCreatePublicNetwork(enable_ipv4=ipv4, enable_ipv6=True),
        }

    async def _made_before(self, order: Launch, error: InvalidRequest) -> Host:
        """The server that an earlier attempt of this order made; else the name is not ours."""
        row = await self._kit.call("ListServers", self._client.servers.get_by_name, order.name)
        if row is None:
            raise Retryable(f"server {order.name} exists but is not listed yet", refused=True)
        host, ours = self._read(row), self._kit.codec.ours(row.labels or {})
        made_for = (host.machine_id, host.operation_id)
        if not ours or made_for != (order.machine_id, order.operation_id):
            raise InvalidRequest(
                f"{error}; server {row.id} has this name and is not the host of {order.machine_id}"
            )
        return host

    async def _explain_end(self, action: int) -> None:
        """The API takes an order and may fail it later; its action says why."""
        shown = await self._kit.call("GetAction", self._client.actions.get_by_id, action)
        if shown.status == "error":
            problem = shown.error or {}
            raise of_code(problem.get("code", ""), str(problem.get("message", ""))) from None

    async def _get(self, ref: str) -> Any:
        try:
            return await self._kit.call("GetServer", self._client.servers.get_by_id, int(ref))
        except Gone:
            return None

    async def _pages(self, **query: Any) -> list[Any]:
        """All servers that a query shows, or an error."""

        async def page(number: int) -> tuple[list[Any], int | None]:
            listed = await self._kit.call(
                "ListServers", self._client.servers.get_list, page=number, per_page=PAGE, **query
            )
            pagination = listed.meta.pagination
            return listed.servers, pagination.next_page if pagination else None

        return await numbered_pages(page)

    def _read(self, row: Any) -> Host:
        return self._kit.codec.host(
            row.labels or {}, str(row.id),
            instance_type=row.server_type.name if row.server_type else "",
            zone=row.location.name if row.location else "",
            power=POWER.get(row.status, Power.BROKEN), address=self._address(row),
            created=row.created.timestamp() if row.created else 0.0, node_name=row.name, provider_id=f"hcloud://{row.id}",
        )  # fmt: skip

    def _address(self, row: Any) -> str:
        if self._options.ssh_address == "private":
            return str(row.private_net[0].ip) if row.private_net else ""
        public = row.public_net
        shown = (public.ipv4 or public.ipv6) if public else None
        return str(shown.ip).removesuffix("/64") if shown else ""
