"""Properties 1 and 6: what any plan may do to machines, whatever fleet it was made for."""

import pytest

from bigfleet.decision import ActionKind
from bigfleet.model import MachineState
from seen import seen
from sizes import chunks, label

S = MachineState
STARTS = {
    ActionKind.BOOTSTRAP: S.IDLE,
    ActionKind.PROVISION: S.SPECULATIVE,
    ActionKind.RECLAIM: S.CONFIGURED,
    ActionKind.PREEMPT: S.CONFIGURED,
    ActionKind.KEEP: S.CONFIGURED,
    ActionKind.DELETE: S.IDLE,
}
CLAIMABLE = {S.CONFIGURED, S.CONFIGURING, S.CREATING, S.IDLE, S.SPECULATIVE}
seeds = pytest.mark.parametrize("seeds", chunks(250, 50_000, 60, everything=1_000), ids=label)


@seeds
def test_every_action_starts_in_the_state_its_kind_needs(seeds: range) -> None:
    for seed in seeds:
        view = seen(seed)
        for action in view.plan:
            machine = view.machines[action.machine]
            assert machine.state is STARTS[action.kind], (seed, action)
            leaving = machine.state is S.CONFIGURED and machine.leaving is not None
            assert leaving == (action.kind is ActionKind.KEEP), (seed, action)
            assert not machine.is_kept_out, (seed, action)


@seeds
def test_no_machine_has_two_actions_or_two_claims(seeds: range) -> None:
    for seed in seeds:
        view = seen(seed)
        machines = [a.machine for a in view.plan]
        assert len(machines) == len(set(machines)), seed
        claimed = [mid for row in view.rows for mid in row.claims]
        assert len(claimed) == len(set(claimed)), seed
        assert view.plan.verdicts.claimed.sum() == len(claimed), seed
        for row, count in zip(view.rows, view.plan.verdicts.claimed, strict=True):
            assert len(row.claims) == count, (seed, row.position)


@seeds
def test_a_claimed_machine_serves_the_claiming_cluster_and_stays(seeds: range) -> None:
    going = {ActionKind.RECLAIM, ActionKind.PREEMPT, ActionKind.DELETE}
    for seed in seeds:
        view = seen(seed)
        for row in view.rows:
            for mid in row.claims:
                machine, action = view.machines[mid], view.actions.get(mid)
                assert machine.state in CLAIMABLE, (seed, mid)
                assert action is None or action.kind not in going, (seed, mid)
                if mid in row.taken:
                    assert action is not None, (seed, mid)
                    assert action.cluster == row.need.cluster, (seed, mid)
                    continue
                stamp = machine.stamp
                owner = machine.cluster or (stamp.cluster if stamp is not None else "")
                assert owner == row.need.cluster, (seed, mid)


@seeds
def test_what_is_taken_is_claimed_and_stamped_for_the_need_that_took_it(seeds: range) -> None:
    for seed in seeds:
        view = seen(seed)
        plan = view.plan
        given = {
            plan.fleet.ids[int(m)]: plan.fleet.symbols.stamp(int(i), int(s))
            for m, i, s in zip(
                plan.stamps.machine, plan.stamps.identity, plan.stamps.sequence, strict=True
            )
        }
        for row in view.rows:
            keys = {need.stamp_key for need in row.members}
            for mid in row.claims:
                stamp = given.get(mid, view.machines[mid].stamp)
                assert stamp is not None, (seed, mid)
                assert stamp.key in keys, (seed, mid)
            assert set(row.taken) <= set(row.claims) & given.keys(), seed


@seeds
def test_pinned_demand_is_never_newly_placed_on_an_interruptible_machine(seeds: range) -> None:
    for seed in seeds:
        view = seen(seed)
        for row in view.rows:
            if not row.need.profile.interruption.pinned:
                continue
            keys = {need.stamp_key for need in row.members}
            for mid in (*row.claims, *row.picks):
                machine = view.machines[mid]
                kept = mid not in row.taken and machine.stamp is not None
                if kept and machine.stamp is not None and machine.stamp.key in keys:
                    continue
                assert machine.interruption_probability == 0, (seed, mid)


@seeds
def test_stamps_given_in_one_cycle_are_numbered_apart_and_later_than_any_before(
    seeds: range,
) -> None:
    for seed in seeds:
        view = seen(seed)
        plan = view.plan
        before = {m.id: m.stamp for m in view.case.machines}
        fresh = []
        for machine, sequence in zip(plan.stamps.machine, plan.stamps.sequence, strict=True):
            stamp = before[plan.fleet.ids[int(machine)]]
            if stamp is None or stamp.sequence != sequence:
                fresh.append(int(sequence))
        fresh += plan.preempted_for.sequence.tolist()
        assert len(fresh) == len(set(fresh)), seed
        assert all(number > 10**12 for number in fresh), seed
        assert plan.carry.last_sequence == max(fresh, default=0), seed
