"""Demand -> rows: gangs that fit on one machine fold into plain uniform rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf

from bigfleet.model import (
    LABEL_HOSTNAME,
    Machine,
    MachineState,
    Need,
    Requirement,
    RequirementOperator,
    Stamp,
)
from bigfleet.model.amounts.resources import is_uniform_multiple
from bigfleet.model.facts import ClusterFacts
from oracle.world import Row, matches_need
from plain_rules import total_order_key

FoldKey = tuple[str, str, tuple[tuple[str, int], ...]]


def normalise(
    needs: Iterable[Need],
    machines: Iterable[Machine],
    facts: Mapping[str, ClusterFacts],
    folds: Mapping[FoldKey, tuple[int, int]],
    sequence: int,
) -> tuple[list[Row], dict[FoldKey, tuple[int, int]]]:
    """Rows in the total order, and what to remember of the folds."""
    machines, needs = list(machines), list(needs)
    rows: list[Row] = []
    groups: dict[FoldKey, list[Need]] = {}
    for need in needs:
        others = [other for other in needs if other is not need]
        if _folds(need, machines, facts, others):
            groups.setdefault(_fold_key(need), []).append(need)
        else:
            rows.append(Row(need, [need], folded=False, shrunk_at=need.shrunk_at))
    remembered: dict[FoldKey, tuple[int, int]] = {}
    for key, members in groups.items():
        count, shrunk_at = folds.get(key, (0, 0))
        if len(members) < count:
            shrunk_at = sequence
        remembered[key] = (len(members), shrunk_at)
        rows.append(_folded_row(members, shrunk_at))
    names = sorted({d for row in rows for d in row.need.aggregate})
    rows.sort(key=lambda row: _order(row, names))
    for position, row in enumerate(rows):
        row.position = position
        row.units = is_uniform_multiple(row.need.aggregate, row.need.min_unit)
    return rows, remembered


def _order(row: Row, names: list[str]) -> tuple[object, ...]:
    """The total order; folded rows of one profile after plain ones, by what they ask for."""
    amounts = tuple(row.need.min_unit.get(d) or inf for d in names) if row.folded else ()
    return (*total_order_key(row.need), row.folded, amounts)


def _fold_key(need: Need) -> FoldKey:
    aggregate = tuple(sorted((d, v) for d, v in need.aggregate.items() if v))
    return (need.cluster, need.profile.without_same().fingerprint, aggregate)


def _folds(
    need: Need, machines: list[Machine], facts: Mapping[str, ClusterFacts], others: list[Need]
) -> bool:
    if not need.profile.same or not any(need.aggregate.values()):
        return False
    fact = facts.get(need.cluster, ClusterFacts())
    one_host = Requirement.of(LABEL_HOSTNAME, RequirementOperator.SAME)
    asked = [r for r in need.profile.requirements if r != one_host]
    alone = replace(need, profile=replace(need.profile, requirements=tuple(asked)))
    if asked == list(need.profile.requirements) and any(
        _serves_as_part(need, m, facts, others) for m in machines
    ):
        return False
    return any(
        m.state is not MachineState.FAILED
        and matches_need(alone, m, fact)
        and _holds_whole(need, m, facts)
        for m in machines
    )


def _holds_whole(need: Need, m: Machine, facts: Mapping[str, ClusterFacts]) -> bool:
    overhead = facts.get(need.cluster, ClusterFacts()).overhead
    offer = m.effective_allocatable
    return all(max(0, offer.get(d, 0) - overhead.get(d, 0)) >= v for d, v in need.aggregate.items())


def _serves_as_part(
    need: Need, m: Machine, facts: Mapping[str, ClusterFacts], others: list[Need]
) -> bool:
    """A gang that already lives on several machines stays a gang: folding it would move it.

    Rows of one group may share their stamps' key; what says another of them is not this one's.
    """
    state = MachineState
    if m.leaving is not None:
        stamp = m.leaving.for_stamp
        coming = m.state in (state.CONFIGURED, state.DRAINING)
    else:
        stamp = m.stamp
        coming = m.state in (state.CREATING, state.IDLE, state.CONFIGURING, state.CONFIGURED)
    if not coming or stamp is None or stamp.key != need.stamp_key:
        return False
    said = replace(stamp, sequence=0)
    if said != Stamp.for_need(need, 0) and said in [Stamp.for_need(o, 0) for o in others]:
        return False
    return not _holds_whole(need, m, facts)


def _member_order(need: Need) -> tuple[int, str, str, str]:
    return (need.arrival_ns, need.group, need.profile.fingerprint, need.size_class)


def _folded_row(members: list[Need], shrunk_at: int) -> Row:
    members = sorted(
        members, key=lambda n: (n.arrival_ns, n.group, n.profile.fingerprint, n.size_class)
    )
    first = members[0]
    unit = {d: v for d, v in first.aggregate.items() if v}
    need = Need(
        cluster=first.cluster,
        profile=first.profile.without_same(),
        aggregate={d: v * len(members) for d, v in unit.items()},
        min_unit=unit,
        arrival_ns=first.arrival_ns,
    )
    return Row(need, members, folded=True, shrunk_at=shrunk_at)
