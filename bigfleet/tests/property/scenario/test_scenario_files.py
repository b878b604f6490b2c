"""Whatever a file holds, reading it gives a scenario or one line that says why not."""

import json

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.model import (
    CapacityType,
    MachineState,
    Need,
    PenaltyBucket,
    Profile,
    Requirement,
    RequirementOperator,
    Spread,
    SpreadMode,
)
from bigfleet.scenario.document import SHRUNK_AT, MachineRecord, Scenario, parse_scenario
from bigfleet.scenario.errors import ScenarioError
from bigfleet.scenario.state import ScenarioState
from bigfleet.scenario.writer import scenario_text

KEYS = st.sampled_from(
    [
        *("name", "machines", "needs", "start", "stride", "count", "instance_type", "zones"),
        *("rack_size", "labels", "capacity_type", "price", "interruption_probability"),
        *("allocatable", "state", "cluster", "assigned_need", "requirements", "aggregate"),
        *("min_unit", "priority", "interruption_bucket", "reclamation_bucket", "group"),
        *("arrival_ns", "spread", "key", "op", "values", "max_skew", "when", "cpu", "odd"),
    ]
)
WORDS = st.sampled_from(["In", "Gt", "Same", "Idle", "Configured", "Spot", "4", "1.5Gi", "-1", ""])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 60)
    | st.integers()
    | st.floats()
    | WORDS
    | st.text(max_size=8)
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


def record_like() -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(KEYS, JSON, max_size=4)


FILES = st.fixed_dictionaries(
    {},
    optional={
        "name": JSON,
        "machines": st.lists(record_like(), max_size=3) | JSON,
        "needs": st.lists(record_like() | st.just({"cluster": "c"}), max_size=3) | JSON,
    },
)


def refusal_of(text: str | bytes) -> str:
    """The line a text is refused with; nothing when it is a scenario the engine can be given."""
    try:
        scenario = parse_scenario(text, "file")
    except ScenarioError as error:
        return str(error)
    if scenario.machine_count <= 200:
        ScenarioState.of(scenario)
    return ""


def is_one_line(refusal: str) -> bool:
    return not refusal or (refusal.startswith("file: ") and "\n" not in refusal)


@given(FILES | JSON)
def test_any_json_is_a_scenario_or_one_line(value: object) -> None:
    assert is_one_line(refusal_of(json.dumps(value)))


@given(st.text(max_size=80) | st.binary(max_size=80))
def test_any_text_or_bytes_are_a_scenario_or_one_line(text: str | bytes) -> None:
    assert is_one_line(refusal_of(text))


PRINTABLE = st.characters(exclude_categories=["C", "Z"], include_characters=" ")


def texts(least: int = 0) -> st.SearchStrategy[str]:
    return st.text(PRINTABLE, min_size=least, max_size=6)


def amounts() -> st.SearchStrategy[dict[str, int]]:
    return st.dictionaries(texts(1), st.integers(0, 2**50), max_size=3)


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    key, operator = draw(texts(1)), draw(st.sampled_from(list(RequirementOperator)[:7]))
    if operator in (RequirementOperator.GT, RequirementOperator.LT):
        return Requirement.of(key, operator, [str(draw(st.integers(-99, 99)))])
    if operator in (RequirementOperator.EXISTS, RequirementOperator.DOES_NOT_EXIST):
        return Requirement.of(key, operator)
    return Requirement.of(key, operator, draw(st.lists(texts(), min_size=1, max_size=3)))


@st.composite
def needs(draw: st.DrawFn) -> Need:
    spread = st.builds(Spread, texts(1), st.integers(1, 9), st.sampled_from(list(SpreadMode)[:2]))
    buckets = st.sampled_from(PenaltyBucket)
    profile = Profile.of(
        draw(st.lists(requirements(), max_size=3)),
        draw(st.lists(spread, max_size=2)),
        draw(st.integers(-(2**31), 2**31 - 1)),
        draw(buckets),
        draw(buckets),
    )
    return Need(
        draw(texts(1)),
        profile,
        draw(amounts()),
        draw(amounts()),
        draw(texts()),
        draw(texts()),
        draw(st.integers(0, 2**62)),
        SHRUNK_AT,
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    rows = draw(st.lists(needs(), max_size=3))
    records, start = [], 0
    for _ in range(draw(st.integers(0, 3))):
        count, stride = draw(st.integers(0, 5)), draw(st.integers(1, 3))
        state = draw(st.sampled_from([MachineState.SPECULATIVE, MachineState.CONFIGURED]))
        bound = state is MachineState.CONFIGURED
        records.append(
            MachineRecord(
                start,
                stride,
                count,
                draw(texts()),
                tuple(draw(st.lists(texts(), max_size=3))),
                draw(st.integers(1, 60)),
                draw(st.dictionaries(texts(1), texts(), max_size=2)),
                draw(st.sampled_from(CapacityType)),
                draw(st.floats(0, 9e12)),
                draw(st.floats(0, 1)),
                draw(amounts()),
                state,
                draw(texts(1)) if bound else "",
                draw(st.integers(0, len(rows) - 1)) if rows else None,
            )
        )
        start += count * stride
    return Scenario(draw(texts()), tuple(records), tuple(rows))


@given(scenarios())
def test_a_scenario_written_and_read_again_is_the_same(scenario: Scenario) -> None:
    assert parse_scenario(scenario_text(scenario)) == scenario
