"""The agent that this cloud has in its hosts: writes files and runs scripts on request.

It is what the kit's guest channel needs to carry the bootstrap data to a host and the hook's exit
code back. A cloud without one uses another of the kit's channels: SSH, an agent that polls, or a
command API.
"""

from functools import partial

from bigfleet_provider_template.client import CloudClient
from bigfleet_providerkit.hostexec.channels.guest import GuestStatus
from bigfleet_providerkit.kit import Kit
from bigfleet_providerkit.substrate import Host, HostResult


class CloudGuest:
    """Reaches into hosts through the cloud's API."""

    def __init__(self, kit: Kit, cloud: CloudClient) -> None:
        self._kit = kit
        self._cloud = cloud

    async def write_file(self, host: Host, path: str, data: bytes, *, append: bool) -> None:
        """Write or extend a file that only root can read."""
        where, query = f"/v1/hosts/{host.ref}/files", {"path": path, "append": str(int(append))}
        await self._kit.acall("WriteFile", partial(self._cloud.upload, where, data, query))

    async def execute(self, host: Host, script: str) -> str:
        """Start a script; the id of the command."""
        where, body = f"/v1/hosts/{host.ref}/commands", {"script": script}
        begun = await self._kit.acall("RunCommand", partial(self._cloud.post, where, body))
        return str(begun["id"])

    async def status(self, host: Host, handle: str) -> GuestStatus:
        """How far the command is."""
        where = f"/v1/commands/{handle}"
        shown = await self._kit.acall("GetCommand", partial(self._cloud.get, where))
        if not shown["done"]:
            return GuestStatus(None)
        return GuestStatus(HostResult(int(shown["exit_code"]), stderr=str(shown["stderr"])))
