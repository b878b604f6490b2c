"""Shards and clusters, as the coordinator has them: list, bind, forget, remove."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bigfleet.cli.ctl.context import ctl_of, run
from bigfleet.cli.ctl.render.formats import ago, moment
from bigfleet.cli.ctl.render.rows import ListingColumn, print_done, print_listing
from bigfleet.cli.errors import InputError

if TYPE_CHECKING:
    from bigfleet.cli.ctl.calls.fleet_client import Fleet
    from bigfleet.cli.ctl.calls.refusals import Peer


def list_shards(ctx: typer.Context) -> None:
    """List the registered shards and when each reported last."""
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    ctl = ctl_of(ctx)
    now = ctl.edge.now()
    answer = run(ctl, lambda f: f.coordinator.call(lambda s: s.ListShards, pb.ListShardsRequest()))
    columns: list[ListingColumn[pb.ShardRegistryEntry]] = [
        ListingColumn("shard_id", lambda e: e.shard_id, "shard"),
        ListingColumn("address", lambda e: e.address, "address"),
        ListingColumn(
            "last_heartbeat",
            lambda e: moment(e.last_heartbeat_unix_ns),
            "reported",
            lambda e: ago(e.last_heartbeat_unix_ns, now),
        ),
        ListingColumn(
            "registered_at",
            lambda e: moment(e.registered_at_unix_ns),
            "registered",
            lambda e: ago(e.registered_at_unix_ns, now),
        ),
    ]
    empty = "No shard has registered: start one with `bigfleet shard --coordinator-addr ...`."
    print_listing(ctl, "shards", list(answer.shards), columns, empty)


def remove_shard(
    ctx: typer.Context, shard: Annotated[str, typer.Argument(help="The shard's id.")]
) -> None:
    """Forget a shard, with its clusters, domains and quota slices.

    One that lives registers again with its next report.
    """
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    ctl = ctl_of(ctx)
    request = pb.RemoveShardRequest(shard_id=shard)
    run(ctl, lambda f: f.coordinator.call(lambda s: s.RemoveShard, request))
    print_done(
        ctl,
        f"Shard {shard} is removed, with its clusters, domains and quota slices. If it lives, it "
        "registers again with its next report.",
        "remove-shard",
        shard_id=shard,
    )


def list_clusters(
    ctx: typer.Context,
    shard: Annotated[str, typer.Option("--shard", help="Only clusters of this shard.")] = "",
) -> None:
    """List the clusters and the shard each belongs to."""
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    ctl = ctl_of(ctx)
    now = ctl.edge.now()

    async def ask(fleet: Fleet) -> list[pb.ClusterBinding]:
        request = pb.ListClustersRequest()
        answer = await fleet.coordinator.call(lambda s: s.ListClusters, request)
        found = [entry for entry in answer.clusters if shard in ("", entry.shard_id)]
        if shard and not found:
            await fleet.check_shard(shard)
        return found

    rows = run(ctl, ask)
    columns: list[ListingColumn[pb.ClusterBinding]] = [
        ListingColumn("cluster_id", lambda e: e.cluster_id, "cluster"),
        ListingColumn("shard_id", lambda e: e.shard_id, "shard"),
        ListingColumn(
            "bound_at",
            lambda e: moment(e.bound_at_unix_ns),
            "bound",
            lambda e: ago(e.bound_at_unix_ns, now),
        ),
    ]
    empty = f"No cluster is bound to {f'shard {shard}' if shard else 'a shard'} yet."
    print_listing(ctl, "clusters", rows, columns, empty)


def bind_cluster(
    ctx: typer.Context,
    cluster: Annotated[str, typer.Argument(help="The cluster's id.")],
    shard: Annotated[str, typer.Argument(help="The shard it is to belong to.")],
) -> None:
    """Record that a cluster belongs to a shard.

    Its sessions stay where its operator dials.
    """
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    ctl = ctl_of(ctx)
    request = pb.BindClusterRequest(cluster_id=cluster, shard_id=shard)
    run(ctl, lambda f: f.coordinator.call(lambda s: s.BindCluster, request))
    print_done(
        ctl,
        f"Cluster {cluster} belongs to shard {shard}. Its operator must dial that shard as well.",
        "bind-cluster",
        cluster_id=cluster,
        shard_id=shard,
    )


def forget_cluster(
    ctx: typer.Context,
    cluster: Annotated[str, typer.Argument(help="The cluster's id.")],
    shard: Annotated[str, typer.Option("--shard", help="The shard that knows it.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Drop the demand of a cluster that is gone for good, so that its machines may be reclaimed.

    Refused while the cluster has a session.
    """
    from bigfleet_api.v1alpha1 import shardread_pb2 as pb

    ctl = ctl_of(ctx)
    ctl.confirmed(f"Forget cluster {cluster}? All its machines may then be reclaimed.", yes)
    request = pb.ForgetClusterRequest(cluster_id=cluster, confirm=True)

    async def forget(fleet: Fleet) -> Peer:
        line = await fleet.shard(shard or await _home(fleet, cluster))
        await line.call(line.admin.ForgetCluster, request)
        return line.peer

    peer = run(ctl, forget)
    print_done(
        ctl,
        f"Shard {peer.title} has forgotten cluster {cluster}; its machines may be reclaimed.",
        "forget-cluster",
        cluster_id=cluster,
        shard=peer.title,
    )


async def _home(fleet: Fleet, cluster: str) -> str:
    """The shard a cluster belongs to; empty where there is only one to choose from."""
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    if not fleet.has_coordinator or fleet.names_shards:
        return ""
    answer = await fleet.coordinator.call(lambda s: s.ListClusters, pb.ListClustersRequest())
    for entry in answer.clusters:
        if entry.cluster_id == cluster:
            return entry.shard_id
    raise InputError(
        f"the coordinator knows no cluster {cluster!r}: see `bigfleetctl list-clusters`, or say "
        "which shard with --shard"
    )
