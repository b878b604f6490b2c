"""Node selector and affinity of a Pod, as requirements."""

from typing import Any

from bigfleet.podcontroller.pods import DemandPod
from bigfleet.podcontroller.requirements import ANYWHERE, NodeRequirements, wanted_nodes
from kubeobjects import pod, read

Expressions = list[tuple[Any, ...]]


def term(*expressions: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "matchExpressions": [
            {"key": key, "operator": operator, "values": list(values)}
            for key, operator, *values in expressions
        ]
    }


def wanted(*terms: dict[str, Any], selector: dict[str, str] | None = None) -> NodeRequirements:
    spec: dict[str, Any] = {}
    if selector:
        spec["nodeSelector"] = selector
    if terms:
        required = {"nodeSelectorTerms": list(terms)}
        name = "requiredDuringSchedulingIgnoredDuringExecution"
        spec["affinity"] = {"nodeAffinity": {name: required}}
    return wanted_nodes(read(DemandPod, pod(**spec)).spec)


def texts(found: NodeRequirements) -> list[str]:
    assert found.requirements is not None
    return [f"{r.key} {r.operator} {','.join(r.values)}".strip() for r in found.requirements]


def test_a_pod_that_asks_for_nothing_asks_for_any_machine() -> None:
    assert wanted().requirements == (ANYWHERE,)
    assert texts(wanted()) == ["node.kubernetes.io/instance-type Exists"]


def test_selector_and_affinity_both_have_to_hold() -> None:
    found = wanted(term(("zone", "NotIn", "a")), selector={"disk": "ssd"})
    assert texts(found) == ["disk In ssd", "zone NotIn a"]
    assert not found.notes


def test_terms_that_differ_in_the_values_of_one_key_become_one() -> None:
    found = wanted(
        term(("zone", "In", "a"), ("arch", "In", "arm64")),
        term(("arch", "In", "arm64"), ("zone", "In", "b", "c")),
    )
    assert texts(found) == ["arch In arm64", "zone In a,b,c"]
    assert not found.notes


def test_of_other_terms_the_first_is_used_and_the_owner_is_told() -> None:
    found = wanted(term(("zone", "In", "a")), term(("arch", "In", "arm64")))
    assert texts(found) == ["zone In a"]
    assert "2 terms" in found.notes[0]


def test_two_equal_terms_are_one() -> None:
    found = wanted(term(("zone", "In", "a")), term(("zone", "In", "a")))
    assert texts(found) == ["zone In a"]
    assert not found.notes


def test_greater_and_less_are_kept() -> None:
    assert texts(wanted(term(("cores", "Gt", "007"), ("age", "Lt", "3")))) == [
        "age Lt 3",
        "cores Gt 7",
    ]


def test_a_term_that_can_never_hold_is_dropped_and_said() -> None:
    found = wanted(term(("cores", "Gt", "many")), term(("zone", "In", "a")))
    assert texts(found) == ["zone In a"]
    assert "can never hold" in found.notes[0]


def test_a_pod_whose_every_term_can_never_hold_can_run_nowhere() -> None:
    found = wanted(term(("cores", "Gt", "many")))
    assert found.requirements is None
    assert any("any node" in note for note in found.notes)
    assert wanted({}).requirements is None


def test_a_field_names_single_nodes_and_is_left_out() -> None:
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n-1"]}]}
    found = wanted(by_name)
    assert found.requirements == (ANYWHERE,)
    assert "field" in found.notes[0]


def test_a_selector_without_a_label_holds_nowhere_and_is_said() -> None:
    found = wanted(selector={"": "a"})
    assert found.requirements is None
    assert "node selector" in found.notes[0]
