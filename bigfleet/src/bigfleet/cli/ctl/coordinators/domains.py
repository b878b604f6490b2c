"""Topology domains and the shards they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bigfleet.cli.ctl.context import ctl_of, run
from bigfleet.cli.ctl.render.rows import ListingColumn, print_done, print_listing
from bigfleet.cli.errors import InputError

if TYPE_CHECKING:
    from bigfleet.cli.ctl.calls.fleet_client import Fleet

_Domain = Annotated[str, typer.Argument(help="The domain.", metavar="KEY=VALUE")]


def list_domain_assignments(
    ctx: typer.Context,
    shard: Annotated[str, typer.Option("--shard", help="Only domains of this shard.")] = "",
) -> None:
    """List the topology domains that belong to a shard."""
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    ctl = ctl_of(ctx)

    async def ask(fleet: Fleet) -> list[pb.DomainAssignment]:
        request = pb.ListDomainAssignmentsRequest()
        answer = await fleet.coordinator.call(lambda s: s.ListDomainAssignments, request)
        found = [entry for entry in answer.assignments if shard in ("", entry.shard_id)]
        if shard and not found:
            await fleet.check_shard(shard)
        return found

    rows = run(ctl, ask)
    columns: list[ListingColumn[pb.DomainAssignment]] = [
        ListingColumn("shard_id", lambda e: e.shard_id, "shard"),
        ListingColumn("topology_key", lambda e: e.topology_key, "label"),
        ListingColumn("topology_value", lambda e: e.topology_value, "domain"),
    ]
    empty = (
        f"No domain is assigned to shard {shard}."
        if shard
        else "No domain is assigned: shards are not restricted to domains."
    )
    print_listing(ctl, "assignments", rows, columns, empty)


def assign_domain(
    ctx: typer.Context,
    domain: _Domain,
    shard: Annotated[str, typer.Argument(help="The shard that gets it.")],
) -> None:
    """Give a topology domain to a shard. Refused when another shard has it."""
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    ctl = ctl_of(ctx)
    key, value = _split(domain)
    request = pb.AssignDomainRequest(topology_key=key, topology_value=value, shard_id=shard)
    run(ctl, lambda f: f.coordinator.call(lambda s: s.AssignDomain, request))
    print_done(
        ctl,
        f"Domain {key}={value} belongs to shard {shard}, which learns it with its next report.",
        "assign-domain",
        topology_key=key,
        topology_value=value,
        shard_id=shard,
    )


def unassign_domain(ctx: typer.Context, domain: _Domain) -> None:
    """Take a topology domain from its shard. Fine when it has none."""
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    ctl = ctl_of(ctx)
    key, value = _split(domain)
    request = pb.UnassignDomainRequest(topology_key=key, topology_value=value)
    run(ctl, lambda f: f.coordinator.call(lambda s: s.UnassignDomain, request))
    print_done(
        ctl,
        f"Domain {key}={value} belongs to no shard in particular.",
        "unassign-domain",
        topology_key=key,
        topology_value=value,
    )


def _split(domain: str) -> tuple[str, str]:
    key, _, value = domain.partition("=")
    if not key or not value:
        raise InputError(
            f"{domain!r} is not a domain: write it like topology.kubernetes.io/zone=eu-1a"
        )
    return key, value
