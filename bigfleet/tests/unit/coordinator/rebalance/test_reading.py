"""Reports as values: which of a machine's labels matter, and when everything is read again."""

from __future__ import annotations

import numpy as np

from bigfleet.coordinator.rebalance.planning.report_reader import ReportReader, ShardView
from bigfleet.coordinator.reports.report_cache import ReceivedReport
from bigfleet_api.v1alpha1 import capacity_pb2 as capacity
from bigfleet_api.v1alpha1 import coordinator_pb2 as pb
from bigfleet_api.v1alpha1 import provider_pb2 as provider

CPU = provider.Resources(resources={"cpu": "4"})


def heard(name: str, racks: int = 0, asked: tuple[str, ...] = ()) -> ReceivedReport:
    """A shard with a machine in each of some racks, and a shortfall for each label asked for."""
    summary = pb.ShardSummary(
        free_by_class=[
            pb.FreeClass(
                instance_type="std", zone="z", provider="p", region="r", idle=1, allocatable=CPU,
                labels={"rack": f"{name}-{number}", "arch": "arm" if number % 2 else "amd"},
            )
            for number in range(racks)
        ]
    )  # fmt: skip
    lacks = tuple(
        pb.Shortfall(
            requirements=[
                capacity.NodeSelectorRequirement(
                    key=label,
                    operator=capacity.NodeSelectorRequirement.OPERATOR_IN,
                    values=["arm", f"{name}-1"],
                )
            ],
            deficit=CPU, min_unit=CPU, age_cycles=6, profile_fingerprint=label,
        )
        for label in asked
    )  # fmt: skip
    return ReceivedReport(name, 1, 1, 0, 0.0, summary.SerializeToString(), 0, lacks)


def fitting(reader: ReportReader, view: ShardView, asks: ShardView) -> int:
    """Idle machines of one shard that fit another's shortfall."""
    fits = reader.catalogue.fits(asks.shortfalls[0].shape)[view.kinds]
    return int(np.sum(view.idle[fits]))


def test_machines_that_cannot_be_told_apart_are_one_kind() -> None:
    reader = ReportReader()
    (view,) = reader.views([heard("a", racks=100)])
    assert (len(reader.catalogue.kinds), view.idle.tolist()) == (1, [100])


def test_a_label_a_need_asks_for_tells_them_apart() -> None:
    reader = ReportReader()
    donor, asks = reader.views([heard("a", racks=100), heard("b", asked=("arch",))])
    assert (len(reader.catalogue.kinds), sum(donor.idle)) == (2, 100)
    assert fitting(reader, donor, asks) == 50


def test_a_label_that_is_asked_for_later_counts_from_then_on() -> None:
    reader = ReportReader()
    same = heard("a", racks=100)
    reader.views([same, heard("b", asked=("arch",))])
    donor, asks = reader.views([same, heard("b", asked=("rack",))])
    assert len(reader.catalogue.kinds) == 100
    assert fitting(reader, donor, asks) == 0
    assert sum(donor.idle) == 100


def test_a_report_that_was_read_is_not_read_again() -> None:
    reader = ReportReader()
    same = heard("a", racks=10)
    (first,) = reader.views([same])
    (again,) = reader.views([same])
    assert again is first
    (other,) = reader.views([heard("a", racks=10)])
    assert other is not first
