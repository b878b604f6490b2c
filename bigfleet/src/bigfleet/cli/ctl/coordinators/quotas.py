"""How many machines of a provider and region each shard may hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from bigfleet.cli.ctl.context import ctl_of, run
from bigfleet.cli.ctl.groups import complain
from bigfleet.cli.ctl.render.rows import ListingColumn, print_done, print_listing
from bigfleet.cli.errors import InputError

if TYPE_CHECKING:
    from bigfleet.cli.ctl.calls.fleet_client import Fleet

Pool: TypeAlias = tuple[str, str]
"""A provider and a region."""
_MOST: Final = 2**31 - 1


def list_quotas(ctx: typer.Context) -> None:
    """List how the machines of each provider and region are divided among shards."""
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    ctl = ctl_of(ctx)
    answer = run(ctl, lambda f: f.coordinator.call(lambda s: s.ListQuotas, pb.ListQuotasRequest()))
    columns: list[ListingColumn[pb.QuotaAllocation]] = [
        ListingColumn("provider", lambda e: e.provider, "provider"),
        ListingColumn("region", lambda e: e.region, "region"),
        ListingColumn("total", lambda e: sum(e.per_shard.values()), "total>"),
        ListingColumn(
            "per_shard",
            lambda e: dict(sorted(e.per_shard.items())),
            "per shard",
            lambda e: _shares(dict(e.per_shard)),
        ),
    ]
    empty = "No quota is set: every shard may draw as much as its providers have."
    print_listing(ctl, "quotas", list(answer.allocations), columns, empty)


def set_quota(
    ctx: typer.Context,
    provider: Annotated[str, typer.Argument(help="Name of the provider.")],
    shares: Annotated[
        list[str] | None, typer.Argument(help="A shard and its number.", metavar="[SHARD=N]...")
    ] = None,
    region: Annotated[str, typer.Option("--region", help="The region; may be empty.")] = "",
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the allocation: no limit any more.")
    ] = False,
) -> None:
    """Set the whole allocation of one provider and region.

    A shard that is not named may draw none.
    """
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    ctl = ctl_of(ctx)
    numbers: dict[str, int] = {}
    for shard, number in map(_share, shares or ()):
        if shard in numbers:
            raise InputError(f"shard {shard!r} is named twice: give each shard one number")
        numbers[shard] = number
    if bool(numbers) == remove:
        raise InputError("name shards and their numbers (s-1=100 s-2=50), or --remove, not both")
    request = pb.SetQuotaRequest(provider=provider, region=region, per_shard=numbers)

    async def write(fleet: Fleet) -> set[Pool]:
        await fleet.coordinator.call(lambda s: s.SetQuota, request)
        return set() if remove else await _pools(fleet)

    pools = run(ctl, write)
    where = _place((provider, region))
    print_done(
        ctl,
        f"Quota of {where}: {_shares(numbers)}." if numbers else f"{where} has no quota any more.",
        "set-quota",
        provider=provider,
        region=region,
        per_shard=numbers,
    )
    if pools and (provider, region) not in pools:
        known = ", ".join(map(_place, sorted(pools)))
        complain(
            f"no shard has machines of {where} yet, so this has no effect until one does; "
            f"known: {known}"
        )


async def _pools(fleet: Fleet) -> set[Pool]:
    """Providers and regions that are registered, or that shards have slots of; none while a shard
    has not told yet what it has.
    """
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    call = fleet.coordinator.call
    registered = await call(lambda s: s.ListProviders, pb.ListProvidersRequest())
    shards = await call(lambda s: s.ListShards, pb.ListShardsRequest())
    reply = await call(lambda s: s.ListShardReports, pb.ListShardReportsRequest())
    totals = {report.shard_id: report.summary.quota_totals for report in reply.reports}
    if not all(totals.get(entry.shard_id) for entry in shards.shards):
        return set()
    return {
        *((entry.name, entry.region) for entry in registered.providers),
        *((slots.provider, slots.region) for each in totals.values() for slots in each),
    }


def _place(pool: Pool) -> str:
    provider, region = pool
    return f"{provider} in {region}" if region else provider


def _shares(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{shard} {number:,}" for shard, number in sorted(numbers.items()))


def _share(text: str) -> tuple[str, int]:
    shard, _, number = text.rpartition("=")
    if not shard or not number.isdecimal() or int(number) > _MOST:
        raise InputError(f"{text!r} is not a share: write it like s-1=100, with 0 for none")
    return shard, int(number)
