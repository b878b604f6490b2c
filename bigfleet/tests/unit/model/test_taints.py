"""Taints and tolerations: the rules of Kubernetes, and what is refused."""

import pytest

from bigfleet.model import (
    Machine,
    MachineError,
    MachineState,
    Profile,
    Taint,
    TaintError,
    Toleration,
    admits,
    canonical_taints,
    untolerated,
    validate_machine,
)
from bigfleet.model.validation import MOST_TAINTS

GPU = Taint.of("nvidia.com/gpu", "present", "NoSchedule")
EVICTING = Taint.of("nvidia.com/gpu", "present", "NoExecute")
PREFERRED = Taint.of("nvidia.com/gpu", "present", "PreferNoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration.of("nvidia.com/gpu", "Exists"), True),
        (Toleration.of("nvidia.com/gpu", "Equal", "present"), True),
        (Toleration.of("nvidia.com/gpu", "", "present"), True),
        (Toleration.of("nvidia.com/gpu", "Equal", "absent"), False),
        (Toleration.of("nvidia.com/gpu", "Equal"), False),
        (Toleration.of("amd.com/gpu", "Exists"), False),
        (Toleration.of(operator="Exists"), True),
        (Toleration.of(operator="Exists", effect="NoSchedule"), True),
        (Toleration.of(operator="Exists", effect="NoExecute"), False),
        (Toleration.of("nvidia.com/gpu", "Exists", effect="NoSchedule"), True),
        (Toleration.of("nvidia.com/gpu", "Exists", effect="NoExecute"), False),
    ],
)
def test_a_toleration_covers_a_taint_by_key_operator_value_and_effect(
    toleration: Toleration, covers: bool
) -> None:
    assert toleration.tolerates(GPU) is covers


def test_a_toleration_without_effect_covers_all_effects() -> None:
    anything = Toleration.of("nvidia.com/gpu", "Exists")
    assert untolerated([GPU, EVICTING, PREFERRED], [anything]) == []


@pytest.mark.parametrize("taint", [GPU, EVICTING])
def test_a_binding_taint_keeps_a_machine_from_needs_that_do_not_tolerate_it(taint: Taint) -> None:
    assert not admits([taint], [])
    assert admits([taint], [Toleration.of("nvidia.com/gpu", "Exists")])


def test_every_binding_taint_must_be_tolerated() -> None:
    other = Taint.of("dedicated", "batch")
    assert not admits([GPU, other], [Toleration.of("nvidia.com/gpu", "Exists")])


def test_a_preferred_taint_keeps_nothing_away() -> None:
    assert admits([PREFERRED], [])


def test_a_taint_is_written_as_kubectl_writes_it() -> None:
    assert str(GPU) == "nvidia.com/gpu=present:NoSchedule"
    assert str(Taint.of("spot")) == "spot:NoSchedule"


def test_taints_have_one_order() -> None:
    assert canonical_taints([GPU, EVICTING, GPU]) == canonical_taints([EVICTING, GPU])


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Taint.of(""), "no key"),
        (lambda: Taint.of("a", "", "Sometimes"), "'Sometimes' of 'a' is unknown"),
        (lambda: Toleration.of("a", "Exists", "b"), "Exists takes no value, but has 'b'"),
        (lambda: Toleration.of("a", "Gt", "1"), "operator 'Gt' is unknown"),
        (lambda: Toleration.of("", "Equal", "b"), "must have the operator Exists"),
        (lambda: Toleration.of("a", "Exists", effect="Never"), "'Never' of 'a' is unknown"),
    ],
)
def test_what_kubernetes_refuses_is_refused_with_its_name(build: object, words: str) -> None:
    with pytest.raises(TaintError, match=words):
        build()  # type: ignore[operator]


def test_a_machine_with_very_many_taints_is_refused() -> None:
    many = canonical_taints(Taint.of(f"key-{i}") for i in range(MOST_TAINTS + 1))
    with pytest.raises(MachineError, match=f"{MOST_TAINTS + 1} taints"):
        validate_machine(Machine("m", MachineState.SPECULATIVE, taints=many))


def test_tolerations_change_the_fingerprint_and_the_shape() -> None:
    plain = Profile.of()
    tolerant = Profile.of(tolerations=[Toleration.of("a", "Exists")])
    other = Profile.of(tolerations=[Toleration.of("a", "Exists", effect="NoSchedule")])
    assert len({p.fingerprint for p in (plain, tolerant, other)}) == 3
    assert len({p.shape_fingerprint for p in (plain, tolerant, other)}) == 3


def test_the_order_of_tolerations_does_not_matter() -> None:
    a, b = Toleration.of("a", "Exists"), Toleration.of("b", "Equal", "c")
    one, other = Profile.of(tolerations=[a, b]), Profile.of(tolerations=[b, a, b])
    assert one == other
    assert one.fingerprint == other.fingerprint
