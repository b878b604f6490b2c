"""Offerings, prices, shapes and forecasts."""

import json
import math
from dataclasses import replace
from datetime import date

import pytest

from bigfleet_providerkit import (
    Capacity,
    CapacityType,
    InterruptionTable,
    Notice,
    NoticeKind,
    OptionError,
    PriceKey,
    PriceTable,
    State,
)
from bigfleet_providerkit.backend.state.ledger import Edit
from bigfleet_providerkit.capacity.quantity import parse_quantity, write_cpu, write_memory
from bigfleet_providerkit.capacity.table import CapacityTable, allocatable_of, resources_of
from bigfleet_providerkit.interruption.book import InterruptionBook, hourly
from bigfleet_providerkit.offerings.mix import default_offerings, shares
from bigfleet_providerkit.offerings.parse import Dialect, read_offerings
from bigfleet_providerkit.prices.book import PriceBook, moved
from bigfleet_providerkit.spec import Bucket
from kitworld import slots, world

DIALECT = Dialect(
    ("size",), ("region",), ("ocpus",), frozenset({CapacityType.ON_DEMAND, CapacityType.SPOT})
)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[]", "at least one entry"),
        ("{a: 1}", "expected a list"),
        ("- {zone: z, count: 1}", "offering 1: instance_type is empty"),
        ("- {size: s, count: 1}", "offering 1: zone is empty"),
        ("- {size: s, instance_type: s, zone: z, count: 1}", "mean the same"),
        ("- {size: s, zone: z, count: 1, capacity_type: bare_metal}", "not offered here"),
        ("- {size: s, zone: z, count: 1, price_usd_per_hour: 0}", "above 0"),
        ("- {size: s, zone: z, count: 1, taints: [x]}", "does not parse"),
        ("- {size: s, zone: z, count: 1, colour: red}", "unknown field 'colour'"),
        (
            "- {size: s, zone: z, count: 2}\n- {size: s, zone: z, count: 0}\n"
            "- {size: s, zone: z, count: 2}",
            "offering 3: same type, zone and capacity type as offering 1",
        ),
        ("- {size: s, zone: z, count: -1}", "count is -1"),
        ("- {size: s, zone: z, count: 1, labels: {zone: a}}", "repeats a field"),
        ("- {size: s, zone: z, count: 1, resources: {cpu: x, memory: 1Gi}}", "'x' is not"),
        ("- {size: s, zone: z, count: 1, resources: {cpu: 1}}", "memory missing"),
        ("- {size: s, zone: z, count: 1}\n- {size: s, zone: z, count: 2}", "offering 2: same type"),
        ("- {size: s, zone: z, count: 1, interruption_probability: 2}", "give 0 to 1"),
        ("[", "does not parse"),
    ],
)  # fmt: skip
def test_a_mistake_in_an_offering_is_named_with_its_number(text: str, complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        read_offerings(text, DIALECT)


def test_a_good_offering_has_all_its_fields() -> None:
    text = """
- size: s
  region: z
  capacity_type: spot
  count: 2
  price_usd_per_hour: 0.2
  taints: ["gpu=yes:NoSchedule"]
  image: {amd64: a, arm64: b}
  ocpus: 4
"""
    (offering,) = read_offerings(text, DIALECT)
    assert list(offering.slot_ids("p")) == ["p/Spot/s/z/000", "p/Spot/s/z/001"]
    assert (offering.price, offering.extra) == (0.2, {"ocpus": "4"})
    assert offering.image == {"amd64": "a", "arm64": "b"}


def test_a_missing_file_is_named() -> None:
    with pytest.raises(OptionError, match=r"nowhere\.yaml cannot be read"):
        read_offerings("nowhere.yaml", DIALECT)


def test_the_mix_shares_the_seed_count() -> None:
    assert shares(32, [1, 1, 1, 1]) == [8, 8, 8, 8]
    assert shares(10, [2, 1]) == [7, 3]
    assert shares(0, [2, 1]) == [0, 0]
    mix = (
        Bucket({"size": "s", "zone": "z"}, share=2),
        Bucket({"size": "s", "zone": "z", "capacity_type": "spot"}, share=1),
        Bucket({"size": "f", "zone": "z"}, count=3, first=5),
    )
    offerings = default_offerings(mix, 10, DIALECT)
    assert [offering.count for offering in offerings] == [7, 3, 3]
    assert next(offerings[2].slot_ids("p")).endswith("/005")


SEED = PriceTable.flat(date(2026, 1, 1), {"s": 1.0}, spot_fraction=0.25)


def test_override_then_live_then_seed() -> None:
    book = PriceBook(SEED, "region")
    assert book.quote("s", "z", CapacityType.ON_DEMAND).usd == 1.0
    assert book.quote("s", "z", CapacityType.SPOT).usd == 0.25
    assert book.quote("s", "z", CapacityType.RESERVED).usd == 1.0
    book.refresh({PriceKey("s", "region", CapacityType.ON_DEMAND): 2.0})
    assert book.quote("s", "z", CapacityType.ON_DEMAND).source == "live"
    assert book.quote("s", "z", CapacityType.ON_DEMAND, 3.0).usd == 3.0
    assert book.quote("x", "z", CapacityType.BARE_METAL).usd == 0


def test_an_unknown_price_stops_the_start_with_a_sentence() -> None:
    with pytest.raises(OptionError, match=r"no price for r9z\.large in eu-west-9: give price_usd"):
        PriceBook(SEED, "r").quote("r9z.large", "eu-west-9", CapacityType.ON_DEMAND)
    with pytest.raises(OptionError, match="not above 0"):
        PriceBook(SEED, "r").quote("s", "z", CapacityType.ON_DEMAND, 0.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_live_price_that_cannot_be_believed_keeps_the_last_one(bad: float) -> None:
    book = PriceBook(SEED, "r")
    assert not book.refresh({PriceKey("s", "z", CapacityType.ON_DEMAND): bad})
    assert book.quote("s", "z", CapacityType.ON_DEMAND).usd == 1.0


def test_a_foreign_currency_is_converted_but_an_override_is_not() -> None:
    book = PriceBook(SEED, "r", rate=1.08)
    assert book.quote("s", "z", CapacityType.ON_DEMAND).usd == pytest.approx(1.08)
    assert book.quote("s", "z", CapacityType.ON_DEMAND, 1.0).usd == 1.0


def test_a_price_moves_by_more_than_half_a_per_cent() -> None:
    assert not moved(1.0, 1.005)
    assert moved(1.0, 1.0051)


@pytest.mark.parametrize(
    ("text", "value"),
    [("500m", 0.5), ("1.5", 1.5), ("2Gi", 2 * 1024**3), ("1e3", 1000), ("1E", 1e18), ("3k", 3000),
     ("5E-1", 0.5), ("100n", 1e-7), (".5", 0.5)],
)  # fmt: skip
def test_quantities_are_read_in_every_form(text: str, value: float) -> None:
    assert float(parse_quantity(text)) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "Gi", "1KiB", "1 Gi", "--1", "1e"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a Kubernetes quantity"):
        parse_quantity(text)


def test_shapes_become_quantities() -> None:
    assert (write_cpu(4000), write_cpu(1500)) == ("4", "1500m")
    assert (write_memory(2 * 1024**3), write_memory(1024**3 + 1024**2)) == ("2Gi", "1025Mi")
    table = CapacityTable({"s": Capacity(500, 1024**3)})
    assert resources_of(table.get("s")) == {"cpu": "500m", "memory": "1Gi"}
    gpu = Capacity(8000, 64 * 1024**3, gpus=2)
    assert allocatable_of(gpu, {"cpu": "1", "memory": "4Gi"}, "x") == {
        "cpu": "7", "memory": "60Gi", "nvidia.com/gpu": "2",
    }  # fmt: skip
    with pytest.raises(OptionError, match="leaves nothing"):
        allocatable_of(Capacity(1000, 1024), {"cpu": "2"}, "x")


@pytest.mark.parametrize(
    ("given", "pods"),
    [
        ({}, "110"),
        ({"allocatable": None}, "110"),
        ({"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "58"}}, "58"),
        ({"resources": {"cpu": "4", "memory": "16Gi", "pods": "250"}}, "250"),
    ],
    ids=["nothing", "the shape alone", "of what is allocatable", "of its resources"],
)
async def test_a_machine_has_room_for_pods_whatever_its_offering_says(
    given: dict[str, object], pods: str
) -> None:
    offering = {**slots(), "count": 1, **given}
    async with world(offerings=json.dumps([offering])) as w:
        (machine,) = await w.shard.machines()
        assert machine.allocatable.resources["pods"] == pods


async def test_a_machine_that_was_stored_without_room_for_pods_gets_it_at_the_next_start() -> None:
    async with world() as w:
        ledger = w.running.backend.ledger
        machine = await w.configured()
        record = ledger.inventory.get(machine)
        assert record is not None
        old = replace(record.shape, allocatable={"cpu": "4", "memory": "16Gi"}).packed()
        await ledger.commit(Edit(record=replace(record, shape=old)))
        assert "pods" not in (await w.shard.get(machine)).allocatable.resources
        again = await w.restart()
        found = await again.shard.get(machine)
        assert found.allocatable.resources["pods"] == "110"
        assert found.state == int(State.CONFIGURED)
        await again.running.stop()


def test_a_monthly_forecast_becomes_an_hourly_one() -> None:
    assert hourly(0.5, "month") == pytest.approx(1 - 0.5 ** (1 / 720))
    book = InterruptionBook(InterruptionTable({"s": 0.0}, otherwise=0.07))
    assert book.forecast("s", CapacityType.SPOT) == 0.07
    assert book.forecast("s", CapacityType.ON_DEMAND) == 0
    book.extend("{horizon: hour, values: {s: 0.2}}", "priors.yaml")
    assert book.forecast("s", CapacityType.SPOT) == 0.2
    with pytest.raises(OptionError, match="not a probability"):
        book.extend("{values: {s: 2}}", "priors.yaml")


async def test_a_new_price_changes_the_records_that_it_concerns() -> None:
    async with world() as w:
        before = w.running.backend.ledger.inventory.head
        w.substrate.set_price("t-4", "zone-a", CapacityType.SPOT, 0.1201)
        await w.running.refresh_prices()
        assert w.running.backend.ledger.inventory.head == before
        w.substrate.set_price("t-4", "zone-a", CapacityType.SPOT, 0.2)
        assert await w.running.refresh_prices()
        prices = {int(m.capacity_type): m.price_per_hour for m in await w.shard.machines()}
        assert prices[int(CapacityType.SPOT)] == 0.2
        assert prices[int(CapacityType.ON_DEMAND)] == 0.4
        assert w.running.backend.ledger.inventory.head == before + 4


async def test_a_notice_is_in_the_record_until_the_life_ends() -> None:
    async with world() as w:
        machine = await w.idle(CapacityType.SPOT)
        ref = (await w.shard.get(machine)).host.ref
        w.substrate.notify(ref, NoticeKind.WARNING, 0.99, ends=2_000_000_000.0)
        await w.advance(1)
        warned = await w.shard.get(machine)
        assert warned.interruption_probability == 0.99
        assert warned.interruption_unix_nanos == 2_000_000_000 * 10**9
        w.substrate.notify(ref, NoticeKind.RETRACTED, 0)
        await w.advance(1)
        assert (await w.shard.get(machine)).interruption_unix_nanos == 0
        w.substrate.notify(ref, NoticeKind.REBALANCE, 0.5)
        await w.advance(1)
        assert (await w.shard.get(machine)).interruption_unix_nanos == 0
        await w.shard.delete(machine)
        assert (await w.reach(machine, State.SPECULATIVE)).interruption_probability == 0.05
        assert w.metric("spot_interruptions_total") == 2


async def test_the_end_of_a_host_that_is_not_in_use_is_not_an_interruption() -> None:
    async with world() as w:
        loops = w.running.backend.loops
        machine = await w.idle()
        ref = (await w.shard.get(machine)).host.ref
        loops._early.clear()
        await loops.noticed(Notice("of another team", NoticeKind.GONE, 0.99, 0.0))
        assert not loops._early.is_set()
        await w.shard.delete(machine)
        await loops.noticed(Notice(ref, NoticeKind.GONE, 0.99, 0.0))
        assert w.metric("spot_interruptions_total") == 0


async def test_labels_hold_what_the_engine_needs_and_nothing_it_answers_itself() -> None:
    async with world() as w:
        machine = (await w.shard.machines())[0]
        assert dict(machine.labels) == {
            "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
            "topology.kubernetes.io/region": "region-a",
        }  # fmt: skip
        assert slots()["instance_type"] == machine.instance_type
