"""The oracles say what a correct provider answers; they are right on their own."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.harness.oracles import (
    CONFIGURED,
    CREATING,
    DRAINING,
    FAILED,
    IDLE,
    ROUND,
    SPECULATIVE,
    FenceOracle,
    misfit,
    price_misfit,
    quantity,
    word,
)
from bigfleet_conformance.harness.watch import stray

TOKENS = st.tuples(st.integers(0, 4), st.integers(0, 4))


@given(st.lists(TOKENS, max_size=40))
def test_the_fence_accepts_exactly_what_is_above_everything_before(
    tokens: list[tuple[int, int]],
) -> None:
    oracle, accepted = FenceOracle(), list[tuple[int, int]]()
    for token in tokens:
        newest = all(token > earlier for earlier in accepted)
        assert oracle.accepts("shard", "machine", *token) is newest
        if newest:
            accepted.append(token)


def test_pairs_of_the_fence_do_not_mix() -> None:
    oracle = FenceOracle()
    assert oracle.accepts("a", "m", 5, 5)
    assert oracle.accepts("b", "m", 1, 1)
    assert oracle.accepts("a", "n", 1, 1)
    assert not oracle.accepts("a", "m", 5, 5)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", "4"),
        ("0.5", "0.5"),
        (".5", "0.5"),
        ("500m", "0.5"),
        ("16Gi", str(16 * 2**30)),
        ("1e3", "1000"),
        ("2E", str(2 * 10**18)),
        ("1Ei", str(2**60)),
        ("100n", "1e-7"),
        ("-1", "-1"),
    ],
)
def test_quantities_parse(text: str, value: str) -> None:
    assert quantity(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "four", "16 GB", "1GiB", "1e", "Gi", "1_000"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"quantity|suffix"):
        quantity(text)


def machine(state: int, host: str = "", cluster: str = "", error: str = "") -> pb.Machine:
    found = pb.Machine(state=pb.MachineState.ValueType(state), cluster=cluster, last_error=error)
    if host:
        found.host.ref = host
    return found


@pytest.mark.parametrize(
    "good",
    [
        machine(SPECULATIVE),
        machine(CREATING),
        machine(CREATING, "h"),
        machine(IDLE, "h"),
        machine(CONFIGURED, "h", "c"),
        machine(DRAINING, "h", "c"),
        machine(FAILED, error="Timeout: x"),
        machine(FAILED, "h", "c", "Timeout: x"),
    ],
)
def test_records_that_fit_their_state(good: pb.Machine) -> None:
    assert misfit(good) == ""


@pytest.mark.parametrize(
    "bad",
    [
        machine(SPECULATIVE, "h"),
        machine(SPECULATIVE, cluster="c"),
        machine(CREATING, cluster="c"),
        machine(IDLE),
        machine(IDLE, "h", "c"),
        machine(CONFIGURED, "h"),
        machine(DRAINING, "h"),
        machine(FAILED),
    ],
)
def test_records_that_contradict_their_state(bad: pb.Machine) -> None:
    assert misfit(bad)


@pytest.mark.parametrize(
    ("price", "risk", "spot", "fits"),
    [
        (0.0, 0.0, False, True),
        (0.12, 0.05, True, True),
        (0.12, 0.0, True, False),
        (-1.0, 0.0, False, False),
        (float("nan"), 0.0, False, False),
        (float("inf"), 0.0, False, False),
        (0.1, 1.01, False, False),
        (0.1, float("nan"), False, False),
    ],
)
def test_prices_have_bounds(price: float, risk: float, spot: bool, fits: bool) -> None:
    record = pb.Machine(
        price_per_hour=price,
        interruption_probability=risk,
        capacity_type=pb.CAPACITY_TYPE_SPOT if spot else pb.CAPACITY_TYPE_ON_DEMAND,
    )
    assert (price_misfit(record) == "") is fits


def test_a_path_may_miss_states_but_not_invent_them() -> None:
    assert stray(ROUND, ROUND) == ""
    assert stray((SPECULATIVE, IDLE, CONFIGURED, IDLE), ROUND) == ""
    assert stray((SPECULATIVE, IDLE, DRAINING, CONFIGURED), ROUND) == "DRAINING -> CONFIGURED"
    assert stray((FAILED,), ROUND) == "FAILED"


def test_states_have_names() -> None:
    assert word(CONFIGURED) == "CONFIGURED"
    assert word(99) == "state 99"
