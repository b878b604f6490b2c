"""Taints of machines, tolerations of rows, and defaults of architecture and system."""

from dataclasses import replace as changed

import pytest

from bigfleet.decision import ActionKind, Reason
from bigfleet.model import (
    LABEL_ARCH,
    LABEL_INSTANCE_TYPE,
    LABEL_OS,
    Machine,
    Need,
    Taint,
    Toleration,
)
from bigfleet.model.facts import ClusterFacts
from worlds import RACK, A, B, S, decide, label, machine, need, serving

K = ActionKind
GPU = Taint.of("nvidia.com/gpu", "present")
PREFERRED = Taint.of("cheap", "", "PreferNoSchedule")
STATED = {A: ClusterFacts(tolerations_stated=True), B: ClusterFacts(tolerations_stated=True)}
AMD = {A: ClusterFacts(default_arch="amd64", default_os="linux")}


def tainted(made: Machine, *taints: Taint) -> Machine:
    return changed(made, taints=taints or (GPU,))


def tolerant(row: Need, *tolerations: Toleration) -> Need:
    wanted = tolerations or (Toleration.of("nvidia.com/gpu", "Exists"),)
    return changed(row, profile=changed(row.profile, tolerations=wanted))


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_tainted_machine_is_taken_for_rows_that_tolerate_the_taint_only(effect: str) -> None:
    fleet = [tainted(machine("m-1"), Taint.of("nvidia.com/gpu", "present", effect))]
    outcome = decide(fleet, [need()], facts=STATED)
    assert not outcome.does
    assert outcome.reason() is Reason.NO_MATCHING_SUPPLY
    assert decide(fleet, [tolerant(need())], facts=STATED).serves() == {"m-1"}


def test_taints_are_not_looked_at_for_clusters_that_do_not_state_their_tolerations() -> None:
    fleet = [tainted(machine("m-1"))]
    assert decide(fleet, [need()]).serves() == {"m-1"}
    both = {A: ClusterFacts(), B: ClusterFacts(tolerations_stated=True)}
    assert decide(fleet, [need(B, priority=900), need(A)], facts=both).serves(1) == {"m-1"}


def test_two_clusters_with_one_profile_are_matched_by_what_each_states() -> None:
    fleet = [tainted(machine("m-1")), machine("m-2")]
    facts = {A: ClusterFacts(), B: ClusterFacts(tolerations_stated=True)}
    outcome = decide(fleet, [need(B, priority=200), need(A)], facts=facts)
    assert outcome.serves(0) == {"m-2"}
    assert outcome.serves(1) == {"m-1"}


def test_a_taint_that_is_only_preferred_decides_among_machines_of_the_same_cost() -> None:
    fleet = [tainted(machine("m-1"), PREFERRED), machine("m-2"), machine("m-3", price=2.0)]
    assert decide(fleet, [need()], facts=STATED).serves() == {"m-2"}
    tolerates = tolerant(need(), Toleration.of("cheap", "Exists"))
    assert decide(fleet, [tolerates], facts=STATED).serves() == {"m-1"}
    assert decide(fleet, [need(cpu=8, unit=4)], facts=STATED).serves() == {"m-1", "m-2"}


def test_a_taint_that_is_only_preferred_goes_before_the_reclamation_penalty() -> None:
    other = need(B, reclamation=9)
    fleet = [tainted(machine("m-1"), PREFERRED), machine("m-2", serves=other)]
    assert decide(fleet, [need()], facts=STATED).serves() == {"m-2"}


def test_preferred_taints_order_slots_that_must_be_created_and_excess() -> None:
    slots = [tainted(machine("m-1", S.SPECULATIVE), PREFERRED), machine("m-2", S.SPECULATIVE)]
    assert decide(slots, [need()], facts=STATED).serves() == {"m-2"}
    gone = need(B)
    held = [tainted(serving("m-1", gone), PREFERRED), serving("m-2", gone)]
    assert decide(held, [need()], facts=STATED).does["m-2"] is K.PREEMPT


def test_a_tainted_machine_is_no_victim_for_rows_that_do_not_tolerate_it() -> None:
    low = tolerant(need(B, priority=1))
    fleet = [tainted(serving("m-1", low))]
    assert not decide(fleet, [need(priority=900), low], facts=STATED).does
    high = tolerant(need(priority=900))
    assert decide(fleet, [high, low], facts=STATED).does == {"m-1": K.PREEMPT}


def test_a_machine_whose_taint_is_not_tolerated_no_longer_serves_its_row() -> None:
    row = need()
    fleet = [tainted(serving("m-1", row)), machine("m-2")]
    outcome = decide(fleet, [row], facts=STATED)
    assert outcome.does == {"m-1": K.RECLAIM, "m-2": K.BOOTSTRAP}


def test_a_gang_is_placed_in_a_rack_whose_taints_it_tolerates() -> None:
    racks = [
        *(tainted(machine(f"m-{i}", rack="r-1")) for i in (1, 2)),
        *(machine(f"m-{i}", rack="r-2", price=5.0) for i in (3, 4)),
    ]
    gang = need(cpu=8, unit=4, same=RACK)
    assert decide(racks, [gang], facts=STATED).serves() == {"m-3", "m-4"}
    assert decide(racks, [tolerant(gang)], facts=STATED).domain() in ("r-1", "r-2")


def test_a_gang_is_not_folded_onto_a_machine_that_it_does_not_tolerate() -> None:
    large = tainted(machine("m-0", cpu=8, rack="r-1"))
    rack = [machine(f"m-{i}", rack="r-2") for i in (1, 2)]
    gang = need(cpu=8, unit=4, same=RACK)
    assert decide([large, *rack], [gang], facts=STATED).serves() == {"m-1", "m-2"}


# -- architecture and operating system -------------------------------------------------------


def of_arch(name: str, arch: str, state: object = S.IDLE) -> Machine:
    return machine(name, state, labels={LABEL_ARCH: arch})  # type: ignore[arg-type]


def test_a_row_without_an_architecture_gets_machines_of_the_clusters_default() -> None:
    fleet = [of_arch("m-1", "arm64"), of_arch("m-2", "amd64")]
    assert decide(fleet, [need(cpu=8, unit=4)], facts=AMD).serves() == {"m-2"}
    assert decide(fleet, [need(cpu=8, unit=4)]).serves() == {"m-1", "m-2"}


def test_a_machine_without_the_label_counts_as_amd64_and_linux() -> None:
    assert decide([machine("m-1")], [need()], facts=AMD).serves() == {"m-1"}
    arm = {A: ClusterFacts(default_arch="arm64")}
    assert not decide([machine("m-1")], [need()], facts=arm).does
    windows = [machine("m-1", labels={LABEL_OS: "windows"})]
    assert not decide(windows, [need()], facts=AMD).does


@pytest.mark.parametrize(
    "where",
    [label(LABEL_ARCH, "In", "arm64"), label(LABEL_ARCH, "Exists"),
     label(LABEL_INSTANCE_TYPE, "In", "t4")],
)  # fmt: skip
def test_a_row_that_names_the_label_or_an_instance_type_is_free_of_the_default(
    where: object,
) -> None:
    row = need(where=[where])  # type: ignore[list-item]
    assert decide([of_arch("m-1", "arm64")], [row], facts=AMD).serves() == {"m-1"}


def test_any_instance_type_at_all_names_none() -> None:
    row = need(where=[label(LABEL_INSTANCE_TYPE, "Exists")])
    assert not decide([of_arch("m-1", "arm64")], [row], facts=AMD).does


def test_a_default_takes_no_machine_from_a_row_that_it_serves() -> None:
    row = need()
    fleet = [serving("m-1", row, labels={LABEL_ARCH: "arm64"}), of_arch("m-2", "amd64")]
    outcome = decide(fleet, [row], facts=AMD)
    assert not outcome.does
    assert outcome.satisfied()


def test_a_default_keeps_preemption_off_other_architectures() -> None:
    low = need(B, priority=1)
    fleet = [serving("m-1", low, labels={LABEL_ARCH: "arm64"})]
    assert not decide(fleet, [need(priority=900), low], facts=AMD).does


def test_a_reserved_machine_of_another_architecture_does_not_draw_a_gang() -> None:
    gang = need(cpu=8, unit=4, same=RACK)
    arm = {LABEL_ARCH: "arm64"}
    fleet = [
        *(machine(f"m-{i}", rack="r-1", serves=gang, labels=arm) for i in (1, 2)),
        *(machine(f"m-{i}", rack="r-2") for i in (3, 4)),
    ]
    assert decide(fleet, [gang], facts=AMD).serves() == {"m-3", "m-4"}
