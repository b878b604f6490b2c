"""The calls that are made of the API, through pydo.

The SDK's own retries are off: the kit retries and counts. For some calls it hands out the body of
a 404 like any other answer; here that is an error. Its import takes seconds and 250 MB, so it
happens when the first `Api` is made. It trusts what `SSL_CERT_FILE` names.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from bigfleet_provider_digitalocean.errors import NotFoundError

API = "https://api.digitalocean.com"
PAGE = 200
CONNECT_WITHIN_S, READ_WITHIN_S, CALL_WITHIN_S = 5, 30, 40
Body = Mapping[str, Any]


class Api:
    """One account of DigitalOcean."""

    def __init__(self, token: str, endpoint: str | None) -> None:
        from pydo.aio import Client

        self._sdk = Client(
            token, endpoint=endpoint or API, retry_total=0, timeout=CALL_WITHIN_S,
            connection_timeout=CONNECT_WITHIN_S, read_timeout=READ_WITHIN_S,
            connection_verify=os.environ.get("SSL_CERT_FILE") or True,
        )  # fmt: skip

    async def create(self, body: Body) -> Body:
        """Order one Droplet."""
        made: Body = _found(await self._sdk.droplets.create(body))["droplet"]
        return made

    async def destroy(self, ref: str) -> None:
        """Destroy a Droplet."""
        _found(await self._sdk.droplets.destroy(int(ref)))

    async def droplet(self, ref: str) -> Body:
        """One Droplet."""
        shown: Body = _found(await self._sdk.droplets.get(int(ref)))["droplet"]
        return shown

    async def droplets(self, tag: str, page: int) -> tuple[Sequence[Body], int]:
        """A page of the Droplets with a tag, and how many there are on all pages."""
        listed = self._sdk.droplets.list(tag_name=tag, per_page=PAGE, page=page)
        answer = _found(await listed)
        return answer["droplets"], int(answer["meta"]["total"])

    async def power_on(self, ref: str) -> None:
        """Begin to start a Droplet."""
        _found(await self._sdk.droplet_actions.post(int(ref), {"type": "power_on"}))

    async def create_tag(self, name: str) -> None:
        """Make a tag; one that is there already stays as it is."""
        await self._sdk.tags.create({"name": name})

    async def tag(self, ref: str, name: str) -> None:
        """Put a tag that exists on a Droplet."""
        _found(await self._sdk.tags.assign_resources(name, _resources(ref)))

    async def untag(self, ref: str, name: str) -> None:
        """Take a tag off a Droplet."""
        _found(await self._sdk.tags.unassign_resources(name, _resources(ref)))

    async def delete_tag(self, name: str) -> None:
        """Delete a tag everywhere."""
        _found(await self._sdk.tags.delete(name))

    async def tags(self, page: int) -> tuple[Sequence[Body], int]:
        """A page of the account's tags, and how many there are."""
        answer = await self._sdk.tags.list(per_page=PAGE, page=page)
        return answer["tags"], int(answer["meta"]["total"])

    async def sizes(self, page: int) -> tuple[Sequence[Any], int]:
        """A page of the sizes, and how many there are."""
        answer = await self._sdk.sizes.list(per_page=PAGE, page=page)
        return answer["sizes"], int(answer["meta"]["total"])

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._sdk.close()


def _resources(ref: str) -> Body:
    return {"resources": [{"resource_id": ref, "resource_type": "droplet"}]}


def _found(answer: Any) -> Any:
    """An answer, unless it is the body of a 404."""
    if isinstance(answer, Mapping) and answer.get("id") == "not_found":
        raise NotFoundError(str(answer.get("message", "not found")))
    return answer
