"""Live prices, shapes and forecasts come from sources with periods of their own."""

import dataclasses
from pathlib import Path

import pytest

from bigfleet_providerkit import (
    Bucket,
    Capacity,
    CapacityType,
    InterruptionTable,
    MemorySubstrate,
    Offering,
    OptionError,
    PriceKey,
    Source,
    SourceData,
    StartError,
)
from bigfleet_providerkit.interruption.book import InterruptionBook
from bigfleet_providerkit.kit import Kit
from bigfleet_providerkit.offerings.parse import Dialect, read_offerings
from bigfleet_providerkit.options.model import KitOptions
from bigfleet_providerkit.prices.book import PriceBook
from bigfleet_providerkit.prices.file import read_prices
from bigfleet_providerkit.process import running_provider
from bigfleet_providerkit.spec import PriceTable
from kitworld import SPEC, slots, world

SPOT, ON_DEMAND = CapacityType.SPOT, CapacityType.ON_DEMAND


class Priced(MemorySubstrate):
    """A cloud whose price lists a test writes."""

    reads: dict[str, int]
    spot = 0.12

    async def read_spot(self) -> SourceData:
        self.reads["spot"] = self.reads.get("spot", 0) + 1
        return SourceData(prices={PriceKey("t-4", "zone-a", SPOT): self.spot})

    async def read_shapes(self) -> SourceData:
        self.reads["shapes"] = self.reads.get("shapes", 0) + 1
        return SourceData(capacities={"t-8": Capacity(8000, 32 * 1024**3)})


async def opened(options: KitOptions, kit: Kit) -> MemorySubstrate:
    substrate = Priced(kit)
    substrate.reads = {}
    return substrate


LIVE = dataclasses.replace(
    SPEC,
    open=opened,
    always_fake=True,
    sources=lambda options: (
        Source("prices", 300, lambda cloud: cloud.read_spot()),
        Source("shapes", 3600, lambda cloud: cloud.read_shapes()),
    ),
)


@pytest.fixture(autouse=True)
def _sources_of_the_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    """The substrate in memory has one source of its own; here those of the declaration count."""

    monkeypatch.setattr(
        running_provider, "sources_of", lambda spec, options, _: list(spec.sources(options))
    )


async def test_each_source_is_read_by_its_own_period() -> None:
    async with world(LIVE) as w:
        assert isinstance(w.substrate, Priced)
        w.substrate.spot = 0.2
        await w.advance(3601)
        assert w.substrate.reads == {"spot": 12, "shapes": 1}
        assert w.metric("price_refresh_total", outcome="success") == 13
        spot = [m for m in await w.shard.machines() if m.capacity_type == int(SPOT)]
        assert {machine.price_per_hour for machine in spot} == {0.2}


async def test_a_source_that_fails_leaves_the_others_alone() -> None:
    async def broken(cloud: Priced) -> SourceData:
        raise KeyError("shapes")

    spec = dataclasses.replace(
        LIVE,
        sources=lambda options: (Source("shapes", 100, broken), *LIVE.sources(options)[:1]),
    )
    async with world(spec) as w:
        await w.advance(301)
        assert w.metric("price_refresh_total", outcome="error") == 3
        assert w.metric("price_refresh_total", outcome="success") == 1


def test_a_quote_says_where_its_price_comes_from() -> None:
    table = PriceTable.flat(SPEC.prices.dated, {"m": 1.0}, spot_fraction=0.5)
    given = read_prices("prices: {f: 0.9, g: {spot: 0.2, zone-b: {reserved: 0.4}}}", "prices.yaml")
    book = PriceBook(table, "region-a", rate=1.08, factor=0.5, given=given)
    assert book.quote("m", "zone-a", ON_DEMAND, 3.0).usd == 3.0
    assert book.quote("m", "zone-a", ON_DEMAND).usd == pytest.approx(0.54)
    assert str(book.quote("m", "zone-a", ON_DEMAND)) == "seed"
    assert str(book.quote("m", "zone-a", CapacityType.RESERVED)) == "seed, price of on_demand"
    assert book.quote("m", "zone-a", SPOT).usd == pytest.approx(0.27)
    assert (book.quote("f", "zone-a", ON_DEMAND).usd, book.quote("g", "x", SPOT).usd) == (0.9, 0.2)
    assert book.quote("g", "zone-b", CapacityType.RESERVED).source == "file"
    book.refresh({PriceKey("m.2o12g", "region-b", ON_DEMAND): 2.0})
    live = book.quote("m", "zone-c", ON_DEMAND, sized="m.2o12g", region="region-b")
    assert live.source == "live"
    assert live.usd == pytest.approx(1.08)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("prices: {m: 0}", "m: 0 is not a price above 0"),
        ("prices: {m: cheap}", "m: 'cheap' is not a price"),
        ("prices: {m: {zone-a: {spto: 1}}}", "'spto' is not a capacity type"),
        ("- 1", "write a map `prices`"),
        ("prices: [", "does not parse"),
    ],
)
def test_a_price_file_with_a_mistake_is_refused_by_name(text: str, complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        read_prices(text, "prices.yaml")


async def test_price_file_factor_and_tags_reach_the_machines(tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("prices: {t-4: {spot: 0.07}}\n")
    async with world(prices=str(prices), price_factor=0.5, tags={"team": "ml"}) as w:
        by_kind = {m.capacity_type: m.price_per_hour for m in await w.shard.machines()}
        assert by_kind == {int(ON_DEMAND): 0.2, int(SPOT): 0.07}
    with pytest.raises(StartError, match="bigfleet:x is for BigFleet's own tags"):
        async with world(tags={"bigfleet:x": "1"}):
            pass


def test_pools_and_sizes_set_slots_of_one_type_apart() -> None:
    dialect = Dialect(
        (), (), ("ocpus",), frozenset(CapacityType), lambda it: it.extra.get("ocpus", "") + "o"
    )
    entry = "{instance_type: m, zone: z, count: 1, ocpus: 2%s}"
    text = f"[{entry % ''}, {entry % ', pool: gpu'}]"
    first, second = read_offerings(text, dialect)
    assert list(first.slot_ids("p")) == ["p/OnDemand/m.2o/z/000"]
    assert list(second.slot_ids("p")) == ["p/OnDemand/m.2o~gpu/z/000"]
    assert second.instance_type == "m"
    with pytest.raises(OptionError, match="give each a `pool`"):
        read_offerings(f"[{entry % ''}, {entry % ''}]", dialect)
    with pytest.raises(OptionError, match="pool 'A/B' is part of slot ids"):
        read_offerings(f"[{entry % ', pool: A/B'}]", dialect)


async def test_a_zone_has_its_own_region_and_a_pool_its_own_taints() -> None:
    spec = dataclasses.replace(
        SPEC,
        region_of=lambda options, zone: zone.removeprefix("zone-"),
        mix=(
            Bucket(slots()),
            Bucket(slots(zone="zone-b", pool="gpu", taints=["gpu=yes:NoSchedule"])),
        ),
    )
    async with world(spec, seed_count=2) as w:
        first, second = await w.shard.machines()
        regions = [m.labels["topology.kubernetes.io/region"] for m in (first, second)]
        assert regions == ["a", "b"]
        assert second.id == "test-region-a/OnDemand/t-4~gpu/zone-b/000"
        assert second.instance_type == "t-4"


def test_priors_may_be_patterns() -> None:
    book = InterruptionBook(InterruptionTable({"n2-*": 0.04, "n2-big": 0.2}, otherwise=0.5))
    forecasts = [book.forecast(name, SPOT) for name in ("n2-standard-4", "n2-big", "e2-x")]
    assert forecasts == [0.04, 0.2, 0.5]


async def test_offerings_of_a_type_that_only_the_live_list_knows_are_taken_on_reload(
    tmp_path: Path,
) -> None:
    offerings = tmp_path / "offerings.yaml"
    offerings.write_text("- {instance_type: t-4, zone: zone-a, count: 2}\n")
    async with world(LIVE, offerings=str(offerings)) as w:
        new = "- {instance_type: t-8, zone: zone-a, count: 1, price_usd_per_hour: 1}\n"
        offerings.write_text(offerings.read_text() + new)
        assert await w.running.reload_offerings() == 1
        assert [it.instance_type for it in w.running.backend.kit.offerings] == ["t-4", "t-8"]
        offerings.write_text("- {instance_type: t-9, zone: zone-a, count: 1}\n")
        with pytest.raises(StartError, match="the shape of t-9 is not known"):
            await w.running.reload_offerings()
        assert len(await w.shard.machines()) == 3


async def test_a_substrate_is_asked_whether_it_can_hold_new_offerings(tmp_path: Path) -> None:
    class Small(Priced):
        async def accept(self, offerings: list[Offering]) -> None:
            wanted = sum(offering.count for offering in offerings)
            if wanted > 3:
                raise OptionError(f"{wanted} slots do not fit on host-a, which holds 3")

    async def small(options: KitOptions, kit: Kit) -> MemorySubstrate:
        substrate = Small(kit)
        substrate.reads = {}
        return substrate

    offerings = tmp_path / "offerings.yaml"
    offerings.write_text("- {instance_type: t-4, zone: zone-a, count: 3}\n")
    async with world(dataclasses.replace(LIVE, open=small), offerings=str(offerings)) as w:
        offerings.write_text("- {instance_type: t-4, zone: zone-a, count: 4}\n")
        with pytest.raises(OptionError, match="4 slots do not fit"):
            await w.running.reload_offerings()
        assert len(await w.shard.machines()) == 3
