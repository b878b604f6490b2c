"""What the provider declares: its options, capacity, prices, limits and the rate of its calls."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bigfleet_provider_hetzner import __version__, seed
from bigfleet_provider_hetzner.errors import classify
from bigfleet_provider_hetzner.options import NETWORK_ZONE, HetznerOptions, check_credentials
from bigfleet_providerkit import (
    Bucket,
    CallRate,
    CapacityType,
    InterruptionTable,
    Limits,
    ProviderSpec,
    Source,
    Timeouts,
)
from bigfleet_providerkit.hostexec.substrates import DELIVERY_CALLS
from bigfleet_providerkit.kit import Kit

if TYPE_CHECKING:
    from bigfleet_provider_hetzner.substrate import HetznerSubstrate

MIX = ("cx22", "cpx41")
MINUTE = 60.0
CALLS = (
    "CreateServer", "DeleteServer", "ListServers", "GetServer", "PowerOn", "UpdateLabels",
    "GetAction", "ServerTypes", "Images", "Networks", "Firewalls", "PlacementGroups", "SSHKeys",
)  # fmt: skip


async def open_substrate(options: HetznerOptions, kit: Kit) -> "HetznerSubstrate":
    """Make the client. hcloud is imported here, so that --use-fake-backend does without."""
    from bigfleet_provider_hetzner.sessions import open_client
    from bigfleet_provider_hetzner.substrate import HetznerSubstrate

    return HetznerSubstrate(kit, open_client(options.token or "", options.endpoint_url), options)


def mix(options: HetznerOptions) -> Sequence[Bucket]:
    """Two types, each in two locations."""
    return [
        Bucket({"instance_type": kind, "zone": location, "capacity_type": "on_demand"})
        for kind in MIX
        for location in (options.location_a, options.location_b)
    ]


SPEC = ProviderSpec(
    name="hetzner",
    version=__version__,
    options=HetznerOptions,
    open=open_substrate,
    classify=classify,
    credentials=check_credentials,
    region=lambda options: NETWORK_ZONE.get(options.location_a, options.location_a),
    # The cloud controller manager of Hetzner labels a node's region with its location.
    region_of=lambda options, zone: zone,
    type_names=("server_type",),
    zone_names=("location",),
    mix=mix,
    currency="EUR",
    prices=seed.prices(),
    shapes=seed.shapes(),
    interruption=InterruptionTable(otherwise=0.0),
    capacity_types=frozenset({CapacityType.ON_DEMAND}),
    timeouts=Timeouts(
        create=5 * MINUTE, configure=8 * MINUTE, drain=15 * MINUTE, delete=5 * MINUTE
    ),
    limits=Limits(
        tag_key=63, tag_value=63, tag_alphabet=r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?",
        separator="-", name=63, user_data=32 * 1024, blob=4 * 1024 * 1024,
    ),
    poll_interval=3.0,
    consistency_window=15.0,
    pinned_host_keys=True,
    reserve=seed.reserve,
    sources=lambda options: (
        Source("prices", 30 * MINUTE, lambda hetzner: hetzner.read_types()),
    ),
    # A project has 3,600 calls an hour, given back one a second, for all its clients together.
    calls=(CallRate(CALLS, rate=1, burst=60), *DELIVERY_CALLS),
)  # fmt: skip
