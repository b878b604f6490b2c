"""What a provider can declare where zones, sizes and rights are a matter of options."""

import dataclasses
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pytest
import structlog
from structlog.typing import FilteringBoundLogger

from bigfleet_providerkit import (
    Bucket,
    Capacity,
    CapacityType,
    InterruptionTable,
    KitOptions,
    MemorySubstrate,
    Opt,
    OptionError,
    ProviderSpec,
    SourceData,
    State,
    Timeouts,
    start,
)
from bigfleet_providerkit.admin.server import inspect
from bigfleet_providerkit.kit import Kit
from bigfleet_providerkit.logs.setup import silent_logger
from bigfleet_providerkit.process.prepare import log_prices
from bigfleet_providerkit.process.running_provider import try_out
from bigfleet_providerkit.spec import Limits
from kitworld import SPEC, slots, world


class Zones(KitOptions):
    zone_a: Annotated[str, Opt("first zone", "eu-1")] = "zone-a"
    metal: Annotated[bool, Opt("order metal")] = False


async def memory(options: KitOptions, kit: Kit) -> MemorySubstrate:
    return MemorySubstrate(kit)


async def test_the_default_mix_and_the_time_outs_may_follow_options() -> None:
    spec = ProviderSpec(
        name="zones",
        version="0.0.1",
        options=Zones,
        open=memory,
        mix=lambda options: (Bucket(slots(zone=options.zone_a)),),
        timeouts=lambda options: Timeouts(create=7200 if options.metal else 300),
        prices=SPEC.prices,
        shapes=SPEC.shapes,
    )
    running = await start(
        spec, Zones(zone_a="eu-1", metal=True, use_fake_backend=True), listen=False
    )
    assert {record.shape.zone for record in running.backend.ledger.inventory} == {"eu-1"}
    assert running.settings.timeouts.create == 7200
    await running.stop()


@pytest.mark.parametrize(
    ("given", "limit"), [({}, 1800), ({"create_timeout": 60}, 60), ({"transition_timeout": 9}, 9)]
)
async def test_types_that_take_longer_have_a_create_of_their_own(
    given: dict[str, object], limit: float
) -> None:
    metal = slots(instance_type="t-4.metal", price_usd_per_hour=3)
    spec = dataclasses.replace(
        SPEC,
        mix=(Bucket(metal),),
        timeouts=Timeouts(create=300, create_of={"*.metal*": 1800}),
        shapes={"t-4.metal": Capacity(4000, 16 * 1024**3)},
    )
    async with world(spec, store=None, slow_ms=10_000_000, **given) as w:
        machine = await w.fresh()
        began = w.clock.now()
        await w.shard.create(machine)
        await w.reach(machine, State.FAILED, limit=4000)
        assert w.clock.now() - began == pytest.approx(limit)


async def test_a_substrate_may_refuse_what_it_cannot_hold() -> None:
    async def small(options: KitOptions, kit: Kit) -> MemorySubstrate:
        wanted = sum(offering.count for offering in kit.offerings)
        raise OptionError(f"{wanted} slots do not fit on host-a")

    spec = dataclasses.replace(SPEC, open=small)
    with pytest.raises(OptionError, match="32 slots do not fit on host-a"):
        await start(spec, KitOptions(state="memory"), listen=False)


async def test_forecasts_of_the_cloud_reach_the_machines_and_priors_of_a_person_win(
    tmp_path: Path,
) -> None:
    class Advised(MemorySubstrate):
        async def source_data(self) -> SourceData:
            return SourceData(forecasts=InterruptionTable({"t-4": 0.25, "t-8": 7.0}))

    priors = tmp_path / "priors.yaml"
    priors.write_text("values: {t-4: 0.5}\n")
    for given, expected in ((None, 0.25), (str(priors), 0.5)):
        async with world(interruption_priors=given) as w:
            w.substrate.__class__ = Advised
            await w.running.refresh_prices()
            machine = await w.fresh(CapacityType.SPOT)
            assert (await w.shard.get(machine)).interruption_probability == expected


async def test_check_names_the_permissions_that_are_missing() -> None:
    class Restricted(MemorySubstrate):
        async def missing_permissions(self) -> Sequence[str]:
            return ["ec2:CreateTags", "ssm:SendCommand"]

    async def opened(options: KitOptions, kit: Kit) -> MemorySubstrate:
        return Restricted(kit)

    spec = dataclasses.replace(SPEC, open=opened)
    with pytest.raises(OptionError, match="missing: ec2:CreateTags, ssm:SendCommand"):
        await try_out(spec, KitOptions(state="memory"), silent_logger())


async def test_check_opens_no_listener_so_it_can_run_beside_the_provider() -> None:
    class Listening(MemorySubstrate):
        served = 0

        async def serve(self) -> None:
            type(self).served += 1

    async def opened(options: KitOptions, kit: Kit) -> MemorySubstrate:
        return Listening(kit)

    spec = dataclasses.replace(SPEC, open=opened)
    await try_out(spec, KitOptions(state="memory"), silent_logger())
    assert Listening.served == 0
    running = await start(spec, KitOptions(state="memory"), listen=False)
    assert Listening.served == 1
    await running.stop()


async def test_prices_and_rates_that_are_half_a_year_old_are_warned_of() -> None:
    euro = dataclasses.replace(SPEC, currency="EUR")
    fresh = datetime(2026, 11, 20, tzinfo=UTC).timestamp()
    old = fresh + 200 * 86400
    async with world() as w:

        def warnings(now: float, **options: float) -> list[str]:
            given = KitOptions.model_validate(options)
            lines = logged(lambda log: log_prices(euro, given, w.running.catalogue, log, now))
            assert lines[0]["event"] == "prices"
            assert sum(lines[0]["slots_by_source"].values()) == 8
            return [line["event"] for line in lines if line["log_level"] == "warning"]

        assert warnings(fresh) == []
        assert warnings(old) == [
            "the seed prices are old", "the rate from euro to dollar is old; give --eur-usd",
        ]  # fmt: skip
        assert warnings(old, eur_usd=1.1) == ["the seed prices are old"]


def logged(act: Callable[[FilteringBoundLogger], None]) -> list[Any]:
    """The lines that something logs."""
    with structlog.testing.capture_logs() as lines:
        act(structlog.get_logger())
    return lines


async def test_inspect_says_where_price_and_allocatable_come_from() -> None:
    async with world() as w:
        machine = await w.idle()
        shown = inspect(w.running.backend, machine)
        assert str(shown["price_source"]).startswith("seed")
        assert shown["allocatable"] == {"cpu": "4", "memory": "16Gi", "pods": "110"}
        assert shown["reported_by_nodes"] == {}
        assert inspect(w.running.backend, "other") == {"error": "there is no machine other"}


async def test_user_data_that_does_not_fit_with_the_hook_stops_the_start(tmp_path: Path) -> None:
    base = tmp_path / "base.sh"
    base.write_text("#!/bin/sh\n" + "# padding\n" * 1200)
    spec = dataclasses.replace(SPEC, open=memory, limits=Limits(user_data=16_384))
    assert base.stat().st_size < 16_384
    with pytest.raises(OptionError, match=r"has \d+ bytes; 16384 fit here"):
        await start(spec, KitOptions(state="memory", base_user_data=str(base)), listen=False)


async def test_a_map_of_images_has_one_for_every_architecture_on_offer() -> None:
    arm = dataclasses.replace(SPEC, shapes={"t-4": Capacity(4000, 16 * 1024**3, arch="arm64")})
    options = KitOptions(use_fake_backend=True, image={"amd64": "img-1"})
    with pytest.raises(OptionError, match="no image for arm64"):
        await start(arm, options, listen=False)


@pytest.mark.parametrize(("region", "label"), [("ASH", "test-ash"), ("", "test")])
async def test_the_default_label_is_one_that_tags_can_hold(region: str, label: str) -> None:
    spec = dataclasses.replace(SPEC, region=lambda options: region)
    async with world(spec) as w:
        assert w.running.settings.label == label


@pytest.mark.parametrize("region", ["eu_west", "x" * 40])
async def test_a_default_label_that_is_none_asks_for_another(region: str) -> None:
    spec = dataclasses.replace(SPEC, region=lambda options: region)
    with pytest.raises(OptionError, match="is not a label for hosts; give one with --provider"):
        await start(spec, KitOptions(use_fake_backend=True), listen=False)
