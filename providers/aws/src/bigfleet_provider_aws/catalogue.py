"""Shapes and prices of the offered types, from the API of AWS.

Every source asks only for what is offered, so that a fleet of ten types costs ten short answers
and not a list of a thousand. What was not really read is left out; the shipped tables serve there.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from bigfleet_provider_aws.api import Api
from bigfleet_provider_aws.offer_file import cheapest_of, offer_file, read_advice
from bigfleet_providerkit import Capacity, CapacityType, PriceKey, SourceData

HISTORY_S = 6 * 3600.0
MIB = 1024**2
WITHOUT_PRICE_API = ("us-gov-", "us-iso")
LISTED = {
    "operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA",
    "capacitystatus": "Used",
}  # fmt: skip
"""The attributes of the price of a plain Linux instance."""


class Catalogue:
    """Asks one region. The kit reads each of its methods by its own period."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._kit = api.kit
        self._region = api.options.in_region
        self._bulk = offer_file(api.options) if api.options.price_list == "bulk" else None

    def offered(self, kind: CapacityType | None = None) -> list[str]:
        """The offered types, or those of a capacity type."""
        offerings = self._kit.offerings
        return sorted({one.instance_type for one in offerings if kind in (None, one.capacity_type)})

    async def shapes(self) -> SourceData:
        """Shapes by type. A filter leaves out a type that is unknown here; naming it as a parameter
        would fail the whole call."""
        wanted = {"instance-type": self.offered()}
        rows = await self._api.rows("DescribeInstanceTypes", "InstanceTypes", wanted)
        return SourceData(capacities={str(row["InstanceType"]): shape_of(row) for row in rows})

    async def spot_prices(self) -> SourceData:
        """The newest spot price of each offered type and zone."""
        newest: dict[PriceKey, tuple[float, float]] = {}
        for row in await self._api.rows(
            "DescribeSpotPriceHistory", "SpotPriceHistory",
            {"instance-type": self.offered(CapacityType.SPOT)},
            ProductDescriptions=["Linux/UNIX"], StartTime=self._kit.clock.now() - HISTORY_S,
        ):  # fmt: skip
            zone = str(row["AvailabilityZone"])
            key = PriceKey(str(row["InstanceType"]), zone, CapacityType.SPOT)
            seen = (row["Timestamp"].timestamp(), float(row["SpotPrice"]))
            newest[key] = max(newest.get(key, seen), seen)
        return SourceData(prices={key: price for key, (_, price) in newest.items()})

    async def on_demand_prices(self) -> SourceData:
        """On-demand prices of the offered types: one call for each, or the public file."""
        if self._bulk is not None:
            read = partial(cheapest_of, types=self.offered(), region=self._region)
            changed = await self._kit.call("PriceListBulk", self._bulk.read, read)
            return SourceData(changed or {})
        if self._region.startswith(WITHOUT_PRICE_API):
            return SourceData()
        found = {}
        for name in self.offered():
            wanted = {**LISTED, "instanceType": name, "regionCode": self._region}
            terms = [{"Type": "TERM_MATCH", "Field": k, "Value": v} for k, v in wanted.items()]
            answer = await self._api.call("GetProducts", ServiceCode="AmazonEC2", Filters=terms)
            prices = [price for text in answer["PriceList"] for price in hourly_prices(text)]
            if prices:
                found[PriceKey(name, self._region, CapacityType.ON_DEMAND)] = min(prices)
        return SourceData(found)

    async def interruptions(self) -> SourceData:
        """How often spot hosts are taken back, by type; nothing new without an address."""
        url = self._api.options.spot_advisor_url
        if not url:
            return SourceData()
        advice = await self._kit.call("SpotAdvisor", read_advice, url, self._region)
        return SourceData(forecasts=advice)


def hourly_prices(text: str) -> list[float]:
    """The hourly dollars in one entry of the price list; a CNY list has none."""
    terms = json.loads(text)["terms"].get("OnDemand", {})
    return [
        price
        for term in terms.values()
        for rate in term["priceDimensions"].values()
        if rate["unit"] == "Hrs" and (price := float(rate["pricePerUnit"].get("USD", 0))) > 0
    ]


def shape_of(row: Mapping[str, Any]) -> Capacity:
    """The shape in one row of DescribeInstanceTypes."""
    gpus = [
        gpu
        for gpu in row.get("GpuInfo", {}).get("Gpus", ())
        if str(gpu.get("Manufacturer", "")).upper() == "NVIDIA"
    ]
    network, architectures = row["NetworkInfo"], row["ProcessorInfo"]["SupportedArchitectures"]
    interfaces = int(network["MaximumNetworkInterfaces"])
    return Capacity(
        cpu=int(row["VCpuInfo"]["DefaultVCpus"]) * 1000,
        memory=int(row["MemoryInfo"]["SizeInMiB"]) * MIB,
        gpus=sum(int(gpu["Count"]) for gpu in gpus),
        accelerator=f"nvidia-{gpus[0]['Name']}".lower().replace(" ", "-") if gpus else "",
        arch="arm64" if "arm64" in architectures else "amd64",
        pods=most_pods(interfaces, int(network["Ipv4AddressesPerInterface"])),
    )


def most_pods(interfaces: int, addresses: int) -> int:
    """Pods a node can hold with the VPC network: one address of each interface is its own, and two
    Pods use the host's network."""
    return interfaces * (addresses - 1) + 2
