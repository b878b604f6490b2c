"""Asks the shard for the verdict on a need, where the shard can be reached.

The address and the id of the cluster come from options, or from the arguments of the operator's
Deployment. An address inside another network is not reached within the time limit; then the answer
of a command says so and is made of what the cluster itself knows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bigfleet.cli.errors import CommandError
from bigfleet.cli.kubectl.context import PluginOptions

if TYPE_CHECKING:
    from bigfleet.cli.ctl.calls.fleet_client import Fleet, ShardLine
    from bigfleet.cli.kubectl.cluster_reader import OperatorDeployment
    from bigfleet_api.v1alpha1 import shardread_pb2


@dataclass(frozen=True, slots=True)
class ShardPlace:
    """Which shard to ask, and about which cluster. An empty place is not asked."""

    cluster_id: str = ""
    shards: tuple[str, ...] = ()
    coordinators: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether there is anything to ask, and what to ask it about."""
        return bool(self.cluster_id and (self.shards or self.coordinators))

    def ctl(self, *words: str) -> tuple[str, ...]:
        """A command of bigfleetctl that asks the same."""
        where = [f"--shard-addr={one}" for one in self.shards]
        where += [f"--coordinator={one}" for one in self.coordinators]
        return ("bigfleetctl", *where, *words)


@dataclass(frozen=True, slots=True)
class ShardVerdicts:
    """What shards say of needs, or why they say nothing."""

    views: tuple[shardread_pb2.NeedView, ...] = ()
    problem: str = ""


def place_of(options: PluginOptions, operator: OperatorDeployment | None) -> ShardPlace:
    """Which shard to ask: options first, then the operator's Deployment."""
    cluster = options.cluster_id or (operator.cluster_id if operator else "")
    named = options.fleet
    if named.shards or named.coordinators:
        return ShardPlace(cluster, named.shards, named.coordinators)
    found = operator.shard if operator else ""
    return ShardPlace(cluster, tuple(one.strip() for one in found.split(",") if one.strip()))


async def verdicts(
    options: PluginOptions,
    place: ShardPlace,
    row: tuple[str, str, str] | None = None,
) -> ShardVerdicts:
    """The needs of the cluster as its shard sees them: all, or with remedies one, by its profile,
    group and size class."""
    if not place.is_known:
        missing = "--cluster-id" if not place.cluster_id else "--shard-addr or --coordinator"
        return ShardVerdicts(problem=f"the shard was not asked: add {missing}")
    from bigfleet.cli.ctl.calls.channels import connection
    from bigfleet.cli.ctl.calls.fleet_client import Fleet

    ctl = replace(options.fleet, coordinators=place.coordinators, shards=place.shards)
    wires = connection(ctl)
    try:
        async with Fleet(ctl, wires) as fleet:
            found = await _ask(fleet, place.cluster_id, row)
    except CommandError as error:
        return ShardVerdicts(problem=f"the shard could not be asked: {error}")
    # An older shard does not know these filters.
    return ShardVerdicts(tuple(view for view in found if row is None or _row_of(view) == row))


def _row_of(view: shardread_pb2.NeedView) -> tuple[str, str, str]:
    return view.profile_fingerprint, view.need.group, view.need.size_class


async def _ask(
    fleet: Fleet, cluster: str, row: tuple[str, str, str] | None
) -> list[shardread_pb2.NeedView]:
    from bigfleet.cli.ctl.calls.fleet_client import each
    from bigfleet_api.v1alpha1 import shardread_pb2 as pb

    profile, group, size_class = row or ("", "", "")
    request = pb.InspectNeedsRequest(
        cluster_id=cluster,
        profile_fingerprint=profile,
        group=group,
        size_class=size_class,
        with_remedies=row is not None,
    )

    async def inspect(line: ShardLine) -> list[pb.NeedView]:
        frames = line.stream(line.read.InspectNeeds, request)
        return [frame.need async for frame in frames if frame.HasField("need")]

    replies = await each(await fleet.shards(), inspect)
    failed = [reply.trouble for reply in replies if reply.trouble is not None]
    if failed and len(failed) == len(replies):
        raise failed[0]
    return [view for reply in replies for view in reply.answer or ()]
