"""What is wrong with a fleet, and what to do about it: a function of an overview.

The worst comes first. A remedy is something one can type or look at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from bigfleet.cli.ctl.render.formats import SECOND, amount_words, lasting, plural, some
from bigfleet.cli.ctl.status.overview import MachineCounts, Overview, ReplicaRole, ShardLook

LATE_SECONDS: Final = 30
"""Three times the interval at which shards report."""
LASTING_CYCLES: Final = 5
"""Demand that was met later than that was not met in the ordinary course of things."""


class Weight(IntEnum):
    """How bad it is."""

    ERROR = 0
    WARNING = 1


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong."""

    weight: Weight
    what: str
    remedy: str


def diagnose(view: Overview) -> list[Problem]:
    """All problems, the worst first, otherwise in the order of the screen."""
    found = [*_coordinators(view), *_shards(view), *_clusters(view), *_demand(view), *_moving(view)]
    return sorted(found, key=lambda problem: problem.weight)


def _coordinators(view: Overview) -> Iterator[Problem]:
    for replica in view.replicas:
        if replica.role is ReplicaRole.SILENT:
            yield Problem(
                Weight.WARNING,
                f"coordinator {replica.address} does not answer: the fleet runs with fewer",
                replica.trouble,
            )
    if view.replicas and not view.shards:
        yield Problem(
            Weight.ERROR,
            "no shard has registered, so nothing is decided",
            "start one with `bigfleet shard --coordinator-addr ...`",
        )


def _shards(view: Overview) -> Iterator[Problem]:
    for shard in view.shards:
        late = _lateness(shard, view.now)
        if not shard.answers:
            yield _silent(shard, late)
            continue
        if late:
            yield Problem(
                Weight.WARNING,
                f"shard {shard.shard} {late}",
                "check that it reaches the coordinator (its --coordinator-addr and log)",
            )
        yield from _standing(shard, view)
        yield from _providers(shard)
        yield from _rails(shard)
        yield from _machines(shard, view)


def _lateness(shard: ShardLook, now: int) -> str:
    """How long a shard has been silent towards the coordinator; empty when it has not."""
    if shard.heard_ns is None:
        return ""
    if shard.heard_ns == 0:
        return "has not reported to this leader yet"
    if now - shard.heard_ns > LATE_SECONDS * SECOND:
        return f"has not reported for {lasting((now - shard.heard_ns) / SECOND)}"
    return ""


def _silent(shard: ShardLook, late: str) -> Problem:
    if late:
        return Problem(
            Weight.ERROR,
            f"shard {shard.shard} does not answer and {late}",
            f"start it again; if it is gone for good, `bigfleetctl remove-shard {shard.shard}`",
        )
    # One that reports is at work, whatever keeps us from asking it.
    weight = Weight.ERROR if shard.heard_ns is None else Weight.WARNING
    return Problem(weight, f"shard {shard.shard} cannot be asked how it is", shard.trouble)


def _standing(shard: ShardLook, view: Overview) -> Iterator[Problem]:
    if shard.paused:
        reason = f" ({shard.pause_reason})" if shard.pause_reason else ""
        yield Problem(
            Weight.WARNING,
            f"shard {shard.shard} is paused{reason}: it decides, and executes nothing",
            f"`bigfleetctl resume{_option(shard.shard, view)}` when the reason is gone",
        )
    if shard.dry_run:
        yield Problem(
            Weight.WARNING,
            f"shard {shard.shard} runs dry: it was started to decide only",
            "restart it without --dry-run to let it act",
        )
    if not shard.cycle:
        yield Problem(
            Weight.WARNING,
            f"shard {shard.shard} has not decided yet",
            "it waits for its providers and operators: look at its log if that lasts",
        )


def _machines(shard: ShardLook, view: Overview) -> Iterator[Problem]:
    failed = shard.counted.of("Failed")
    if failed:
        option = _option(shard.shard, view)
        yield Problem(
            Weight.WARNING,
            f"{plural(failed, 'machine')} of shard {shard.shard} failed",
            f"`bigfleetctl list-machines{option} --state failed` says why",
        )
    if shard.counted.trouble:
        yield Problem(
            Weight.WARNING,
            f"machines of shard {shard.shard} are not all counted, nor is their spend",
            shard.counted.trouble,
        )


def _option(shard: str, view: Overview) -> str:
    """What names a shard on a command line; shards named by address need nothing."""
    return f" --shard {shard}" if view.replicas else ""


def _providers(shard: ShardLook) -> Iterator[Problem]:
    if not shard.providers:
        yield Problem(
            Weight.ERROR,
            f"shard {shard.shard} has no provider: it can create no machine",
            "`bigfleetctl register-provider NAME HOST:PORT`, or restart it with --provider-addr",
        )
    for provider in shard.providers:
        if not provider.reachable:
            yield Problem(
                Weight.ERROR,
                f"provider {provider.name} cannot be reached by shard {shard.shard}: "
                f"{provider.last_error or 'no further detail'}",
                "check that it runs, and its address in `bigfleetctl list-providers`",
            )


def _rails(shard: ShardLook) -> Iterator[Problem]:
    # Told above in better words.
    own = ("paused", "dry-run")
    for rail in shard.rails:
        if rail.startswith(own):
            continue
        if rail.startswith("fenced"):
            yield Problem(
                Weight.ERROR,
                f"shard {shard.shard} is {rail}: another process uses its identity",
                "run each shard id once; stop the older process",
            )
        elif rail.startswith("mass disappearance"):
            yield Problem(
                Weight.ERROR,
                f"shard {shard.shard}: {rail}",
                "check the provider; if the machines are really gone, the rail opens by itself",
            )


def _clusters(view: Overview) -> Iterator[Problem]:
    answering = {shard.shard: shard for shard in view.shards if shard.answers}
    unmet = {cluster for shortfall in view.shortfalls for cluster in shortfall.clusters}
    connected = {cluster: shard.shard for shard in view.shards for cluster in shard.sessions}
    away: dict[str, list[str]] = defaultdict(list)
    for cluster, shard in sorted(view.bindings.items()):
        if cluster not in connected:
            counted = answering[shard].counted if shard in answering else MachineCounts()
            # A binding never ends: without machines and demand it may be all that is left.
            if counted.trouble or cluster in counted.clusters or cluster in unmet:
                away[shard].append(cluster)
        elif connected[cluster] != shard:
            yield Problem(
                Weight.WARNING,
                f"cluster {cluster} is bound to shard {shard}, but its operator dials "
                f"{connected[cluster]}",
                f"`bigfleetctl bind-cluster {cluster} {connected[cluster]}`, or change the "
                "operator's shard address",
            )
    for shard, clusters in away.items():
        yield Problem(
            Weight.WARNING,
            f"{plural(len(clusters), 'cluster')} of shard {shard} not connected: "
            f"{some(clusters)}; machines there stay as they are",
            "look at the operator there; for one that is gone for good, `bigfleetctl "
            f"forget-cluster {clusters[0]}`",
        )


def _demand(view: Overview) -> Iterator[Problem]:
    per_shard: dict[str, list[int]] = defaultdict(list)
    for number, shortfall in enumerate(view.shortfalls):
        if shortfall.age_cycles > LASTING_CYCLES:
            per_shard[shortfall.shard].append(number)
    for shard, numbers in per_shard.items():
        first = view.shortfalls[numbers[0]]
        more = f" and {plural(len(numbers) - 1, 'more profile')}" if len(numbers) > 1 else ""
        yield Problem(
            Weight.WARNING,
            f"shard {shard} cannot provide {amount_words(first.missing)} for "
            f"{some(first.clusters, 2) or 'an unnamed cluster'}{more}, for "
            f"{plural(max(view.shortfalls[n].age_cycles for n in numbers), 'cycle')}",
            f"`bigfleetctl inspect-needs{_option(shard, view)} --unmet` says why",
        )


def _moving(view: Overview) -> Iterator[Problem]:
    for entry in view.waiting:
        yield Problem(
            Weight.WARNING,
            f"shard {entry.shard} failed {plural(entry.tries, 'time')} to {entry.what}: "
            f"{entry.reason or 'no reason given'}",
            f"`bigfleetctl list-instructions --shard {entry.shard}`; it is tried again by itself",
        )
