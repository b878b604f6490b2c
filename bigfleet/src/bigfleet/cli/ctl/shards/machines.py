"""Machines of shards: list them, drain one, keep one out of every decision."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bigfleet.cli.ctl.context import ctl_of, run
from bigfleet.cli.ctl.render.formats import dollars, moment, title, vector
from bigfleet.cli.ctl.render.rows import ListingColumn, print_done, print_listing, report_troubles
from bigfleet.cli.errors import InputError
from bigfleet.cli.output import out, plain

if TYPE_CHECKING:
    from bigfleet.cli.ctl.calls.fleet_client import Fleet, ShardLine, ShardReply
    from bigfleet.cli.ctl.calls.refusals import Peer
    from bigfleet_api.v1alpha1 import provider_pb2

MOST_ROWS: Final = 200
"""A person is shown no more unless asked for."""

_OneShard = Annotated[
    str, typer.Option("--shard", help="The shard that has it; needed when there are several.")
]
_Machine = Annotated[str, typer.Argument(help="The machine's id.")]


class State(StrEnum):
    """Where a machine stands, in the order of its life."""

    SPECULATIVE = "speculative"
    CREATING = "creating"
    IDLE = "idle"
    CONFIGURING = "configuring"
    CONFIGURED = "configured"
    DRAINING = "draining"
    DELETING = "deleting"
    FAILED = "failed"


def list_machines(
    ctx: typer.Context,
    shard: Annotated[
        list[str] | None, typer.Option("--shard", help="Only this shard's; may be repeated.")
    ] = None,
    state: Annotated[
        list[State] | None,
        typer.Option(
            "--state", help="Only machines in this state; may be repeated.", case_sensitive=False
        ),
    ] = None,
    cluster: Annotated[str, typer.Option("--cluster", help="Only machines of this cluster.")] = "",
    instance_type: Annotated[
        str, typer.Option("--instance-type", help="Only machines of this type.")
    ] = "",
    limit: Annotated[
        int | None, typer.Option("--limit", help="At most so many per shard; 0 means all.")
    ] = None,
) -> None:
    """List machines: state, type, zone, price, and the cluster each serves."""
    from bigfleet.cli.ctl.calls.fleet_client import each
    from bigfleet_api.v1alpha1 import shardread_pb2 as pb

    ctl = ctl_of(ctx)
    if limit is not None and limit < 0:
        raise InputError(f"--limit {limit} is negative: use 0 for all")
    most = limit if limit is not None else (MOST_ROWS if ctl.is_table else 0)
    request = pb.ListMachinesRequest(
        states=[provider_state(one) for one in state or ()],
        cluster_id=cluster,
        instance_type=instance_type,
        # One more than is shown tells whether there are more.
        limit=most + 1 if most else 0,
    )

    async def listed(line: ShardLine) -> list[provider_pb2.Machine]:
        found: list[provider_pb2.Machine] = []
        async for batch in line.stream(line.read.ListMachines, request):
            found += batch.machines
        return found

    async def ask(fleet: Fleet) -> list[ShardReply[list[provider_pb2.Machine]]]:
        return await each(await fleet.shards(shard or ()), listed)

    replies = run(ctl, ask, "listing machines")
    troubles = [one.trouble for one in replies if one.trouble is not None]
    if len(troubles) == len(replies):
        raise troubles[0]
    rows = [
        (one.peer, machine) for one in replies for machine in (one.answer or [])[: most or None]
    ]
    print_listing(ctl, "machines", rows, _columns(), "No machine is like that.")
    if ctl.is_table and most and any(len(one.answer or ()) > most for one in replies):
        out.print(plain(f"... and more than {most:,} of a shard; --limit 0 shows all", "dim"))
    report_troubles(troubles)
    if troubles:
        raise typer.Exit(1)


def drain_machine(
    ctx: typer.Context,
    machine: _Machine,
    shard: _OneShard = "",
    exclude: Annotated[
        bool, typer.Option("--exclude", help="Keep it out of every decision afterwards.")
    ] = False,
) -> None:
    """Reclaim one machine now; its pods are moved off it first."""
    from bigfleet_api.v1alpha1 import shardread_pb2 as pb

    ctl = ctl_of(ctx)
    request = pb.DrainMachineRequest(machine_id=machine, exclude=exclude)

    async def drain(fleet: Fleet) -> Peer:
        line = await fleet.shard(shard)
        await line.call(line.admin.DrainMachine, request)
        return line.peer

    peer = run(ctl, drain)
    after = " and is kept out afterwards" if exclude else ""
    print_done(
        ctl,
        f"Machine {machine} of shard {peer.title} is being drained{after}.",
        "drain-machine",
        machine_id=machine,
        shard=peer.title,
        exclude=exclude,
    )


def exclude_machine(
    ctx: typer.Context,
    machine: _Machine,
    shard: _OneShard = "",
    include: Annotated[bool, typer.Option("--include", help="Let it in again.")] = False,
) -> None:
    """Keep a machine out of every decision, or let it in again with --include."""
    from bigfleet_api.v1alpha1 import shardread_pb2 as pb

    ctl = ctl_of(ctx)
    request = pb.ExcludeMachineRequest(machine_id=machine, exclude=not include)

    async def exclude(fleet: Fleet) -> Peer:
        line = await fleet.shard(shard)
        await line.call(line.admin.ExcludeMachine, request)
        return line.peer

    peer = run(ctl, exclude)
    what = "takes part in decisions again" if include else "is kept out of every decision"
    print_done(
        ctl,
        f"Machine {machine} of shard {peer.title} {what}.",
        "exclude-machine",
        machine_id=machine,
        shard=peer.title,
        excluded=not include,
    )


def provider_state(state: State) -> provider_pb2.MachineState.ValueType:
    """A state as it is sent."""
    from bigfleet_api.v1alpha1 import provider_pb2

    return provider_pb2.MachineState.Value(f"MACHINE_STATE_{state.name}")


def _columns() -> list[ListingColumn[tuple[Peer, provider_pb2.Machine]]]:
    from bigfleet_api.v1alpha1 import provider_pb2

    states, kinds = provider_pb2.MachineState, provider_pb2.CapacityType
    return [
        ListingColumn("id", lambda row: row[1].id, "machine"),
        ListingColumn("shard", lambda row: row[0].title, "shard"),
        ListingColumn(
            "state", lambda row: title(states.Name, row[1].state, "MACHINE_STATE_"), "state"
        ),
        ListingColumn("instance_type", lambda row: row[1].instance_type, "type"),
        ListingColumn("zone", lambda row: row[1].zone, "zone"),
        ListingColumn(
            "capacity_type",
            lambda row: title(kinds.Name, row[1].capacity_type, "CAPACITY_TYPE_"),
            "capacity",
        ),
        ListingColumn(
            "price_per_hour",
            lambda row: row[1].price_per_hour,
            "$/hour>",
            lambda row: dollars(row[1].price_per_hour),
        ),
        ListingColumn("cluster", lambda row: row[1].cluster, "cluster"),
        ListingColumn("last_error", lambda row: row[1].last_error, "trouble"),
        ListingColumn("provider", lambda row: row[1].host.provider),
        ListingColumn("host", lambda row: row[1].host.ref),
        ListingColumn("interruption_probability", lambda row: row[1].interruption_probability),
        ListingColumn("interruption_at", lambda row: moment(row[1].interruption_unix_nanos)),
        ListingColumn("resources", lambda row: vector(row[1].resources)),
        ListingColumn("allocatable", lambda row: vector(row[1].allocatable)),
        ListingColumn("labels", lambda row: dict(sorted(row[1].labels.items()))),
    ]
