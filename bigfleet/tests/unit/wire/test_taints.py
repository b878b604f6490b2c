"""Taints of records and tolerations of rows, from the wire and back."""

import pytest

from bigfleet.model import MachineError, Need, Profile, Taint, TaintError, Toleration
from bigfleet.wire.machines import machine_from_proto, machine_to_proto
from bigfleet.wire.needs import need_from_proto, need_to_proto, profile_from_proto
from bigfleet.wire.taints import LABEL_TAINTS, taints_of_label
from bigfleet_api.v1alpha1 import capacity_pb2, provider_pb2


def record(*taints: tuple[str, str, str], label: str = "") -> provider_pb2.Machine:
    return provider_pb2.Machine(
        id="m-1",
        state=provider_pb2.MACHINE_STATE_SPECULATIVE,
        labels={LABEL_TAINTS: label} if label else {},
        taints=[provider_pb2.Taint(key=k, value=v, effect=e) for k, v, e in taints],
    )


def test_taints_of_a_record_have_one_order() -> None:
    a, b = ("spot", "", "NoExecute"), ("gpu", "present", "NoSchedule")
    machine = machine_from_proto(record(a, b, a), "p", "r")
    assert machine.taints == machine_from_proto(record(b, a), "p", "r").taints
    assert machine.taints == (Taint.of(*b), Taint.of(*a))
    assert machine_from_proto(machine_to_proto(machine), "p", "r").taints == machine.taints


@pytest.mark.parametrize(
    ("text", "taints"),
    [
        ("gpu=yes:NoSchedule", [("gpu", "yes", "NoSchedule")]),
        ("gpu:NoExecute", [("gpu", "", "NoExecute")]),
        (
            "a=1:NoSchedule, example.com/b=x=y:PreferNoSchedule",
            [("a", "1", "NoSchedule"), ("example.com/b", "x=y", "PreferNoSchedule")],
        ),
        ("a=1:Never,=1:NoSchedule,nonsense,b:NoSchedule", [("b", "", "NoSchedule")]),
    ],
)
def test_taints_in_the_label_of_an_earlier_release_are_read(
    text: str, taints: list[tuple[str, str, str]]
) -> None:
    assert taints_of_label(text) == tuple(Taint.of(*one) for one in taints)
    assert machine_from_proto(record(label=text), "p", "r").taints == taints_of_label(text)


def test_the_field_wins_over_the_label() -> None:
    both = record(("gpu", "", "NoSchedule"), label="other:NoSchedule")
    assert [t.key for t in machine_from_proto(both, "p", "r").taints] == ["gpu"]


@pytest.mark.parametrize(
    ("taint", "words"),
    [(("gpu", "", "Never"), "'Never' of 'gpu' is unknown"), (("", "", "NoSchedule"), "key"),
     (("gpu", "no such value", "NoSchedule"), "no such value")],
)  # fmt: skip
def test_a_record_with_a_taint_that_no_node_can_have_is_refused(
    taint: tuple[str, str, str], words: str
) -> None:
    with pytest.raises(MachineError, match=words):
        machine_from_proto(record(taint), "p", "r")


def test_tolerations_of_a_row_survive_the_wire() -> None:
    tolerations = [Toleration.of("gpu", "Exists"), Toleration.of("team", "Equal", "a", "NoExecute")]
    need = Need("c", Profile.of(tolerations=tolerations), {"cpu": 1000}, {"cpu": 1000})
    row = need_to_proto(need)
    assert need_from_proto(row, "c").profile == need.profile
    assert profile_from_proto(row).fingerprint == need.profile.fingerprint


def test_a_toleration_that_kubernetes_would_refuse_refuses_the_row() -> None:
    wrong = capacity_pb2.Toleration(key="gpu", operator="Exists", value="present")
    with pytest.raises(TaintError, match="Exists takes no value"):
        profile_from_proto(capacity_pb2.CapacityNeed(tolerations=[wrong]))
