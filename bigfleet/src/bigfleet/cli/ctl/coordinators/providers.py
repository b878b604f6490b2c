"""The registry of providers: whom shards dial for machines."""

from __future__ import annotations

from typing import Annotated

import typer

from bigfleet.cli.ctl.context import addresses, ctl_of, run
from bigfleet.cli.ctl.render.rows import ListingColumn, print_done, print_listing
from bigfleet.cli.errors import InputError


def list_providers(ctx: typer.Context) -> None:
    """List the registered providers."""
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    ctl = ctl_of(ctx)
    request = pb.ListProvidersRequest()
    answer = run(ctl, lambda f: f.coordinator.call(lambda s: s.ListProviders, request))
    columns: list[ListingColumn[pb.ProviderEntry]] = [
        ListingColumn("name", lambda e: e.name, "provider"),
        ListingColumn("address", lambda e: e.address, "address"),
        ListingColumn("region", lambda e: e.region, "region"),
        ListingColumn(
            "shards", lambda e: list(e.shards), "shards", lambda e: ", ".join(e.shards) or "all"
        ),
    ]
    empty = (
        "No provider is registered here: shards have those they were started with "
        "(--provider-addr). `bigfleetctl register-provider` gives one to all of them."
    )
    print_listing(ctl, "providers", list(answer.providers), columns, empty)


def register_provider(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Its name; one of that name is replaced.")],
    address: Annotated[str, typer.Argument(help="Where shards dial it.", metavar="HOST:PORT")],
    region: Annotated[str, typer.Option("--region", help="The region of its machines.")] = "",
    shard: Annotated[
        list[str] | None,
        typer.Option("--shard", help="A shard that uses it; may be repeated; none means all."),
    ] = None,
) -> None:
    """Insert a provider, or replace the one of that name."""
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    ctl = ctl_of(ctx)
    where = addresses([address], "NAME")
    if len(where) != 1:
        raise InputError(f"{address!r} is not one address: write host:port")
    shards = sorted(set(shard or ()))
    entry = pb.ProviderEntry(name=name, address=where[0], region=region, shards=shards)
    request = pb.RegisterProviderRequest(provider=entry)
    run(ctl, lambda f: f.coordinator.call(lambda s: s.RegisterProvider, request))
    whose = f"shards {', '.join(shards)}" if shards else "all shards"
    print_done(
        ctl,
        f"Provider {name} at {where[0]} is registered for {whose}.",
        "register-provider",
        name=name,
        address=where[0],
        region=region,
        shards=shards,
    )


def remove_provider(
    ctx: typer.Context, name: Annotated[str, typer.Argument(help="Its name.")]
) -> None:
    """Forget a provider. Its machines stay as they are."""
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    ctl = ctl_of(ctx)
    request = pb.RemoveProviderRequest(name=name)
    run(ctl, lambda f: f.coordinator.call(lambda s: s.RemoveProvider, request))
    print_done(ctl, f"Provider {name} is removed.", "remove-provider", name=name)
