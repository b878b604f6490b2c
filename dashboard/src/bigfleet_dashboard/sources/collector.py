"""Everything that gathers, for as long as the dashboard runs.

The coordinator says which shards there are; each gets a task that ends when the shard is removed.
Shards named by address are asked for their id first. No source waits for another.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import aiohttp
import grpc.aio

from bigfleet_api.v1alpha1 import shardread_pb2 as pb
from bigfleet_api.v1alpha1 import shardread_pb2_grpc as rpc
from bigfleet_base.addresses import AddressError, shard_address
from bigfleet_dashboard.config import Config
from bigfleet_dashboard.cost import spend_per_hour
from bigfleet_dashboard.errors import SourceError
from bigfleet_dashboard.sources.channels import Channels
from bigfleet_dashboard.sources.clusters import ClusterObjects
from bigfleet_dashboard.sources.coordinator import CoordinatorReads, error_text
from bigfleet_dashboard.sources.pages import PageReader
from bigfleet_dashboard.sources.prometheus import Prometheus
from bigfleet_dashboard.sources.shards import ShardWatch
from bigfleet_dashboard.state.fleet import Fleet
from bigfleet_dashboard.state.history import EVERY_SECONDS
from bigfleet_dashboard.state.source_health import FAILING, OFF, OK, WAITING

_log = logging.getLogger(__name__)
_ASK_SECONDS: Final = 4.0


class Collector:
    """All sources of one dashboard."""

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self._config, self._fleet = config, fleet
        self.channels = Channels(config.tls)
        self._watches: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Until cancelled."""
        config, fleet = self._config, self._fleet
        # Told before the first answer, so that a page never shows nothing at all.
        fleet.sources.tell("coordinator", WAITING, "not asked yet")
        try:
            async with aiohttp.ClientSession(trust_env=False) as http, asyncio.TaskGroup() as group:
                pages = PageReader(fleet, http, dict(config.shard_http))
                clusters = ClusterObjects(fleet, http, config.clusters, config.cluster_token_file)
                for each in (
                    self._coordinating(),
                    self._named(),
                    pages.run(),
                    Prometheus(fleet, http, config.prometheus).run(),
                    clusters.run(),
                    self._sampling(),
                ):
                    group.create_task(each)
        finally:
            for task in self._watches.values():
                task.cancel()
            await asyncio.gather(*self._watches.values(), return_exceptions=True)
            await self.channels.close()

    async def _coordinating(self) -> None:
        fleet, addresses = self._fleet, self._config.coordinators
        if not addresses:
            fleet.sources.tell(
                "coordinator",
                OFF,
                "not configured",
                "start the dashboard with --coordinator HOST:PORT",
            )
            return
        reads = CoordinatorReads(self.channels, addresses)
        while True:
            try:
                view = await reads.read(fleet.clock())
            except SourceError as error:
                remedy = "check that it runs; shards keep deciding without it"
                fleet.sources.tell("coordinator", FAILING, str(error), remedy)
            else:
                fleet.coordinator = view
                fleet.sources.tell("coordinator", OK, f"{view.leader} leads")
                self._follow({entry.shard_id: entry.address for entry in view.shards})
            fleet.changed()
            await asyncio.sleep(self._config.poll_seconds)

    async def _named(self) -> None:
        """Shards that were named by address: asked for their id until they say it."""
        waiting = list(self._config.shards)
        while waiting:
            for address in list(waiting):
                stub = rpc.ShardAdminStub(self.channels.to(address))
                try:
                    status = await stub.GetStatus(pb.GetStatusRequest(), timeout=_ASK_SECONDS)
                except grpc.aio.AioRpcError as error:
                    self._fleet.sources.tell(
                        f"shard {address}", FAILING, error_text(error), "check it"
                    )
                    continue
                self._fleet.sources.tell(f"shard {address}", OK, f"is {status.shard_id}")
                self._watch(status.shard_id, address)
                waiting.remove(address)
            await asyncio.sleep(self._config.poll_seconds)

    def _follow(self, registered: dict[str, str]) -> None:
        for shard_id, address in registered.items():
            self._watch(shard_id, address)
        named = {
            s.shard_id for s in self._fleet.shards.values() if s.address in self._config.shards
        }
        for shard_id in set(self._watches) - set(registered) - named:
            self._watches.pop(shard_id).cancel()
            self._fleet.forget_shard(shard_id)

    def _watch(self, shard_id: str, address: str) -> None:
        shard = self._fleet.shard(shard_id, address)
        try:
            shard_address(shard_id, address, "--shard")
        except AddressError as error:
            shard.failed(str(error), 0.0)
            return
        task = self._watches.get(shard_id)
        if task is None or task.done():
            watch = ShardWatch(self._fleet, shard, self.channels, self._config.poll_seconds)
            self._watches[shard_id] = asyncio.create_task(watch.run(), name=f"shard {shard_id}")
            self._watches[shard_id].add_done_callback(_say_why)

    async def _sampling(self) -> None:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            # Here and not where the coordinator is asked: a fleet may have none.
            self.channels.look_again()
            self._fleet.sample(spend_per_hour(self._fleet.map))


def _say_why(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _log.error(
            "watching ended", extra={"task": task.get_name(), "error": str(task.exception())}
        )
