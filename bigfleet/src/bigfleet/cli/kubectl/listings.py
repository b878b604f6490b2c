"""The tables of `requests`, `upcoming` and `plan`, and the paragraph below each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec
from rich.table import Table

from bigfleet.cli.ctl.render.formats import amount_words, lasting, plural
from bigfleet.cli.ctl.shards.need_explanation import NeedOfShard
from bigfleet.cli.kubectl.answer import PluginAnswer, command, short
from bigfleet.cli.kubectl.why_node import LEAVING
from bigfleet.cli.kubectl.why_pod import ACKNOWLEDGED
from bigfleet.cli.output import table
from bigfleet.model import Resources, add, format_resources, parse_resources
from bigfleet.model.errors import ModelError
from bigfleet.podcontroller.arrivals import ARRIVING, INSTANCE_TYPE, ZONE, need_of
from bigfleet.podcontroller.notices import unmet_condition
from bigfleet.podcontroller.pods import ArrivingNode, PodRequest, RequestNeed

if TYPE_CHECKING:
    from bigfleet_api.v1alpha1 import shardread_pb2

MOST_ROWS: Final = 50


@dataclass(frozen=True, slots=True)
class PluginListing:
    """A table and what it comes to."""

    answer: PluginAnswer
    table: Table


@dataclass(slots=True)
class NeedRow:
    """One need of the cluster: its requests, its machines and its verdict."""

    need: RequestNeed
    requests: list[PodRequest] = field(default_factory=list)
    coming: int = 0
    here: int = 0
    leaving: int = 0
    verdict: str = ""
    """What the shard says; empty where it was not asked."""

    @property
    def priority(self) -> int:
        """The highest of its requests."""
        return max((request.spec.priority for request in self.requests), default=0)

    @property
    def unmet(self) -> PodRequest | None:
        """A request whose condition says that the need is unmet."""
        return next((one for one in self.requests if unmet_condition(one) is not None), None)

    def words(self) -> str:
        """The verdict in a few words."""
        request = self.unmet
        condition = unmet_condition(request) if request is not None else None
        if self.verdict:
            return self.verdict
        if condition is not None:
            unmet = sum(unmet_condition(one) is not None for one in self.requests)
            which = "" if unmet == len(self.requests) else f" for {unmet} of {len(self.requests)}"
            return f"unmet{which}: {condition.reason}"
        return "met, or on its way" if self.requests else "nothing asks for it"


def state_of(request: PodRequest) -> str:
    """How far a request is, in a few words."""
    condition = unmet_condition(request)
    if condition is not None:
        return f"unmet: {condition.reason}"
    return "met" if request.status.phase == ACKNOWLEDGED else "not acknowledged"


def request_listing(requests: Sequence[PodRequest], where: str) -> PluginListing:
    """The CapacityRequests of a namespace, those that wait first."""
    ordered = sorted(requests, key=lambda one: (_rank(one), -one.spec.priority, _key(one)))
    made = table("request", "for", "priority>", "asks", "need", "state")
    for one in ordered[:MOST_ROWS]:
        made.add_row(
            one.metadata.name,
            _owner(one),
            f"{one.spec.priority:,}",
            amount_words(_amounts(one)),
            short(one.status.need.profile) if one.status.need is not None else "",
            state_of(one),
        )
    counts = Counter(state_of(one).partition(":")[0] for one in requests)
    states = ", ".join(f"{counts[state]:,} {state}" for state in _STATES if counts[state])
    text = f"{plural(len(requests), 'CapacityRequest')} in {where}"
    text += f": {states}." if states else "."
    if len(ordered) > MOST_ROWS:
        text += f" The table shows the first {MOST_ROWS}; --output json lists all of them."
    documents = [_request_document(one) for one in ordered]
    return PluginListing(PluginAnswer(text, _next_of(ordered), {"requests": documents}), made)


def upcoming_listing(machines: Sequence[ArrivingNode], now_unix_s: float) -> PluginListing:
    """Machines of the cluster, those on their way first."""
    ordered = sorted(machines, key=lambda one: (_phase_rank(one), one.metadata.name))
    made = table("machine", "node", "type", "zone", "phase", "since", "need")
    documents = []
    for one in ordered:
        labels, node = one.spec.labels or {}, (one.status.node_ref or {}).get("name", "")
        phase, need = one.status.phase or "Provisioning", short(need_of(one).profile)
        cells = (one.metadata.name, node, labels.get(INSTANCE_TYPE, ""), labels.get(ZONE, ""),
                 phase, _since(one.status.provisioning_start_time, now_unix_s), need)  # fmt: skip
        names = ("machine", "node", "type", "zone", "phase", "since", "need")
        document: dict[str, object] = dict(zip(names, cells, strict=True))
        document["started"] = one.status.provisioning_start_time
        documents.append({**document, "last_error": one.status.last_error or None})
        if len(documents) <= MOST_ROWS:
            made.add_row(*cells)
    coming = [one for one in ordered if one.status.phase in ARRIVING]
    leaving = sum(one.status.phase in LEAVING for one in ordered)
    failed = sum(one.status.phase == "Failed" for one in ordered)
    here = len(ordered) - len(coming) - leaving - failed
    text = (
        f"{plural(len(coming), 'machine')} on the way into this cluster, {here:,} in it, "
        f"{leaving:,} on the way out, {failed:,} failed."
    )
    about = next(iter(coming), ordered[0] if ordered else None)
    follow_up = (
        command("kubectl", "bigfleet", "why", f"node/{about.metadata.name}")
        if about is not None
        else command("kubectl", "bigfleet", "plan")
    )
    return PluginListing(PluginAnswer(text, follow_up, {"machines": documents}), made)


def need_rows(requests: Sequence[PodRequest], machines: Sequence[ArrivingNode]) -> list[NeedRow]:
    """Every need of the cluster, the unmet and the important first."""
    rows: dict[RequestNeed, NeedRow] = {}
    for request in requests:
        if request.status.need is not None:
            need = request.status.need
            rows.setdefault(need, NeedRow(need)).requests.append(request)
    for machine in machines:
        need = need_of(machine)
        if need.profile:
            row = rows.setdefault(need, NeedRow(need))
            phase = machine.status.phase
            row.coming += phase in ARRIVING
            row.here += phase == "Ready"
            row.leaving += phase in LEAVING
    return sorted(
        rows.values(),
        key=lambda row: (row.unmet is None, -row.priority, row.need.profile, row.need.group),
    )


def judge(rows: Sequence[NeedRow], views: Sequence[shardread_pb2.NeedView]) -> None:
    """Put the verdicts of the shard into the rows of the same needs."""
    by_need: dict[RequestNeed, list[shardread_pb2.NeedView]] = {}
    for view in views:
        need = RequestNeed(view.profile_fingerprint, view.need.group)
        by_need.setdefault(need, []).append(view)
    for row in rows:
        found = by_need.get(row.need, [])
        lacking = next((view for view in found if not view.satisfied), None)
        if lacking is not None:
            missing = amount_words(lacking.residual_deficit.resources)
            row.verdict = f"unmet: {NeedOfShard('', lacking, 0).reason}, lacks {missing}"
        elif found:
            row.verdict = "met"


def plan_listing(rows: Sequence[NeedRow], waiting: int, problem: str) -> PluginListing:
    """Every need with its machines and its verdict."""
    made = table(
        "need", "priority>", "requests>", "asks", "here>", "coming>", "leaving>", "verdict"
    )
    for row in rows[:MOST_ROWS]:
        made.add_row(
            short(row.need.profile) + (f" {row.need.group}" if row.need.group else ""),
            f"{row.priority:,}",
            f"{len(row.requests):,}",
            amount_words(_total(row.requests)),
            f"{row.here:,}",
            f"{row.coming:,}",
            f"{row.leaving:,}",
            row.words(),
        )
    lacking = [row for row in rows if row.words().startswith("unmet")]
    coming, leaving = sum(row.coming for row in rows), sum(row.leaving for row in rows)
    text = (
        f"This cluster has {plural(len(rows), 'need')}, {len(lacking):,} of them unmet. BigFleet "
        f"brings {plural(coming, 'machine')} and takes {leaving:,} back."
    )
    if waiting:
        text += f" {plural(waiting, 'CapacityRequest')} not acknowledged yet."
    if problem:
        text += f" Verdicts are those of the cluster: {problem}."
    follow_up = (
        _next_of(lacking[0].requests)
        if lacking and lacking[0].requests
        else command("kubectl", "bigfleet", "upcoming")
    )
    facts: dict[str, object] = {"needs": [_row_document(row) for row in rows]}
    return PluginListing(PluginAnswer(text, follow_up, facts | {"not_acknowledged": waiting}), made)


_STATES: Final = ("unmet", "not acknowledged", "met")


def _rank(request: PodRequest) -> int:
    return _STATES.index(state_of(request).partition(":")[0])


def _phase_rank(machine: ArrivingNode) -> int:
    phase = machine.status.phase
    return 0 if phase in ARRIVING else 1 if phase == "Failed" else 2 if phase in LEAVING else 3


def _key(request: PodRequest) -> tuple[str, str]:
    return request.metadata.namespace, request.metadata.name


def _owner(request: PodRequest) -> str:
    owner = next((one for one in request.metadata.owner_references if one.controller), None)
    return "" if owner is None else f"{owner.kind.lower()}/{owner.name}"


def _next_of(requests: Sequence[PodRequest]) -> str:
    waiting = [one for one in requests if state_of(one) != "met"] or list(requests)
    if not waiting:
        return command("kubectl", "bigfleet", "doctor")
    first, namespace = waiting[0], waiting[0].metadata.namespace
    owner = _owner(first)
    if owner.startswith("pod/"):
        return command("kubectl", "bigfleet", "why", owner, "-n", namespace)
    return command("kubectl", "describe", "capacityrequest", first.metadata.name, "-n", namespace)


def _amounts(request: PodRequest) -> dict[str, str]:
    amounts = request.spec.resources or {}
    return {name: str(amount) for name, amount in amounts.items() if name != "pods"}


def _total(requests: Sequence[PodRequest]) -> Mapping[str, str]:
    total: Resources = {}
    for request in requests:
        try:
            total = add(total, parse_resources(_amounts(request)))
        except ModelError:
            # The operator leaves a request with such an amount out of its demand as well.
            continue
    return format_resources(total)


def _since(started: str, now_unix_s: float) -> str:
    try:
        return lasting(now_unix_s - datetime.fromisoformat(started).timestamp())
    except ValueError:
        return ""


def _request_document(request: PodRequest) -> dict[str, object]:
    condition, need = unmet_condition(request), request.status.need
    return {
        "namespace": request.metadata.namespace,
        "name": request.metadata.name,
        "owner": _owner(request) or None,
        "priority": request.spec.priority,
        "resources": _amounts(request),
        "phase": request.status.phase,
        "need": msgspec.to_builtins(need),
        "unmet": msgspec.to_builtins(condition),
    }


def _row_document(row: NeedRow) -> dict[str, object]:
    return {
        "profile": row.need.profile,
        "group": row.need.group,
        "priority": row.priority,
        "requests": len(row.requests),
        "asks": dict(_total(row.requests)),
        "here": row.here,
        "coming": row.coming,
        "leaving": row.leaving,
        "verdict": row.words(),
    }
