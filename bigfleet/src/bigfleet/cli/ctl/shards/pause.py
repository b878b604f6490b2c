"""Pausing shards: they go on deciding, and execute nothing until resumed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bigfleet.cli.ctl.context import Ctl, ctl_of, run
from bigfleet.cli.ctl.render.rows import print_done, report_troubles
from bigfleet.cli.errors import InputError

if TYPE_CHECKING:
    from bigfleet.cli.ctl.calls.fleet_client import Fleet, ShardLine, ShardReply

_Shards = Annotated[list[str] | None, typer.Option("--shard", help="The shard; may be repeated.")]
_All = Annotated[bool, typer.Option("--all", help="Every shard there is.")]


def pause(
    ctx: typer.Context,
    shard: _Shards = None,
    all_: _All = False,
    reason: Annotated[str, typer.Option("--reason", help="Why; `status` shows it.")] = "",
) -> None:
    """Let a shard decide but execute nothing until resumed. Survives its restart."""
    from bigfleet_api.v1alpha1 import shardread_pb2 as pb

    async def body(line: ShardLine) -> None:
        await line.call(line.admin.Pause, pb.PauseRequest(reason=reason))

    _tell(ctl_of(ctx), "pause", shard or (), all_, body)


def resume(ctx: typer.Context, shard: _Shards = None, all_: _All = False) -> None:
    """Let a paused shard execute again."""
    from bigfleet_api.v1alpha1 import shardread_pb2 as pb

    async def body(line: ShardLine) -> None:
        await line.call(line.admin.Resume, pb.ResumeRequest())

    _tell(ctl_of(ctx), "resume", shard or (), all_, body)


def _tell(
    ctl: Ctl,
    what: str,
    wanted: Sequence[str],
    everybody: bool,
    body: Callable[[ShardLine], Awaitable[None]],
) -> None:
    from bigfleet.cli.ctl.calls.fleet_client import each

    if wanted and everybody:
        raise InputError("--shard names one, --all names every shard: leave one of them out")

    async def tell(fleet: Fleet) -> list[ShardReply[None]]:
        # A slip must not stop a whole fleet: several shards are told when all are meant.
        lines = await fleet.shards(wanted) if wanted or everybody else [await fleet.shard("")]
        return await each(lines, body)

    replies = run(ctl, tell)
    troubles = [one.trouble for one in replies if one.trouble is not None]
    if len(troubles) == len(replies):
        raise troubles[0]
    done = [one.peer.title for one in replies if one.trouble is None]
    state = {"pause": "paused: it decides, and executes nothing", "resume": "at work again"}[what]
    for shard in done if ctl.is_table else ():
        print_done(ctl, f"Shard {shard} is {state}.", what)
    if not ctl.is_table:
        print_done(ctl, "", what, shards=done)
    report_troubles(troubles)
    if troubles:
        raise typer.Exit(1)
