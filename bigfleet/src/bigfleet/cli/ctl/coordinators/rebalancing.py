"""What shards reported, what the coordinator told them, and machines on their way between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from bigfleet.cli.ctl.context import ctl_of, run
from bigfleet.cli.ctl.render.formats import ago, amount_words, moment, name, plural, some, vector
from bigfleet.cli.ctl.render.rows import ListingColumn, print_listing

if TYPE_CHECKING:
    from bigfleet.cli.ctl.calls.fleet_client import Fleet
    from bigfleet_api.v1alpha1 import coordinator_pb2

_MOST_SHORTFALLS: Final = 3
_Shard = Annotated[str, typer.Option("--shard", help="Only this shard's.")]


def list_shard_reports(ctx: typer.Context, shard: _Shard = "") -> None:
    """List what each shard reported last: its machines and what it cannot provide."""
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    ctl = ctl_of(ctx)
    now = ctl.edge.now()

    async def ask(fleet: Fleet) -> list[pb.ShardReportSnapshot]:
        request = pb.ListShardReportsRequest(shard_id=shard)
        answer = await fleet.coordinator.call(lambda s: s.ListShardReports, request)
        if shard and not answer.reports:
            await fleet.check_shard(shard)
        return list(answer.reports)

    rows = run(ctl, ask)
    columns: list[ListingColumn[pb.ShardReportSnapshot]] = [
        ListingColumn("shard_id", lambda e: e.shard_id, "shard"),
        ListingColumn("cycle", lambda e: e.cycle, "report>"),
        ListingColumn(
            "received_at",
            lambda e: moment(e.received_at_unix_ns),
            "received",
            lambda e: ago(e.received_at_unix_ns, now),
        ),
        ListingColumn("total_machines", lambda e: e.summary.total_machines, "machines>"),
        ListingColumn("free_machines", lambda e: e.summary.free_machines, "free>"),
        ListingColumn("per_instance_type", lambda e: dict(sorted(_types(e).items()))),
        ListingColumn("per_zone", lambda e: dict(sorted(e.summary.per_zone_counts.items()))),
        ListingColumn("provider_address", lambda e: e.summary.provider_address),
        ListingColumn(
            "shortfalls",
            lambda e: [shortfall_document(one) for one in e.shortfalls],
            "cannot provide",
            _shortfalls,
        ),
    ]
    empty = (
        f"No report{f' of shard {shard}' if shard else ''} has arrived at this leader yet: shards "
        "report every few seconds."
    )
    print_listing(ctl, "reports", rows, columns, empty)


def list_instructions(ctx: typer.Context, shard: _Shard = "") -> None:
    """List instructions that wait for their shard, and why they wait."""
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    ctl = ctl_of(ctx)
    now = ctl.edge.now()

    async def ask(fleet: Fleet) -> list[pb.PendingInstruction]:
        request = pb.ListInstructionsRequest(shard_id=shard)
        answer = await fleet.coordinator.call(lambda s: s.ListInstructions, request)
        if shard and not answer.instructions:
            await fleet.check_shard(shard)
        return list(answer.instructions)

    rows = run(ctl, ask)

    def outcome(entry: coordinator_pb2.PendingInstruction) -> str:
        return (
            name(pb.InstructAck.Outcome.Name, entry.last_outcome, "OUTCOME_") if entry.tries else ""
        )

    columns: list[ListingColumn[pb.PendingInstruction]] = [
        ListingColumn("shard_id", lambda e: e.shard_id, "shard"),
        ListingColumn("sequence_number", lambda e: e.instruction.sequence_number, "number>"),
        ListingColumn("instruction_id", lambda e: e.instruction.instruction_id),
        ListingColumn("coordinator_term", lambda e: e.instruction.coordinator_term),
        ListingColumn("kind", lambda e: e.instruction.WhichOneof("payload")),
        ListingColumn("what", lambda e: instruction_words(e.instruction), "what"),
        ListingColumn(
            "enqueued_at",
            lambda e: moment(e.enqueued_at_unix_ns),
            "since",
            lambda e: ago(e.enqueued_at_unix_ns, now),
        ),
        ListingColumn("tries", lambda e: e.tries, "tries>"),
        ListingColumn("last_outcome", outcome),
        ListingColumn("last_reason", lambda e: e.last_reason, "last answer"),
    ]
    empty = f"No instruction waits for {f'shard {shard}' if shard else 'a shard'}."
    print_listing(ctl, "instructions", rows, columns, empty)


def moves(
    ctx: typer.Context,
    all_: Annotated[bool, typer.Option("--all", help="Also moves that are over.")] = False,
) -> None:
    """List moves of machines between shards."""
    from bigfleet_api.v1alpha1 import coordinator_pb2 as pb

    ctl = ctl_of(ctx)
    now = ctl.edge.now()
    request = pb.ListMovesRequest(include_done=all_)
    answer = run(ctl, lambda f: f.coordinator.call(lambda s: s.ListMoves, request))
    columns: list[ListingColumn[pb.Move]] = [
        ListingColumn("id", lambda e: e.id, "move"),
        ListingColumn("tier", lambda e: name(pb.Move.Tier.Name, e.tier, "TIER_").lower(), "kind"),
        ListingColumn("donor", lambda e: e.donor, "from"),
        ListingColumn("recipient", lambda e: e.recipient, "to"),
        ListingColumn("count", lambda e: e.count, "wanted>"),
        ListingColumn(
            "machine_ids",
            lambda e: list(e.machine_ids),
            "machines",
            lambda e: some(e.machine_ids, 2),
        ),
        ListingColumn("phase", lambda e: e.phase, "phase", lambda e: e.phase.replace("_", " ")),
        ListingColumn("created_at", lambda e: moment(e.created_unix_ns)),
        ListingColumn(
            "updated_at",
            lambda e: moment(e.updated_unix_ns),
            "changed",
            lambda e: ago(e.updated_unix_ns, now),
        ),
        ListingColumn("reason", lambda e: e.reason, "why"),
    ]
    empty = "No machine is on its way between shards."
    print_listing(ctl, "moves", list(answer.moves), columns, empty)


def shortfall_words(shortfall: coordinator_pb2.Shortfall) -> str:
    """What is missing, for whom, since when."""
    whose = some(shortfall.cluster_ids, 2) or "an unnamed cluster"
    missing = amount_words(shortfall.deficit.resources)
    return f"{missing} for {whose}, {plural(shortfall.age_cycles, 'cycle')} old"


def _shortfalls(entry: coordinator_pb2.ShardReportSnapshot) -> str:
    shown = [shortfall_words(shortfall) for shortfall in entry.shortfalls[:_MOST_SHORTFALLS]]
    hidden = len(entry.shortfalls) - len(shown)
    return "; ".join(shown) + (f" and {hidden:,} more" if hidden else "")


def shortfall_document(shortfall: coordinator_pb2.Shortfall) -> dict[str, object]:
    """A shortfall for programs."""
    from bigfleet_api.v1alpha1 import capacity_pb2

    return {
        "cluster_ids": list(shortfall.cluster_ids),
        "profile_fingerprint": shortfall.profile_fingerprint,
        "missing": vector(shortfall.deficit),
        "min_unit": vector(shortfall.min_unit),
        "priority": shortfall.priority,
        "age_cycles": shortfall.age_cycles,
        "interruption_penalty_bucket": name(
            capacity_pb2.PenaltyBucket.Name,
            shortfall.interruption_penalty_bucket,
            "PENALTY_BUCKET_",
        ),
        "topology_constrained": shortfall.topology_constrained,
    }


def instruction_words(instruction: coordinator_pb2.CoordinatorInstruction) -> str:
    """What a shard is told to do."""
    kind = instruction.WhichOneof("payload")
    if kind == "assign_domain":
        domain = instruction.assign_domain
        return f"take domain {domain.topology_key}={domain.topology_value}"
    if kind == "unassign_domain":
        gone = instruction.unassign_domain
        return f"let go of domain {gone.topology_key}={gone.topology_value}"
    if kind == "reassign_speculative":
        slots = instruction.reassign_speculative
        return f"give away {_which(list(slots.machine_ids), slots.count)} not yet created"
    if kind == "cross_shard_drain":
        drain = instruction.cross_shard_drain
        for_ = f"demand of priority {drain.preemptor_priority:,}"
        return f"drain {_which(list(drain.machine_ids), drain.count)} for {for_} elsewhere"
    if kind == "transfer_ownership":
        given = instruction.transfer_ownership
        which = _which(list(given.machine_ids), given.count)
        return f"hand over {which} from {given.from_shard_id} to {given.to_shard_id}"
    return "something this version does not know"


def _which(ids: list[str], count: int) -> str:
    return (
        f"{plural(len(ids), 'machine')} ({some(ids, 2)})"
        if ids
        else (f"up to {plural(count, 'machine')}")
    )


def _types(entry: coordinator_pb2.ShardReportSnapshot) -> dict[str, int]:
    return dict(entry.summary.per_instance_type_counts)
