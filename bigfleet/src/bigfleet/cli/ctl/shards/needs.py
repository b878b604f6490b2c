"""`inspect-needs`: every need with its verdict, and for unmet ones why, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bigfleet.cli.ctl.context import Ctl, ctl_of, run
from bigfleet.cli.ctl.render.formats import ago, amount_words, moment, plural
from bigfleet.cli.ctl.render.rows import ListingColumn, print_rows, report_troubles
from bigfleet.cli.errors import InputError
from bigfleet.cli.output import out, plain, print_document

if TYPE_CHECKING:
    from bigfleet.cli.ctl.calls.fleet_client import Fleet, ShardLine, ShardReply
    from bigfleet.cli.ctl.shards.need_explanation import NeedOfShard
    from bigfleet_api.v1alpha1 import shardread_pb2

MOST_ROWS: Final = 100
MOST_STORIES: Final = 20
"""A person reads no more; programs are told everything."""


@dataclass(frozen=True, slots=True)
class InspectedNeeds:
    """What one shard says of its needs."""

    header: shardread_pb2.InspectNeedsHeader
    views: list[shardread_pb2.NeedView]


def inspect_needs(
    ctx: typer.Context,
    shard: Annotated[
        list[str] | None, typer.Option("--shard", help="Only this shard's; may be repeated.")
    ] = None,
    cluster: Annotated[str, typer.Option("--cluster", help="Only needs of this cluster.")] = "",
    unmet: Annotated[bool, typer.Option("--unmet", help="Only needs that are not met.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", help="At most so many per shard; 0 means all.")
    ] = 0,
    profile: Annotated[
        str, typer.Option("--profile", help="Only needs with a profile of this fingerprint.")
    ] = "",
    group: Annotated[str, typer.Option("--group", help="Only needs of this group.")] = "",
    remedies: Annotated[
        bool,
        typer.Option(
            "--remedies/--no-remedies",
            help="Let each shard try what would help: two seconds at most.",
        ),
    ] = True,
) -> None:
    """Show every need with its verdict, and why unmet ones are unmet: what blocks them, and which
    changes would help. The shard tries each change on a copy before it is shown.
    """
    from bigfleet.cli.ctl.calls.fleet_client import each
    from bigfleet_api.v1alpha1 import shardread_pb2 as pb

    ctl = ctl_of(ctx)
    if limit < 0:
        raise InputError(f"--limit {limit} is negative: use 0 for all")
    # The shard cuts before anybody could leave out what is met.
    request = pb.InspectNeedsRequest(
        cluster_id=cluster,
        limit=0 if unmet else limit,
        profile_fingerprint=profile,
        group=group,
        with_remedies=remedies,
    )

    async def inspect(line: ShardLine) -> InspectedNeeds:
        header, views = pb.InspectNeedsHeader(), list[pb.NeedView]()
        async for frame in line.stream(line.read.InspectNeeds, request):
            if frame.HasField("header"):
                header = frame.header
            elif not (unmet and frame.need.satisfied) and not (limit and len(views) == limit):
                views.append(frame.need)
        return InspectedNeeds(header, views)

    async def ask(fleet: Fleet) -> list[ShardReply[InspectedNeeds]]:
        return await each(await fleet.shards(shard or ()), inspect)

    replies = run(ctl, ask, "inspecting needs")
    troubles = [one.trouble for one in replies if one.trouble is not None]
    if len(troubles) == len(replies):
        raise troubles[0]
    _print(ctl, replies, unmet)
    report_troubles(troubles)
    if troubles:
        raise typer.Exit(1)


def _print(ctl: Ctl, replies: Sequence[ShardReply[InspectedNeeds]], unmet: bool) -> None:
    from bigfleet.cli.ctl.shards.need_explanation import NeedOfShard, need_document

    now = ctl.edge.now()
    rows = [
        NeedOfShard(one.peer.title, view, now, f" --shard {one.peer.name}" if one.peer.name else "")
        for one in replies
        if one.answer is not None
        for view in one.answer.views
    ]
    if ctl.is_table:
        for one in replies:
            if one.answer is not None:
                out.print(_summary(one.peer.title, one.answer, now, unmet))
        _print_table(rows, unmet)
        return
    headers = {one.peer.title: one.answer.header for one in replies if one.answer is not None}
    document = {
        "shards": [
            {
                "shard": shard,
                "cycle": header.cycle,
                "computed_at": moment(header.computed_at_unix_nanos),
                "total_needs": header.total_needs,
            }
            for shard, header in headers.items()
        ],
        "needs": [need_document(seen) for seen in rows],
    }
    print_document(document, ctl.output)


def _summary(shard: str, inspected: InspectedNeeds, now: int, unmet: bool) -> object:
    header, views = inspected.header, inspected.views
    head = plain(f"Shard {shard}: ", "bold")
    if not header.cycle:
        return head + plain("nothing decided yet: its first cycle is not over", "yellow")
    lacking = sum(not view.satisfied for view in views)
    when = ago(header.computed_at_unix_nanos, now)
    count = plural(header.total_needs, "need")
    if not header.total_needs:
        return head + plain(f"no needs in cycle {header.cycle:,}, {when}")
    shown = "" if unmet or len(views) == header.total_needs else f" (of {len(views):,} shown)"
    style = "red" if lacking else "green"
    words = f"{lacking:,} unmet{shown}" if lacking else f"none unmet{shown}"
    return head + plain(f"{count} in cycle {header.cycle:,}, {when}; ") + plain(words, style)


def _print_table(rows: Sequence[NeedOfShard], unmet: bool) -> None:
    lacking = [seen for seen in rows if not seen.view.satisfied]
    if rows and not unmet:
        out.print()
        print_rows(rows[:MOST_ROWS], _columns())
        _print_rest(len(rows) - MOST_ROWS, "needs")
    for seen in lacking[:MOST_STORIES]:
        out.print()
        _print_story(seen)
    _print_rest(len(lacking) - MOST_STORIES, "unmet needs")


def _columns() -> list[ListingColumn[NeedOfShard]]:
    return [
        ListingColumn("cluster", lambda seen: seen.view.cluster_id, "cluster"),
        ListingColumn("shard", lambda seen: seen.shard, "shard"),
        ListingColumn("priority", lambda seen: seen.view.need.priority, "priority>"),
        ListingColumn(
            "asks", lambda seen: amount_words(seen.view.need.aggregate_resources), "asks"
        ),
        ListingColumn("machines", lambda seen: seen.view.claimed_machine_count, "machines>"),
        ListingColumn("verdict", lambda seen: seen.verdict(), "verdict"),
    ]


def _print_story(seen: NeedOfShard) -> None:
    from rich.padding import Padding
    from rich.table import Table

    from bigfleet.cli.ctl.shards.need_explanation import lines

    need = seen.view.need
    head = f"{seen.view.cluster_id}, priority {need.priority:,}: "
    out.print(plain(head, "bold") + plain(seen.verdict(), "red"))
    grid = Table.grid(padding=(0, 1))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for what, text in lines(seen):
        grid.add_row(what, plain(text))
    out.print(Padding(grid, (0, 0, 0, 2), expand=False))


def _print_rest(hidden: int, what: str) -> None:
    if hidden > 0:
        out.print(plain(f"... and {hidden:,} more {what}; --output json lists everything", "dim"))
