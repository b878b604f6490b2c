"""`status` for people: one screen, with what is wrong at its end, where the eye stops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.table import Table

from bigfleet.cli.ctl.render.formats import ago, amount_words, dollars, plural, some
from bigfleet.cli.ctl.render.rows import ListingColumn, indented, print_rows
from bigfleet.cli.ctl.status.diagnosis import Problem, Weight
from bigfleet.cli.ctl.status.overview import MissingDemand, Overview, ReplicaRole, ShardLook
from bigfleet.cli.output import out, plain

MOST_SHARDS: Final = 20
MOST_SHORTFALLS: Final = 5
MOST_PROBLEMS: Final = 12
_ROLES: Final = {
    ReplicaRole.LEADS: "leads",
    ReplicaRole.FOLLOWS: "follows",
    ReplicaRole.SILENT: "does not answer",
}
_SERVING: Final = ("Configuring", "Configured", "Draining")


def print_status(view: Overview, problems: Sequence[Problem]) -> None:
    """The whole screen."""
    _print_facts(view)
    if view.shards:
        out.print()
        print_rows(view.shards[:MOST_SHARDS], _shard_columns(view))
        _print_rest(len(view.shards) - MOST_SHARDS, "shards")
    if view.shortfalls:
        out.print()
        out.print(plain("Shortfalls", "bold"))
        print_rows(view.shortfalls[:MOST_SHORTFALLS], _shortfall_columns())
        _print_rest(len(view.shortfalls) - MOST_SHORTFALLS, "shortfalls")
    out.print()
    _print_problems(problems)


def _print_facts(view: Overview) -> None:
    facts = [
        ("Coordinator", _coordinators(view)),
        ("Shards", _shards(view)),
        ("Clusters", _clusters(view)),
        ("Machines", _machines(view)),
        ("Shortfalls", _shortfalls(view)),
        ("Spend", _spend(view)),
    ]
    if view.replicas:
        facts.append(("Moves", f"{view.moves:,} under way between shards"))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for what, words in facts:
        grid.add_row(what, plain(words))
    out.print(grid)


def _coordinators(view: Overview) -> str:
    if not view.replicas:
        return "not asked: --shard-addr names shards alone"
    return "; ".join(f"{replica.address} {_ROLES[replica.role]}" for replica in view.replicas)


def _shards(view: Overview) -> str:
    answering = sum(shard.answers for shard in view.shards)
    paused = sum(shard.paused for shard in view.shards)
    words = f"{answering:,} of {len(view.shards):,} answer"
    return f"{words}, {paused:,} paused" if paused else words


def _clusters(view: Overview) -> str:
    connected = f"{plural(view.sessions, 'session')}"
    return f"{connected} of {len(view.bindings):,} bound" if view.replicas else connected


def _machines(view: Overview) -> str:
    failed = view.machines("Failed")
    return (
        f"{view.machines():,}: {view.machines(*_SERVING):,} serve clusters, "
        f"{view.machines('Idle'):,} idle, {view.machines('Creating'):,} being created"
        + (f", {failed:,} failed" if failed else "")
    )


def _shortfalls(view: Overview) -> str:
    if not view.shortfalls:
        return "none reported" if view.shards else "no shard reports any"
    oldest = max(shortfall.age_cycles for shortfall in view.shortfalls)
    return f"{len(view.shortfalls):,}, the oldest for {plural(oldest, 'cycle')}"


def _spend(view: Overview) -> str:
    least = "" if view.is_counted else "at least "
    return f"{least}{dollars(view.dollars)} per hour ({dollars(view.dollars * 24)} per day)"


def _shard_columns(view: Overview) -> list[ListingColumn[ShardLook]]:
    by_shard = {shard.shard: 0 for shard in view.shards}
    for shortfall in view.shortfalls:
        by_shard[shortfall.shard] = by_shard.get(shortfall.shard, 0) + 1

    def last_report(shard: ShardLook) -> str:
        return "" if shard.heard_ns is None else ago(shard.heard_ns, view.now)

    def known(shard: ShardLook, words: str) -> str:
        return words if shard.answers else "?"

    columns: list[ListingColumn[ShardLook]] = [
        ListingColumn("shard", lambda s: s.shard, "shard"),
        ListingColumn("state", _state, "state"),
        ListingColumn("cycle", lambda s: known(s, f"{s.cycle:,}"), "cycle>"),
        ListingColumn("sessions", lambda s: known(s, f"{len(s.sessions):,}"), "sessions>"),
        ListingColumn("serving", lambda s: known(s, f"{s.counted.of(*_SERVING):,}"), "serving>"),
        ListingColumn("idle", lambda s: known(s, f"{s.counted.of('Idle'):,}"), "idle>"),
        ListingColumn("lacks", lambda s: by_shard.get(s.shard, 0), "shortfalls>"),
        ListingColumn("spend", lambda s: known(s, dollars(s.counted.dollars)), "$/hour>"),
    ]
    if view.replicas:
        columns.append(ListingColumn("heard", last_report, "reported"))
    return columns


def _state(shard: ShardLook) -> str:
    if not shard.answers:
        return "silent"
    if shard.paused:
        return "paused"
    return "dry run" if shard.dry_run else "running"


def _shortfall_columns() -> list[ListingColumn[MissingDemand]]:
    return [
        ListingColumn("missing", lambda shortfall: amount_words(shortfall.missing), "missing"),
        ListingColumn("clusters", lambda shortfall: some(shortfall.clusters, 2), "for"),
        ListingColumn("priority", lambda shortfall: shortfall.priority, "priority>"),
        ListingColumn("age", lambda shortfall: plural(shortfall.age_cycles, "cycle"), "since>"),
        ListingColumn("shard", lambda shortfall: shortfall.shard, "shard"),
    ]


def _print_problems(problems: Sequence[Problem]) -> None:
    if not problems:
        out.print(plain("Nothing is wrong.", "green"))
        return
    out.print(plain("What is wrong, and what to do", "bold"))
    for number, problem in enumerate(problems[:MOST_PROBLEMS], 1):
        style = "red" if problem.weight is Weight.ERROR else "yellow"
        out.print(plain(f"{number}. {problem.what}", style))
        out.print(indented(f"-> {problem.remedy}", 3))
    _print_rest(len(problems) - MOST_PROBLEMS, "problems")


def _print_rest(hidden: int, what: str) -> None:
    if hidden > 0:
        out.print(plain(f"... and {hidden:,} more {what}; --output json lists everything", "dim"))
