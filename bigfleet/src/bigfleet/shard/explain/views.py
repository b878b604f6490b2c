"""Why each need is met or not, as people and tools read it: made of the last plan when asked.

A view stands for one row of normalised demand. Rows of clusters that the cycle left out come after
those of the plan, with the reason FROZEN. Nothing is computed for a cycle without a question;
the plan that is kept has it all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bigfleet.decision import Plan, Policy, Reason
from bigfleet.decision.policy import TICK
from bigfleet.model import MachineState, Need, Profile, Resources, format_resources
from bigfleet.shard.explain.need_explanations import Basis
from bigfleet.wire.needs import need_to_proto
from bigfleet_api.v1alpha1 import provider_pb2
from bigfleet_api.v1alpha1 import shardread_pb2 as pb

I64 = npt.NDArray[np.int64]
S = MachineState


@dataclass(frozen=True)
class NeedViews:
    """The explanation of one finished cycle."""

    cycle: int
    computed_at_ns: int
    plan: Plan
    policy: Policy
    ages: I64
    """Per number of a profile: for how many cycles in a row it has been unmet."""
    basis: Basis | None = None
    """What the cycle decided on, for explanations; None where there is none to decide again on."""

    def selected(self, request: pb.InspectNeedsRequest) -> I64:
        """Rows that pass the filters of a request; a folded row passes by any of its members."""
        rows = self.rows(request.cluster_id)
        wanted = {
            "fingerprint": request.profile_fingerprint,
            "group": request.group,
            "size": request.size_class,
        }
        symbols, v = self.plan.demand.symbols, self.plan.verdicts
        row_of = np.repeat(np.arange(len(v)), np.diff(v.members_at))
        identity = self.plan.demand.identity[v.members]
        passes = np.ones(len(identity), np.bool_)
        for column, text in wanted.items():
            if text:
                passes &= symbols.identity_column(column)[identity] == symbols.texts.find(text)
        return rows[np.isin(rows, row_of[passes])] if any(wanted.values()) else rows

    def rows(self, cluster: str = "") -> I64:
        """Rows of the plan, or of one cluster, by priority (highest first), arrival and cluster."""
        plan, demand = self.plan, self.plan.demand
        symbols, stands = demand.symbols, plan.verdicts.members[plan.verdicts.members_at[:-1]]
        identity, arrival = demand.identity[stands], demand.arrival[stands]
        if plan.withheld is not None:
            identity = np.concatenate([identity, plan.withheld.identity])
            arrival = np.concatenate([arrival, plan.withheld.arrival])
        clusters = symbols.identity_column("cluster")[identity]
        order: I64 = np.lexsort(
            (
                symbols.clusters.rank()[clusters],
                arrival,
                -symbols.identity_column("priority")[identity],
            )
        )
        if not cluster:
            return order
        mine: I64 = order[clusters[order] == symbols.clusters.find(cluster)]
        return mine

    def header(self, total: int) -> pb.InspectNeedsHeader:
        """What the views are the result of."""
        return pb.InspectNeedsHeader(
            cycle=self.cycle, computed_at_unix_nanos=self.computed_at_ns, total_needs=total
        )

    def view(self, row: int) -> pb.NeedView:
        """One row and what the cycle made of it."""
        plan, v = self.plan, self.plan.verdicts
        if row >= len(v):
            return _frozen(self.need(row))
        need, stands = self.need(row), plan.need_of(row)
        met = bool(v.satisfied[row])
        view = pb.NeedView(
            need=need_to_proto(need),
            cluster_id=need.cluster,
            arrival_unix_nanos=need.arrival_ns,
            profile_fingerprint=self._profile(stands).fingerprint,
            satisfied=met,
            claimed_machine_count=int(v.claimed[row]),
            bootstrap_count=int(v.from_idle[row]),
            provision_count=int(v.from_speculative[row]),
        )
        if v.domain_key[row] >= 0:
            view.same_domain = plan.domain(row)
            view.same_satisfiable = bool(v.satisfiable[row])
            view.same_candidates.extend(self._candidates(row))
        if not met:
            self._explain(view, row, stands)
        return view

    def need(self, row: int) -> Need:
        """The normalised row as a value; a folded one asks for all of its members."""
        plan, v = self.plan, self.plan.verdicts
        if row >= len(v):
            assert plan.withheld is not None
            return plan.withheld.need(row - len(v))
        members = v.members[v.members_at[row] : v.members_at[row + 1]].tolist()
        first = plan.demand.need(members[0])
        if v.need[row] >= 0:
            return first
        gangs = [plan.demand.need(member).aggregate for member in members]
        return replace(
            first,
            profile=first.profile.without_same(),
            aggregate={name: sum(g.get(name, 0) for g in gangs) for name in first.aggregate},
            min_unit=first.aggregate,
            group=first.group if len(members) == 1 else "",
        )

    def _explain(self, view: pb.NeedView, row: int, stands: int) -> None:
        v = self.plan.verdicts
        missing = self.plan.missing(row)
        if missing:
            view.residual_deficit.CopyFrom(as_proto(missing))
        parked = self._parked_ticks(row)
        view.acquisition_parked = parked > 0
        view.parked_age_cycles = parked
        view.age_cycles_unmet = int(self.ages[self.plan.demand.profile[stands]])
        view.unmet_reason = pb.UnmetReason.ValueType(int(v.reason[row]))
        view.matching_supply.idle = int(v.matching[row, S.IDLE])
        view.matching_supply.configured = int(v.matching[row, S.CONFIGURED])
        view.matching_supply.speculative = int(v.matching[row, S.SPECULATIVE])
        view.matching_supply.capped = False
        if v.victims[row]:
            view.preemption.victims_found = int(v.victims[row])
            view.preemption.capacity_freed.CopyFrom(as_proto(self.plan.freed(row)))

    def _parked_ticks(self, row: int) -> int:
        """For how many ticks a gang without a domain has been set aside; 0 while it is not."""
        since = int(self.plan.verdicts.homeless_since[row])
        if not since:
            return 0
        return max(0, (self.computed_at_ns - since) // TICK - self.policy.park_ticks + 1)

    def _candidates(self, row: int) -> Iterator[pb.DomainCoverage]:
        v = self.plan.verdicts
        names = self.plan.domain_names[int(v.domain_key[row])]
        for place, domain in enumerate(v.best[row].tolist()):
            if domain >= 0:
                yield pb.DomainCoverage(
                    domain=names[domain].replace("\x00", ","),
                    coverage_per_mille=int(v.best_mille[row, place]),
                    satisfiable=bool(v.best_ok[row, place]),
                )

    def _profile(self, demand_row: int) -> Profile:
        demand = self.plan.demand
        return demand.symbols.profiles[int(demand.profile[demand_row])]


def _frozen(need: Need) -> pb.NeedView:
    """A row of a cluster that the cycle left out."""
    return pb.NeedView(
        need=need_to_proto(need),
        cluster_id=need.cluster,
        arrival_unix_nanos=need.arrival_ns,
        profile_fingerprint=need.profile.fingerprint,
        unmet_reason=pb.UnmetReason.ValueType(int(Reason.FROZEN)),
    )


def as_proto(resources: Resources) -> provider_pb2.Resources:
    """Amounts as they are sent."""
    return provider_pb2.Resources(resources=format_resources(resources))
