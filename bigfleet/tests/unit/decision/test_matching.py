"""Requirements against classes and against topology columns: all seven operators, both ways."""

from random import Random

import numpy as np
import pytest

from bigfleet.decision import Engine, Policy
from bigfleet.decision.matcher import Matcher, column_mask
from bigfleet.inventory import Inventory
from bigfleet.model import LABEL_ARCH, LABEL_OS, Machine, Need, Profile, Taint, Toleration
from bigfleet.model.columns import Demand, Symbols
from bigfleet.model.columns.classes import ClassAnswers
from bigfleet.model.match_set import MatchSet
from worlds import NOW, RACK, decide, label, machine, need, replace

FLEET = {"m-1": "1", "m-2": "5", "m-3": "x", "m-4": None}
CASES = [
    (("In", "1", "x"), {"m-1", "m-3"}),
    (("NotIn", "1", "x"), {"m-2", "m-4"}),
    (("Exists",), {"m-1", "m-2", "m-3"}),
    (("DoesNotExist",), {"m-4"}),
    (("Gt", "1"), {"m-2"}),
    (("Lt", "5"), {"m-1"}),
    (("Same", "5", "x"), {"m-2", "m-3"}),
]


def fleet(key: str) -> list[Machine]:
    return [
        machine(name, labels={} if value is None else {key: value}) for name, value in FLEET.items()
    ]


def row(key: str, wish: tuple[str, ...]) -> Need:
    pods = need(cpu=16, unit=4)
    return replace(pods, profile=Profile.of([label(key, *wish)], priority=100))


@pytest.mark.parametrize("key", ["pool", RACK], ids=["of a class", "of a column"])
@pytest.mark.parametrize(("wish", "matching"), CASES, ids=[case[0][0] for case in CASES])
def test_each_operator_means_the_same_on_class_labels_and_topology_columns(
    key: str, wish: tuple[str, ...], matching: set[str]
) -> None:
    outcome = decide(fleet(key), [row(key, wish)])
    if wish[0] == "Same":
        # A gang of four finds no place, but every matching machine is counted.
        assert outcome.plan.verdicts.matching[0].sum() == len(matching)
    else:
        assert outcome.serves() == matching


def test_requirements_on_classes_and_columns_must_all_hold() -> None:
    wishes = [label(RACK, "NotIn", "r-1"), label("pool", "In", "a"), label(RACK, "Exists")]
    rows = [replace(need(cpu=16, unit=4), profile=Profile.of(wishes, priority=100))]
    machines = [
        machine("m-1", rack="r-1", labels={"pool": "a"}),
        machine("m-2", rack="r-2", labels={"pool": "b"}),
        machine("m-3", rack="r-2", labels={"pool": "a"}),
        machine("m-4", labels={"pool": "a"}),
    ]
    assert decide(machines, rows).serves() == {"m-3"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("node.kubernetes.io/instance-type", "t4"),
        ("topology.kubernetes.io/zone", "z-1"),
        ("bigfleet.lucy.sh/capacity-type", "on-demand"),
    ],
)
def test_three_labels_are_always_matchable_from_the_fields(key: str, value: str) -> None:
    wish = [label(key, "In", value)]
    profile = Profile.of(wish, priority=100)
    fitting = machine("m-1", labels={key: "something else"})
    assert decide([fitting], [replace(need(), profile=profile)]).satisfied()


def test_a_mask_says_for_each_value_and_for_absence_whether_it_holds() -> None:
    inventory = Inventory(Symbols())
    inventory.load([machine("m-1", rack="r-1"), machine("m-2", rack="r-2"), machine("m-3")])
    columns = inventory.snapshot()
    assert column_mask(label(RACK, "In", "r-2"), columns).tolist() == [0, 0, 1]
    assert column_mask(label(RACK, "NotIn", "r-2"), columns).tolist() == [1, 1, 0]
    assert column_mask(label(RACK, "Exists"), columns).tolist() == [0, 1, 1]
    assert column_mask(label(RACK, "Same"), columns).tolist() == [0, 1, 1]
    assert column_mask(label(RACK, "Same", "r-1"), columns).tolist() == [0, 1, 0]
    assert column_mask(label(RACK, "DoesNotExist"), columns).tolist() == [1, 0, 0]


def test_matches_that_are_kept_follow_classes_that_change() -> None:
    engine, symbols = Engine(), Symbols()
    inventory = Inventory(symbols)
    wanted = replace(need(cpu=8, unit=4), profile=Profile.of([label("pool", "In", "a")]))
    demand = Demand.of([wanted], {}, symbols)
    inventory.load([machine("m-1", labels={"pool": "a"}), machine("m-2", labels={"pool": "b"})])
    taken = [a.machine for a in engine.decide(inventory.snapshot(), demand, Policy(), now=NOW)]
    assert taken == ["m-1"]
    inventory.put(machine("m-1", labels={"pool": "c"}))
    inventory.put(machine("m-2", labels={"pool": "a"}))
    taken = [a.machine for a in engine.decide(inventory.snapshot(), demand, Policy(), now=NOW)]
    assert taken == ["m-2"]


def answers_kept(matcher: Matcher) -> int:
    return 0 if matcher._kept is None else len(matcher._kept.answers)


def test_what_is_kept_is_bounded() -> None:
    matcher, inventory = Matcher(), Inventory(Symbols())
    inventory.load([machine("m-1", labels={"pool": "a"})])
    table = inventory.snapshot().classes
    for number in range(5):
        matcher.classes(MatchSet((label("pool", "In", str(number)),)), table)
    # Five requirements, and that taints do not count.
    matcher.forget_unused(limit=6)
    assert answers_kept(matcher) == 6
    matcher.forget_unused(limit=5)
    assert answers_kept(matcher) == 0
    assert matcher.classes(MatchSet((label("pool", "In", "a"),)), table).tolist() == [1]


WISHES = (
    *(label("pool", *wish) for wish, _ in CASES),
    label("size", "In", "1"),
    label("absent", "DoesNotExist"),
)
TAINTS = (
    (),
    (Taint.of("gpu"),),
    (Taint.of("gpu", "a", "NoExecute"), Taint.of("cheap", "", "PreferNoSchedule")),
    (Taint.of("cheap", "", "PreferNoSchedule"),),
)
TOLERATIONS = (None, (), (Toleration.of("gpu", "Exists"),), (Toleration.of("", "Exists"),))
DEFAULTS = ((), ((LABEL_ARCH, "amd64"),), ((LABEL_ARCH, "arm64"), (LABEL_OS, "linux")))


def drawn_set(rng: Random) -> MatchSet:
    wishes = tuple(rng.sample(WISHES, rng.randint(0, 3)))
    return MatchSet(wishes, rng.choice(TOLERATIONS), rng.choice(DEFAULTS))


def drawn_slots(rng: Random) -> tuple[list[dict[str, str]], list[tuple[Taint, ...]]]:
    values = {"pool": "15x", "size": "12", LABEL_ARCH: ("amd64", "arm64"), LABEL_OS: ("linux",)}
    labels = [
        {key: rng.choice(texts) for key, texts in values.items() if rng.random() < 0.7}
        for _ in range(rng.randint(1, 30))
    ]
    return labels, [rng.choice(TAINTS) for _ in labels]


@pytest.mark.parametrize("seed", range(60))
def test_classes_answer_as_each_of_them_would_alone(seed: int) -> None:
    rng = Random(seed)
    labels, taints = drawn_slots(rng)
    answers = ClassAnswers(tuple(labels), tuple(taints))
    for match_set in [drawn_set(rng) for _ in range(40)]:
        out = np.zeros(len(labels), np.uint8)
        answers.match(match_set, out)
        assert out.tolist() == [match_set.match(*slot) for slot in zip(labels, taints, strict=True)]


@pytest.mark.parametrize("seed", range(20))
def test_a_stack_of_match_sets_is_the_same_whatever_was_stacked_before(seed: int) -> None:
    rng, inventory = Random(seed), Inventory(Symbols())
    inventory.load([machine(f"m-{v}", labels={"pool": v}) for v in "15x"])
    table, matcher = inventory.snapshot().classes, Matcher()
    known = list(dict.fromkeys(drawn_set(rng) for _ in range(12)))
    matcher.sets.update({match_set: number for number, match_set in enumerate(known)})
    for _ in range(6):
        wanted = np.array(sorted(rng.sample(range(len(known)), rng.randint(1, len(known)))))
        stack = matcher.stacked(wanted.astype(np.int32), table)
        alone = [matcher.classes(known[number], table).tolist() for number in wanted]
        assert stack.tolist() == alone
