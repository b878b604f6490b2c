"""Droplets as the kit sees them: order, list, start, tag and destroy.

An order has no idempotency token and names are not unique, so it carries a tag of its own operation
and is sent once: when an answer was lost, the tag tells whether there is a Droplet. Tags belong to
the account; ours are listed by the tag of our label.
"""

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from bigfleet_provider_digitalocean.client import PAGE
from bigfleet_provider_digitalocean.options import DigitaloceanOptions
from bigfleet_provider_digitalocean.sizes import market_of
from bigfleet_provider_digitalocean.spec import USER_DATA
from bigfleet_providerkit import (
    Binding,
    Gone,
    Host,
    InvalidRequest,
    Launch,
    Litter,
    Offering,
    OptionError,
    Power,
    Retryable,
    SourceData,
)
from bigfleet_providerkit.calls.trial import Trial, failing_calls
from bigfleet_providerkit.codec.flat import FlatTags
from bigfleet_providerkit.codec.tags import CLUSTER, OPERATION, PROVIDER
from bigfleet_providerkit.hostexec.substrates import AgentSubstrate
from bigfleet_providerkit.kit import Kit

if TYPE_CHECKING:
    from bigfleet_provider_digitalocean.client import Api

T = TypeVar("T")
Row = Mapping[str, Any]
FEW = 3
"""Up to so many Droplets are read one by one; for more the list is shorter."""
WALKS = 3
TAGS_EVERY_S = 3600.0
POWER = {
    "new": Power.STARTING,
    "active": Power.RUNNING,
    "off": Power.STOPPED,
    "archive": Power.ENDING,
}
NO_SUCH_REF = "0"
"""The number of no Droplet: a call about it can only be refused."""


class DigitaloceanSubstrate(AgentSubstrate):
    """The Droplets of one account that carry our label."""

    def __init__(self, kit: Kit, api: "Api", options: DigitaloceanOptions) -> None:
        super().__init__(kit, options)
        self._api = api
        self._vpcs, self._keys, self._region = options.vpc, options.ssh_keys, options.region
        self._common_tags = options.tags
        self._tags = FlatTags(kit.codec)
        self._unused_tags: list[Litter] = []
        self._tags_due_monotonic_s = 0.0

    async def launch(self, order: Launch) -> Host:
        """Order one Droplet unless its operation has one, and return when it runs."""
        made = await self._kit.launch_once(
            order, lambda: self._ordered_before(order), lambda: self._order(order)
        )
        return await self._kit.until_running(made)

    async def terminate(self, host: Host) -> None:
        """Return when the Droplet is gone; its disk and addresses go with it, then its own tag."""
        try:
            await self._call("DeleteDroplet", lambda: self._api.destroy(host.ref))
        except Gone:
            self._kit.log.debug("droplet was gone already", ref=host.ref)
        await self._kit.until_gone(host)
        # A duplicate has the same tag, and deleting a tag takes it off every Droplet.
        if host.operation_id and await self._kit.finder.look(host.operation_id) is None:
            tag = self._tags.name(OPERATION, host.operation_id)
            try:
                await self._call("DeleteTag", lambda: self._api.delete_tag(tag))
            except Gone:
                self._kit.log.debug("tag was gone already", tag=tag)

    async def list_managed(self, refs: Sequence[str] | None = None) -> Sequence[Host]:
        """All Droplets with our label, or exactly these."""
        few = refs is not None and len(refs) <= FEW
        listed = [] if few else await self._list(self._tags.name(PROVIDER, self._kit.label))
        if refs is None:
            ours = (self._read(row) for row in listed if self._is_ours(row))
            return [host for host in ours if self._region in (None, host.zone)]
        shown = {str(row["id"]): row for row in listed}
        for ref in refs:
            if ref not in shown and (row := await self._droplet(ref)) is not None:
                shown[ref] = row
        return [self._read(shown[ref]) for ref in refs if ref in shown]

    async def ensure_running(self, host: Host) -> None:
        """Start a Droplet that is off."""
        row = await self._droplet(host.ref)
        if row is not None and row["status"] == "off":
            await self._call("PowerOn", lambda: self._api.power_on(host.ref))
        await self._kit.until_running(host)

    async def set_binding(self, host: Host, binding: Binding) -> None:
        """Write our tags; tags of others stay."""
        row = await self._call("GetDroplet", lambda: self._api.droplet(host.ref))
        present, wanted = list(row["tags"]), self._tags.names(self._kit.codec.tags(binding))
        clusters = self._tags.name(CLUSTER, "")
        for name in present:
            if name.startswith(clusters) and name not in wanted:
                await self._call("Untag", partial(self._api.untag, host.ref, name))
        for name in wanted:
            if name not in present:
                await self._add_tag(host.ref, name)

    async def leftovers(self) -> Sequence[Litter]:
        """Tags of our operations that no Droplet has: one that ended by itself keeps its tag. The
        list of tags is long, so it is read once an hour."""
        now = self._kit.clock.monotonic()
        if now >= self._tags_due_monotonic_s:
            self._unused_tags = [
                Litter(str(row["name"]), "tag", 0.0, operation)
                for row in await self._pages("ListTags", self._api.tags)
                if (operation := self._operation_of(row)) and not row["resources"]["count"]
            ]
            self._tags_due_monotonic_s = now + TAGS_EVERY_S
        return self._unused_tags

    async def discard(self, litter: Litter) -> None:
        """Delete a tag."""
        with contextlib.suppress(Gone):
            await self._call("DeleteTag", lambda: self._api.delete_tag(litter.ref))
        self._unused_tags = [one for one in self._unused_tags if one.ref != litter.ref]

    async def market(self) -> SourceData:
        """Prices and shapes of all sizes."""
        return market_of(await self._pages("Sizes", self._api.sizes))

    async def accept(self, offerings: Sequence[Offering]) -> None:
        """Refuse what Droplets cannot have."""
        for number, offering in enumerate(offerings, 1):
            where = f"offering {number}: {offering.instance_type} in {offering.zone}"
            for field in ("disk_gb", "reservation", "placement_group"):
                if getattr(offering, field):
                    raise OptionError(f"{where}: Droplets have no {field}; remove it")
            if self._region not in (None, offering.zone):
                raise OptionError(
                    f"{where}: this process serves --region {self._region} only; remove the "
                    "offering or the option"
                )
            for key, value in {**self._common_tags, **offering.tags}.items():
                if self._kit.codec.encode(f"{key}:{value}") != f"{key}:{value}":
                    raise OptionError(
                        f"{where}: the tag {key}:{value} does not fit: a-z, 0-9, :, - and _"
                    )

    async def missing_permissions(self) -> Sequence[str]:
        """The scopes that the token lacks, found by calls that can change nothing."""
        no_tag = "bigfleet-check"
        trials: list[Trial] = [
            ("CreateDroplet", lambda: self._api.create({})),
            ("DeleteDroplet", lambda: self._api.destroy(NO_SUCH_REF)),
            ("GetDroplet", lambda: self._api.droplet(NO_SUCH_REF)),
            ("PowerOn", lambda: self._api.power_on(NO_SUCH_REF)),
            ("Tag", lambda: self._api.tag(NO_SUCH_REF, no_tag)),
            ("Untag", lambda: self._api.untag(NO_SUCH_REF, no_tag)),
            ("ListTags", lambda: self._api.tags(1)),
            ("Sizes", lambda: self._api.sizes(1)),
        ]
        counted = [(op, partial(self._call, op, attempt)) for op, attempt in trials]
        return await failing_calls(counted, lambda error: isinstance(error, Gone | InvalidRequest))

    async def aclose(self) -> None:
        """Let go of agents and connections."""
        await super().aclose()
        await self._api.aclose()

    async def _order(self, order: Launch) -> Host:
        user_data = self.user_data(order)
        if len(user_data.encode()) > USER_DATA:
            raise InvalidRequest(
                f"user data with the agent has {len(user_data.encode())} bytes, {USER_DATA} fit: "
                "shorten --base-user-data, the offering's user_data or the chain in --bootstrap-ca"
            )
        body: dict[str, Any] = {
            "name": order.name,
            "region": order.zone,
            "size": order.instance_type,
            "image": int(order.image) if order.image.isdecimal() else order.image,
            "tags": self._tags.names(order.tags),
            "user_data": user_data,
        }
        if vpc := order.extra.get("vpc_uuid") or self._vpcs.get(order.zone):
            body["vpc_uuid"] = vpc
        if self._keys:
            body["ssh_keys"] = [int(key) if key.isdecimal() else key for key in self._keys]
        created = self._kit.acall("CreateDroplet", lambda: self._api.create(body), once=True)
        return self._read(await created)

    async def _ordered_before(self, order: Launch) -> Host | None:
        """The Droplet of this order; of two the older one, as reconcile decides too."""
        rows = await self._list(self._tags.name(OPERATION, order.operation_id))
        hosts = [self._read(row) for row in rows if self._is_ours(row)]
        mine = [host for host in hosts if host.machine_id == order.machine_id]
        return min(mine, key=lambda host: (host.created, int(host.ref)), default=None)

    def _operation_of(self, row: Row) -> str:
        """The operation that a tag stands for, if it is one of ours; else an empty text."""
        operation = self._kit.codec.read(self._tags.read([str(row["name"])]), OPERATION) or ""
        return operation if self._kit.own_operation(operation) else ""

    async def _add_tag(self, ref: str, name: str) -> None:
        try:
            await self._call("Tag", lambda: self._api.tag(ref, name))
        except Gone:
            # The tag does not exist yet: a Droplet makes only those that it is ordered with.
            await self._call("Tag", lambda: self._api.create_tag(name))
            await self._call("Tag", lambda: self._api.tag(ref, name))

    async def _droplet(self, ref: str) -> Row | None:
        try:
            return await self._call("GetDroplet", lambda: self._api.droplet(ref))
        except Gone:
            return None

    async def _list(self, tag: str) -> list[Row]:
        return await self._pages("ListDroplets", lambda page: self._api.droplets(tag, page))

    async def _pages(
        self, op: str, read: Callable[[int], Awaitable[tuple[Sequence[Row], int]]]
    ) -> list[Row]:
        """All pages. They are numbered: what goes meanwhile moves the rest forward, and a row could
        be missed, so the walk is made again when there are fewer rows than at its begin."""
        for _ in range(WALKS):
            rows, first_total, total, page = dict[str, Row](), -1, 1, 0
            while page * PAGE < total:
                page += 1
                part, total = await self._call(op, partial(read, page))
                first_total = total if first_total < 0 else first_total
                rows.update({_key_of(row): row for row in part})
            if total >= first_total:
                return list(rows.values())
        raise Retryable(f"{op}: the list became shorter {WALKS} times while it was read")

    async def _call(self, op: str, work: Callable[[], Awaitable[T]]) -> T:
        return await self._kit.acall(op, work)

    def _is_ours(self, row: Row) -> bool:
        return self._kit.codec.ours(self._tags.read(row["tags"]))

    def _read(self, row: Row) -> Host:
        tags = self._tags.read(row.get("tags", ()))
        networks = row.get("networks", {}).get("v4", ())
        addresses = {net["type"]: str(net["ip_address"]) for net in networks}
        ref = str(row["id"])
        return self._kit.codec.host(
            tags,
            ref,
            instance_type=str(row.get("size_slug", "")),
            zone=str(row.get("region", {}).get("slug", "")),
            power=POWER.get(str(row["status"]), Power.BROKEN),
            address=addresses.get("private") or addresses.get("public", ""),
            created=datetime.fromisoformat(str(row["created_at"])).timestamp(),
            node_name=str(row["name"]),
            provider_id=f"digitalocean://{ref}",
        )


def _key_of(row: Row) -> str:
    """What a row is known by: Droplets have an id, sizes a slug and tags a name."""
    return str(row.get("id") or row.get("slug") or row["name"])
