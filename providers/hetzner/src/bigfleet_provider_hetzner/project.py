"""What an order refers to in the project, by name: image, networks, firewalls, the SSH key.

Names are looked up once and remembered: each look is one of 3,600 calls an hour. A name that is
not there is one sentence at the start (`accept`) or the Create's InvalidRequest.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import asyncssh
from hcloud import Client

from bigfleet_provider_hetzner.options import HetznerOptions
from bigfleet_provider_hetzner.seed import ARCH
from bigfleet_providerkit import InvalidRequest, Offering, OptionError
from bigfleet_providerkit.calls.lookups import LookupCache, numbered_pages
from bigfleet_providerkit.kit import Kit

OURS = {kit: api for api, kit in ARCH.items()}
LABEL = "label:"
PAGE = 50


class Project:
    """The things of one project."""

    def __init__(self, kit: Kit, client: Client, options: HetznerOptions) -> None:
        self._kit = kit
        self._client = client
        self._options = options
        self._known = LookupCache()

    async def server_types(self) -> Sequence[Mapping[str, Any]]:
        """All server types as the API shows them."""

        async def page(number: int) -> tuple[list[Any], int | None]:
            # The API's own form: the SDK's objects have no defence against a form that changed.
            answer = await self._kit.call(
                "ServerTypes", self._client.request, "GET", "/server_types",
                params={"page": number, "per_page": PAGE},
            )  # fmt: skip
            meta = answer.get("meta", {}).get("pagination", {})
            return answer["server_types"], meta.get("next_page")

        return await numbered_pages(page)

    async def image(self, name: str, arch: str) -> Any:
        """An image of one architecture: by id, by `label:<selector>` (the newest), or by name."""

        def look() -> Any:
            images = self._client.images
            if name.isdecimal():
                return images.get_by_id(int(name))
            if name.startswith(LABEL):
                found = images.get_all(
                    label_selector=name.removeprefix(LABEL), architecture=[OURS[arch]],
                    sort=["created:desc"], status=["available"],
                )  # fmt: skip
                return found[0] if found else None
            return images.get_by_name_and_architecture(name, OURS[arch])

        missing = f"there is no image {name!r} for {arch}; check --image or the offering's image"
        return await self._once(("image", name, arch), "Images", look, missing)

    async def networks(self) -> list[Any]:
        """The networks of --networks."""
        return await self._named("networks", "Networks", self._options.networks)

    async def firewalls(self) -> list[Any]:
        """The firewalls of --firewalls."""
        return await self._named("firewalls", "Firewalls", self._options.firewalls)

    async def placement_group(self, name: str) -> Any:
        """The placement group of an order; None without one."""
        given = name or self._options.placement_group
        found = await self._named("placement_groups", "PlacementGroups", (given,) if given else ())
        return found[0] if found else None

    async def ssh_key(self) -> Any:
        """The project's entry of --ssh-key, made when it is not there.

        A server without one gets a root password by mail.
        """
        public = await asyncio.to_thread(asyncssh.read_private_key, self._options.ssh_key or "")
        text = public.export_public_key().decode().strip()
        print_of = public.get_fingerprint("md5").removeprefix("MD5:")
        keys = self._client.ssh_keys

        def look() -> Any:
            return keys.get_by_fingerprint(print_of) or keys.create(
                f"bigfleet-{self._kit.label}-{print_of[:8].replace(':', '')}", text,
                labels={self._kit.codec.key("managed"): "true"},
            )  # fmt: skip

        return await self._once(("ssh key",), "SSHKeys", look, "--ssh-key has no entry")

    async def accept(self, offerings: Sequence[Offering]) -> None:
        """Refuse offerings that no Create could fulfil, each with one sentence."""
        types = {str(row["name"]): row for row in await self.server_types()}
        try:
            await self.networks()
            await self.firewalls()
            for number, offering in enumerate(offerings, 1):
                await self._accept(f"offering {number}", offering, types)
        except InvalidRequest as error:
            raise OptionError(str(error)) from error

    async def _accept(
        self, where: str, offering: Offering, types: Mapping[str, Mapping[str, Any]]
    ) -> None:
        name, location = offering.instance_type, offering.zone
        row = types.get(name)
        if row is None:
            raise OptionError(f"{where}: there is no server type {name!r}; check the name")
        offered = sorted({str(price["location"]) for price in row["prices"]})
        if location not in offered:
            places = ", ".join(offered)
            raise OptionError(f"{where}: {name} is not sold in location {location!r}; use {places}")
        if row.get("deprecation") and offering.count:
            self._kit.log.warning("server type is deprecated", type=name, offering=where)
        if offering.disk_gb:
            raise OptionError(f"{where}: disk_gb: the disk belongs to the server type here")
        arch = ARCH[row["architecture"]]
        image = offering.image or self._options.image
        await self.image(image if isinstance(image, str) else image.get(arch, ""), arch)
        await self.placement_group(offering.placement_group)

    async def _named(self, kind: str, op: str, names: Iterable[str] | None) -> list[Any]:
        things, option = getattr(self._client, kind), kind.replace("_", "-")
        found = []
        for name in names or ():
            look = partial(things.get_by_name, name)
            missing = f"{option}: the project has no {name!r}; check the option or the offering"
            found.append(await self._once((kind, name), op, look, missing))
        return found

    async def _once(
        self, key: tuple[str, ...], op: str, look: Callable[[], Any], missing: str
    ) -> Any:
        return await self._known.get(key, lambda: self._kit.call(op, look), missing)
