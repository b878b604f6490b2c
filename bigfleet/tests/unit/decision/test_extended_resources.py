"""Devices, huge pages and local disks are dimensions like any other, of every vendor."""

import pytest

from bigfleet.decision import Reason
from worlds import decide, machine, need

NAMES = (
    "amd.com/gpu",
    "aws.amazon.com/neuron",
    "habana.ai/gaudi",
    "hugepages-2Mi",
    "hugepages-1Gi",
    "ephemeral-storage",
)


@pytest.mark.parametrize("name", NAMES)
def test_only_a_machine_that_offers_it_is_taken(name: str) -> None:
    fleet = [machine("m-1", price=0.1), machine("m-2", price=9.0, **{name: 8})]  # type: ignore[arg-type]
    row = need(cpu=4, **{name: 2})  # type: ignore[arg-type]
    assert decide(fleet, [row]).serves() == {"m-2"}
    without = decide(fleet[:1], [row])
    assert not without.does
    assert without.reason() is Reason.NO_MATCHING_SUPPLY


@pytest.mark.parametrize("name", NAMES)
def test_its_amounts_add_up_over_machines(name: str) -> None:
    fleet = [machine(f"m-{i}", cpu=8, **{name: 4}) for i in range(4)]  # type: ignore[arg-type]
    row = need(cpu=4, unit=1, **{name: 12})  # type: ignore[arg-type]
    outcome = decide(fleet, [row])
    assert len(outcome.serves()) == 3
    assert outcome.satisfied()
