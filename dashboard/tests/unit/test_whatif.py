"""What if: the engine on a changed copy."""

import json

import pytest

from bigfleet_dashboard.errors import BadRequestError, SourceError
from bigfleet_dashboard.whatif.changes import Demand
from bigfleet_dashboard.whatif.choices import Choices
from bigfleet_dashboard.whatif.planning import compare
from bigfleet_dashboard.whatif.scenario import read_present


def scenario(asked: str = "24") -> bytes:
    """Ten machines of four CPUs: four serve, two are idle, four could be created."""
    common = {
        "instance_type": "big",
        "zones": ["a"],
        "capacity_type": "OnDemand",
        "price": 0.5,
        "allocatable": {"cpu": "4"},
    }
    return json.dumps(
        {
            "name": "s-1",
            "machines": [
                {
                    **common,
                    "start": 0,
                    "count": 4,
                    "state": "Configured",
                    "cluster": "atlas",
                    "assigned_need": 0,
                },
                {**common, "start": 4, "count": 2, "state": "Idle"},
                {**common, "start": 6, "count": 4, "state": "Speculative", "zones": ["b"]},
            ],
            "needs": [
                {
                    "cluster": "atlas",
                    "aggregate": {"cpu": asked},
                    "min_unit": {"cpu": "1"},
                    "priority": 1000,
                }
            ],
        }
    ).encode()


def test_a_copy_has_every_machine_and_every_need() -> None:
    present = read_present(scenario())
    assert len(present.machines) == 10
    assert present.needs[0].aggregate == {"cpu": 24_000}
    assert present.machines[0].stamp is not None


def test_without_changes_both_plans_are_the_same() -> None:
    answer = compare(scenario(), [])
    assert answer["before"] == answer["after"]
    before = answer["before"]
    assert isinstance(before, dict)
    assert before["actions"] == {"Bootstrap": 2}
    assert (before["unmet"], before["dollars_per_hour"]) == (0, 3.0)


def test_more_demand_buys_machines_and_then_stays_unmet() -> None:
    more = compare(scenario(), [{"kind": "demand", "factor": 1.5}])["after"]
    assert isinstance(more, dict)
    assert more["actions"] == {"Bootstrap": 2, "Provision": 3}
    much = compare(scenario(), [{"kind": "demand", "factor": 3, "cluster": "atlas"}])
    assert much["newly_unmet_count"] == 1
    newly = much["newly_unmet"]
    assert isinstance(newly, list)
    assert newly[0]["missing"] == {"cpu": "32"}


def test_lost_machines_are_replaced_where_there_are_others() -> None:
    after = compare(scenario(), [{"kind": "lose", "share": 1, "zone": "a"}])["after"]
    assert isinstance(after, dict)
    assert (after["machines"], after["actions"]) == (4, {"Provision": 4})
    half = compare(scenario(), [{"kind": "lose", "share": 0.5}])["after"]
    assert isinstance(half, dict)
    assert half["machines"] == 5


def test_a_price_changes_what_is_spent_and_added_machines_relieve() -> None:
    expensive = compare(scenario(), [{"kind": "price", "factor": 2}])["after"]
    assert isinstance(expensive, dict)
    assert expensive["dollars_per_hour"] == 6.0
    answer = compare(scenario("60"), [{"kind": "add", "count": 10, "zone": "b"}])
    assert (answer["newly_unmet_count"], answer["relieved_count"]) == (0, 1)


def test_demand_of_others_stays_as_it_is() -> None:
    for change in ({"cluster": "unknown"}, {"priority_class": "batch"}):
        answer = compare(scenario(), [{"kind": "demand", "factor": 9, **change}])
        assert answer["before"] == answer["after"]


def test_a_copy_that_cannot_be_read_is_refused() -> None:
    for data in (b"nonsense", b'{"needs": [{}]}', b'{"machines": [{"state": "Sleepy"}]}', b"[]"):
        with pytest.raises(SourceError):
            read_present(data)


def test_nothing_can_be_added_that_is_like_no_machine() -> None:
    with pytest.raises(BadRequestError, match="to copy"):
        compare(scenario(), [{"kind": "add", "count": 1, "zone": "z"}])


def test_among_many_names_the_nearest_is_told() -> None:
    clusters = tuple(f"shop-{n}" for n in range(20))
    choices = Choices((), clusters, (), (), ())
    with pytest.raises(BadRequestError, match=r"did you mean shop-1\d?\? GET .* lists all 20"):
        choices.check([Demand(1.0, "shp-1")])
    with pytest.raises(BadRequestError, match="'x' is unknown: there is none yet"):
        Choices((), (), (), (), ()).check([Demand(1.0, "x")])
    choices.check([Demand(1.0, "shop-19"), Demand(1.0)])
