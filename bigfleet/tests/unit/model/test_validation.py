"""Which machine records a shard takes from a provider."""

import math
from dataclasses import replace

import pytest

from bigfleet.model import REJECT_REASONS, HostRef, Machine, MachineError, MachineState
from bigfleet.model.validation import LONGEST_BYTES, validate_machine

S = MachineState
HOST = HostRef("region-1", "i-1")


def machine(
    state: MachineState, host: HostRef | None = None, cluster: str = "", last_error: str = ""
) -> Machine:
    return Machine("m-1", state, host, cluster=cluster, last_error=last_error)


def refusal(record: Machine) -> str | None:
    try:
        validate_machine(record)
    except MachineError as error:
        return error.reason
    return None


@pytest.mark.parametrize("host", [None, HOST])
@pytest.mark.parametrize("cluster", ["", "c-000"])
@pytest.mark.parametrize("last_error", ["", "HostLost: gone"])
@pytest.mark.parametrize("state", S)
def test_each_state_asks_for_its_host_cluster_and_error(
    state: MachineState, host: HostRef | None, cluster: str, last_error: str
) -> None:
    good = {
        S.UNSPECIFIED: False,
        S.SPECULATIVE: host is None and not cluster,
        S.CREATING: not cluster,
        S.IDLE: host is not None,
        S.CONFIGURING: host is not None,
        S.CONFIGURED: host is not None and cluster != "",
        S.DRAINING: host is not None and cluster != "",
        S.DELETING: host is not None,
        S.FAILED: last_error != "",
    }[state]
    assert refusal(machine(state, host, cluster, last_error)) == (None if good else "structural")


def test_a_host_without_a_reference_is_no_host() -> None:
    assert refusal(machine(S.SPECULATIVE, HostRef())) is None
    assert refusal(machine(S.IDLE, HostRef("region-1", ""))) == "structural"


@pytest.mark.parametrize("price", [math.nan, -0.01, -math.inf, math.inf, 1e13])
def test_a_price_is_money_that_can_be_counted(price: float) -> None:
    record = replace(machine(S.IDLE, HOST), price_per_hour=price)
    assert refusal(record) == "price"


@pytest.mark.parametrize("probability", [math.nan, -0.01, 1.01, math.inf])
def test_a_probability_lies_between_nothing_and_certainty(probability: float) -> None:
    record = replace(machine(S.IDLE, HOST), interruption_probability=probability)
    assert refusal(record) == "interruption_probability"


@pytest.mark.parametrize(("price", "probability"), [(0.0, 0.0), (0.48, 1.0), (1e6, 0.05)])
def test_bounds_themselves_are_good(price: float, probability: float) -> None:
    record = machine(S.IDLE, HOST)
    assert (
        refusal(replace(record, price_per_hour=price, interruption_probability=probability)) is None
    )


def test_an_id_is_needed_and_no_amount_is_negative() -> None:
    record = machine(S.IDLE, HOST)
    assert refusal(replace(record, id="")) == "structural"
    assert refusal(replace(record, resources={"cpu": -1})) == "structural"
    assert refusal(replace(record, allocatable={"cpu": -1})) == "structural"


@pytest.mark.parametrize("letter", ["x", "\u20ac"])
def test_ids_and_hosts_are_texts_that_a_column_can_keep(letter: str) -> None:
    most = LONGEST_BYTES // len(letter.encode())
    good = replace(machine(S.IDLE, HOST), id=letter * most, host=HostRef("r", letter * most))
    assert refusal(good) is None
    assert refusal(replace(good, id=letter * (most + 1))) == "structural"
    assert refusal(replace(good, host=HostRef("r", letter * (most + 1)))) == "structural"


def test_a_refusal_names_the_machine_and_the_remedy() -> None:
    with pytest.raises(MachineError, match="'m-1' is Idle but has no host: report the host"):
        validate_machine(machine(S.IDLE))
    assert REJECT_REASONS == ("price", "interruption_probability", "structural")
