"""Decisions as they happen, of one shard or of all, until interrupted.

A shard that hangs up is dialled again after a pause and asked for what was missed; one that cannot
be reached from the start is named once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from bigfleet.cli.ctl.context import Ctl, ctl_of, run
from bigfleet.cli.ctl.groups import complain
from bigfleet.cli.ctl.render.formats import clock, dollars, moment
from bigfleet.cli.ctl.render.rows import NARROW, print_line
from bigfleet.cli.errors import STOPPED, InputError
from bigfleet.cli.output import PATIENCE_SECONDS, Output, out, plain

if TYPE_CHECKING:
    from bigfleet.cli.ctl.calls.fleet_client import Fleet, ShardLine
    from bigfleet_api.v1alpha1 import shardread_pb2

_Item: TypeAlias = "tuple[str, shardread_pb2.Decision]"
_News: TypeAlias = "asyncio.Queue[_Item]"

PAUSE_SECONDS: Final = 2.0
_STYLES: Final = {
    "Bootstrap": "green",
    "Provision": "cyan",
    "Reclaim": "yellow",
    "Preempt": "red",
    "Keep": "blue",
    "Delete": "magenta",
    "Drain": "yellow",
}
"""Kinds of decisions: those of a plan, and a Drain that ends a machine's work for any of them."""
_TAKE: Final = frozenset({"Reclaim", "Preempt", "Drain"})
"""Those after which the cluster has a machine less."""


@dataclass(frozen=True, slots=True)
class DecisionFilter:
    """Which decisions are shown."""

    cluster: str = ""
    kinds: frozenset[str] = frozenset()
    count: int = 0

    def shows(self, decision: shardread_pb2.Decision) -> bool:
        """Whether it is one of them."""
        return self.cluster in ("", decision.cluster_id) and (
            not self.kinds or decision.kind.lower() in self.kinds
        )


@dataclass(slots=True)
class ShownDecisions:
    """How far one shard was followed, so that nothing is shown twice after a new start."""

    cycle: int
    of_cycle: set[bytes] = field(default_factory=set)

    def first_time(self, decision: shardread_pb2.Decision) -> bool:
        """Remember a decision; whether it was new."""
        if decision.cycle != self.cycle:
            self.cycle = decision.cycle
            self.of_cycle.clear()
        mark = decision.SerializeToString(deterministic=True)
        if mark in self.of_cycle:
            return False
        self.of_cycle.add(mark)
        return True


def watch(
    ctx: typer.Context,
    shard: Annotated[
        list[str] | None, typer.Option("--shard", help="Only this shard's; may be repeated.")
    ] = None,
    cluster: Annotated[str, typer.Option("--cluster", help="Only about this cluster.")] = "",
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only of this kind, like preempt; may be repeated."),
    ] = None,
    since_cycle: Annotated[
        int, typer.Option("--since-cycle", help="Also remembered ones from this cycle on.")
    ] = 0,
    count: Annotated[int, typer.Option("--count", help="Stop after so many; 0 never.")] = 0,
) -> None:
    """Show decisions as they happen, until Ctrl-C."""
    ctl = ctl_of(ctx)
    if since_cycle < 0 or count < 0:
        raise InputError("--since-cycle and --count are not negative: use 0 for none")
    wanted = DecisionFilter(cluster, frozenset(_kind(one) for one in kind or ()), count)
    try:
        # No sign of life on the terminal: it would stand between the lines.
        run(ctl, lambda fleet: _follow(ctl, fleet, tuple(shard or ()), since_cycle, wanted), "")
    except KeyboardInterrupt:
        # The ordinary end of a watch: the code says so, no word is needed.
        raise typer.Exit(STOPPED) from None


def _kind(text: str) -> str:
    kinds = [one.lower() for one in _STYLES]
    if text.lower() not in kinds:
        raise InputError(f"--kind {text!r} is not a kind of decision: write {', '.join(kinds)}")
    return text.lower()


async def _follow(
    ctl: Ctl, fleet: Fleet, shards: tuple[str, ...], since: int, wanted: DecisionFilter
) -> None:
    lines = await fleet.shards(shards)
    news: _News = asyncio.Queue(maxsize=1000)
    tasks = [asyncio.create_task(_listen(ctl, line, since, news, lines)) for line in lines]
    waiting = asyncio.create_task(_say_that_it_waits(ctl))
    shown = 0
    try:
        while not wanted.count or shown < wanted.count:
            name, decision = await _next(news, tasks)
            if wanted.shows(decision):
                waiting.cancel()
                print_decision(ctl, name, decision, several=len(lines) > 1)
                shown += 1
    finally:
        for task in (*tasks, waiting):
            task.cancel()
        await asyncio.gather(*tasks, waiting, return_exceptions=True)


async def _say_that_it_waits(ctl: Ctl) -> None:
    """Once, where nothing is decided for a while: silence looks like a fault."""
    await ctl.edge.rest(PATIENCE_SECONDS)
    if not ctl.options.quiet:
        complain("waiting for decisions; Ctrl-C ends")


async def _next(news: _News, tasks: Sequence[asyncio.Task[None]]) -> _Item:
    """The next decision, or the error of a shard that cannot be watched."""
    if not news.empty():
        return news.get_nowait()
    getting = asyncio.create_task(news.get())
    try:
        await asyncio.wait({getting, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
        return await getting
    finally:
        getting.cancel()


async def _listen(
    ctl: Ctl,
    line: ShardLine,
    since: int,
    news: _News,
    all_lines: Sequence[ShardLine],
) -> None:
    """Everything one shard decides, over lost connections."""
    from bigfleet.cli.ctl.calls.refusals import PeerCallError
    from bigfleet_api.v1alpha1 import shardread_pb2 as pb

    seen, lost, reached = ShownDecisions(since), False, False

    def opened() -> None:
        nonlocal lost, reached
        lost, reached = False, True

    while True:
        request = pb.WatchDecisionsRequest(since_cycle=seen.cycle)
        try:
            async for decision in line.follow(line.read.WatchDecisions, request, opened):
                if seen.first_time(decision):
                    await news.put((line.peer.title, decision))
            trouble = f"{line.peer} ended the stream"
        except PeerCallError as error:
            # The only shard, and never there: more likely a wrong address than bad luck.
            if not error.silent or (len(all_lines) == 1 and not reached):
                raise
            trouble = str(error)
        if not lost:
            complain(f"{trouble}; trying again every {PAUSE_SECONDS:g} s")
            lost = True
        await ctl.edge.rest(PAUSE_SECONDS)


def print_decision(
    ctl: Ctl, shard: str, decision: shardread_pb2.Decision, *, several: bool
) -> None:
    """One decision, on a line of its own."""
    if ctl.output is Output.JSON:
        print_line(decision_document(shard, decision))
    elif ctl.output is Output.YAML:
        import yaml

        text = yaml.safe_dump(decision_document(shard, decision), sort_keys=False, width=1000)
        print(f"---\n{text}", end="", flush=True)
    else:
        style = _STYLES.get(decision.kind, "")
        where = f"{shard} " if several else ""
        head = plain(f"{clock(decision.unix_nanos)} {where}")
        out.print(
            head + plain(f"{decision.kind} ", style) + plain(_rest(decision)),
            soft_wrap=out.width >= NARROW,
        )


def decision_document(shard: str, decision: shardread_pb2.Decision) -> dict[str, object]:
    """A decision for programs."""
    return {
        "shard": shard,
        "cycle": decision.cycle,
        "at": moment(decision.unix_nanos),
        "kind": decision.kind,
        "machine_id": decision.machine_id,
        "cluster_id": decision.cluster_id,
        "profile_fingerprint": decision.profile_fingerprint,
        "reason": decision.reason,
        "cost_per_hour": decision.cost_per_hour,
        "outcome": decision.outcome,
    }


def _rest(decision: shardread_pb2.Decision) -> str:
    towards = "from" if decision.kind in _TAKE else "for"
    whose = f" {towards} {decision.cluster_id}" if decision.cluster_id else ""
    price = f", {dollars(decision.cost_per_hour)}/h" if decision.cost_per_hour else ""
    why = f": {decision.reason}" if decision.reason else ""
    outcome = f" -> {decision.outcome}" if decision.outcome else ""
    return f"{decision.machine_id}{whose}{price}{why}{outcome}"
