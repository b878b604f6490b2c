"""Merged terms hold exactly where one of the terms does; resources agree with a plain reading."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bigfleet.kube.podspec import pod_resources
from bigfleet.model import Requirement, RequirementOperator, matches_all
from bigfleet.podcontroller.pods import DemandPod
from bigfleet.podcontroller.request import request_name
from bigfleet.podcontroller.requirements import merged
from kubeobjects import pod, read

keys = st.sampled_from(["k", "l"])
values = st.sets(st.sampled_from(["1", "2", "3"]), min_size=1)
requirements = st.one_of(
    st.builds(lambda k, v: Requirement.of(k, RequirementOperator.IN, v), keys, values),
    st.builds(lambda k, v: Requirement.of(k, RequirementOperator.NOT_IN, v), keys, values),
    st.builds(lambda k: Requirement.of(k, RequirementOperator.EXISTS), keys),
)
terms = st.lists(st.frozensets(requirements, min_size=1, max_size=3), min_size=1, max_size=3)
labels = st.dictionaries(keys, st.sampled_from(["1", "2", "3", "4"]))


@given(terms, labels)
def test_a_merged_term_holds_exactly_where_one_of_the_terms_does(
    found: list[frozenset[Requirement]], node: dict[str, str]
) -> None:
    one = merged(found)
    if one is not None:
        assert matches_all(one, node) == any(matches_all(term, node) for term in found)


amounts = st.integers(0, 8)
containers = st.lists(st.tuples(amounts, st.booleans()), max_size=4)


@given(st.lists(amounts, min_size=1, max_size=3), containers, st.none() | amounts, amounts)
def test_resources_are_the_highest_moment_of_a_pods_life(
    mains: list[int], inits: list[tuple[int, bool]], whole: int | None, overhead: int
) -> None:
    def one(number: int, cpu: int, **more: Any) -> dict[str, Any]:
        return {"name": f"c{number}", "resources": {"requests": {"cpu": str(cpu)}}, **more}

    document = pod()
    document["spec"] |= {
        "containers": [one(n, cpu) for n, cpu in enumerate(mains)],
        "initContainers": [
            one(100 + n, cpu, **({"restartPolicy": "Always"} if stays else {}))
            for n, (cpu, stays) in enumerate(inits)
        ],
        "overhead": {"cpu": str(overhead)},
    }
    if whole is not None:
        document["spec"]["resources"] = {"requests": {"cpu": str(whole)}}
    found = read(DemandPod, document)

    moments, running = [], 0
    for cpu, stays in inits:
        moments.append(running + cpu)
        running += cpu if stays else 0
    moments.append(running + sum(mains))
    highest = (max(moments) if whole is None else whole) + overhead
    assert pod_resources(found.spec, found.status).get("cpu", 0) == highest * 1000


@given(
    st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", fullmatch=True), st.uuids(), st.uuids()
)
def test_names_are_short_enough_and_tell_pods_apart(name: str, one: Any, other: Any) -> None:
    made = request_name(name, str(one))
    assert len(made) <= 253
    assert not any(pair in made.replace(name[:235], "") for pair in (".-", "-."))
    assert (made == request_name(name, str(other))) == (one == other)
