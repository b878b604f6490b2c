"""What a coordinator assigned besides domains: quotas, and the providers to dial.

Kept on disk with a checksum, so that a shard that restarts while the coordinator is away still
knows whom to dial and what it may hold. Providers given by flags need no coordinator and stay
whatever it says.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Callable, Iterable
from typing import Final

from bigfleet.observe.process import Offload
from bigfleet.provider import Providers, ProviderSite, SiteError
from bigfleet.shard.errors import DataFileError
from bigfleet.shard.ports import Disk
from bigfleet.shard.state.state_file import StateFile
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

FILE: Final = "assignments"
_MARK: Final = b"BFA1"
"""Begins a file with a checksum. No message of ours begins with these bytes, so a file of an older
release, which is the message alone, is known by their absence."""
_SUM_BYTES: Final = 4
_REMEDY: Final = "restore the file from a backup while the coordinator is away"
_log = logging.getLogger(__name__)


class Assignments:
    """The last assignments heard, and the providers that follow from them."""

    def __init__(
        self, shard_id: str, fixed: Iterable[ProviderSite], disk: Disk, offload: Offload
    ) -> None:
        self._shard_id = shard_id
        self._fixed = {site.name: site for site in fixed}
        self._file = StateFile(disk, FILE, _encoded, _decoded, _REMEDY)
        self._offload = offload
        self._now = pb.ShardAssignments()
        self._changed = asyncio.Event()
        self._changed.set()

    def load(self) -> None:
        """What was assigned before the restart. Blocking."""
        try:
            self._now = self._file.load() or self._now
        except DataFileError as error:
            _log.error(
                "assignments in the data directory cannot be used; until the coordinator sends "
                "them again, only the providers given by flags are dialled: %s",
                error,
                extra={"file": FILE, "bytes": self._file.size, "error": str(error.__cause__)},
            )

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters bound to this shard."""
        return tuple(self._now.clusters)

    def quotas(self) -> dict[tuple[str, str], int]:
        """(provider, region) -> how many of its slots may be outside Speculative."""
        return {
            (quota.provider, quota.region): quota.per_shard.get(self._shard_id, 0)
            for quota in self._now.quotas
        }

    def sites(self) -> list[ProviderSite]:
        """The providers to dial; a name given by a flag is the flag's."""
        sites = dict(self._fixed)
        for entry in self._now.providers:
            try:
                site = ProviderSite(entry.name, entry.address, entry.region)
            except SiteError as error:
                _log.warning("registered provider cannot be dialled", extra={"error": str(error)})
                continue
            sites.setdefault(site.name, site)
        return list(sites.values())

    def take(self, assignments: pb.ShardAssignments) -> None:
        """Newer assignments; they are complete."""
        self._now = assignments
        self._changed.set()

    async def follow(self, providers: Providers, changed: Callable[[], None]) -> None:
        """Keep disk and providers in line with what is assigned, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await providers.use(self.sites())
            changed()
            if self._now.ByteSize():
                try:
                    await self._file.write(self._now, self._offload)
                except OSError as error:
                    _log.warning("assignments are not written: %s", error)


def _encoded(assignments: pb.ShardAssignments) -> bytes:
    body = assignments.SerializeToString()
    return _MARK + zlib.crc32(body).to_bytes(_SUM_BYTES) + body


def _decoded(content: bytes) -> pb.ShardAssignments:
    """ValueError where it is not what was written."""
    if not content:
        raise ValueError("the file is empty")
    if not content.startswith(_MARK):
        return pb.ShardAssignments.FromString(content)
    at = len(_MARK) + _SUM_BYTES
    body = content[at:]
    if zlib.crc32(body).to_bytes(_SUM_BYTES) != content[len(_MARK) : at]:
        raise ValueError("it does not match its checksum")
    return pb.ShardAssignments.FromString(body)
