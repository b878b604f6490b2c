"""What the provider declares: its options, capacity, prices and limits."""

import asyncio
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bigfleet_provider_kwok import __version__
from bigfleet_provider_kwok.errors import classify
from bigfleet_providerkit import (
    Bucket,
    Capacity,
    CapacityType,
    InterruptionTable,
    KitOptions,
    Limits,
    Opt,
    OptionError,
    PriceTable,
    ProviderSpec,
    Timeouts,
)
from bigfleet_providerkit.kit import Kit

if TYPE_CHECKING:
    from bigfleet_provider_kwok.substrate import KwokSubstrate
    from bigfleet_providerkit.machines.record import Shape

GIB = 1024**3
# Type: CPUs, memory in GiB, dollars an hour. Shapes and prices are made up, in cloud proportions.
TYPES = {
    "kwok-2x8": (2, 8, 0.10),
    "kwok-4x16": (4, 16, 0.20),
    "kwok-8x32": (8, 32, 0.40),
    "kwok-16x64": (16, 64, 0.80),
    "kwok-32x128": (32, 128, 1.60),
}
ZONES = ("kwok-zone-a", "kwok-zone-b")


class KwokOptions(KitOptions):
    """The kit's options and this provider's own."""

    slow_ms: Annotated[
        int, Opt("length of each transition in milliseconds, with real nodes too", "1000")
    ] = 0
    endpoint_url: Annotated[
        str | None,
        Opt(
            "one API server for all clusters; the bootstrap data is then not read",
            "http://127.0.0.1:8001",
            unset="none",
        ),
    ] = None
    site: Annotated[str, Opt("region label of all nodes, and part of --provider", "local")] = (
        "local"
    )


async def check_clusters(options: KwokOptions) -> None:
    """Say where API servers will be looked for; a folder that is not there is a mistake."""
    folder = options.cluster_kubeconfigs
    if folder is not None and not await asyncio.to_thread(Path(folder).is_dir):
        raise OptionError(f"--cluster-kubeconfigs {folder} is not a folder; make it")


async def open_substrate(options: KwokOptions, kit: Kit) -> "KwokSubstrate":
    """Put the substrate together. HTTP is imported here, so --use-fake-backend does without."""
    from bigfleet_provider_kwok.servers import Servers
    from bigfleet_provider_kwok.shapes import Shapes
    from bigfleet_provider_kwok.substrate import KwokSubstrate
    from bigfleet_providerkit.options.settings import settings_from
    from bigfleet_providerkit.process.prepare import make_catalogue, read_all_offerings

    offerings = read_all_offerings(SPEC, options)
    catalogue = make_catalogue(
        SPEC, options, settings_from(SPEC, options, offerings, fake=False), offerings
    )

    def read() -> "dict[str, Shape]":
        catalogue.take(read_all_offerings(SPEC, options))
        return catalogue.shapes()

    folder = options.cluster_kubeconfigs
    return KwokSubstrate(
        kit,
        Servers(Path(folder) if folder else None, options.endpoint_url),
        Shapes(read, catalogue.foreign_shape),
        slow=options.slow_ms / 1000,
        fail_rate=options.fail_rate,
        seed=options.fake_seed,
    )


def _slots(kind: str, instance_type: str, zone: str) -> dict[str, object]:
    cpus, gib, _ = TYPES[instance_type]
    shape = {"cpu": str(cpus), "memory": f"{gib}Gi"}
    return {
        "instance_type": instance_type,
        "zone": zone,
        "capacity_type": kind,
        "resources": shape,
        "allocatable": shape,
    }


SPEC = ProviderSpec(
    name="kwok",
    version=__version__,
    options=KwokOptions,
    open=open_substrate,
    classify=classify,
    credentials=check_clusters,
    region=lambda options: options.site,
    mix=(
        Bucket(_slots("on_demand", "kwok-4x16", ZONES[0]), share=2),
        Bucket(_slots("spot", "kwok-4x16", ZONES[0]), share=2),
        Bucket(_slots("on_demand", "kwok-8x32", ZONES[1]), share=2),
        Bucket(_slots("spot", "kwok-16x64", ZONES[1]), share=1),
    ),
    prices=PriceTable.flat(
        date(2026, 11, 1), {name: price for name, (_, _, price) in TYPES.items()}, spot_fraction=0.3
    ),
    shapes={name: Capacity(cpu=c * 1000, memory=gib * GIB) for name, (c, gib, _) in TYPES.items()},
    interruption=InterruptionTable(otherwise=0.05),
    capacity_types=frozenset({CapacityType.ON_DEMAND, CapacityType.SPOT, CapacityType.RESERVED}),
    timeouts=Timeouts(create=60, configure=120, drain=600, delete=60),
    limits=Limits(tag_key=128, tag_value=256, separator=":", blob=4 * 1024 * 1024),
    poll_interval=0.25,
    consistency_window=0.0,
    calls=(
        "CreateNode", "PatchNode", "DeleteNode", "ListNodes", "ListPods", "EvictPod",
    ),

)  # fmt: skip
