"""What AWS publishes as files: the bulk price list, and the Spot Instance Advisor's data.

The price list of a region has hundreds of megabytes. It is read as the stream of its CSV form, one
row in memory at a time, and only when it changed (its ETag).
"""

import csv
from collections.abc import Collection, Iterable, Iterator

from bigfleet_provider_aws.options import AwsOptions
from bigfleet_provider_aws.seed import BANDS
from bigfleet_providerkit import CapacityType, InterruptionTable, PriceKey, Retryable
from bigfleet_providerkit.prices.web_list import WebList

PUBLIC_FILES = "https://pricing.us-east-1.amazonaws.com"
WANTED = {
    "TermType": "OnDemand",
    "Unit": "Hrs",
    "Currency": "USD",
    "Tenancy": "Shared",
    "Operating System": "Linux",
    "CapacityStatus": "Used",
    "Pre Installed S/W": "NA",
}


class OfferFile:
    """The price list of a region."""

    def __init__(self, options: AwsOptions) -> None:
        base = options.endpoint("bulk") or PUBLIC_FILES
        self._region = options.in_region
        path = f"offers/v1.0/aws/AmazonEC2/current/{self._region}/index.csv"
        self._list = WebList(f"{base.rstrip('/')}/{path}")

    def read(self, types: Collection[str]) -> dict[PriceKey, float]:
        """On-demand prices of these types; nothing when the list did not change."""

        def cheapest(lines: Iterable[bytes]) -> dict[PriceKey, float]:
            found: dict[PriceKey, float] = {}
            for name, price in read_rows(lines, types):
                key = PriceKey(name, self._region, CapacityType.ON_DEMAND)
                found[key] = min(found.get(key, price), price)
            return found

        return self._list.read(cheapest) or {}


def read_rows(lines: Iterable[bytes], types: Collection[str]) -> Iterator[tuple[str, float]]:
    rows = csv.reader(line.decode() for line in lines)
    names = next((row for row in rows if row and row[0] == "SKU"), None)
    if names is None or not {*WANTED, "Instance Type", "PricePerUnit"} <= set(names):
        raise Retryable("the price list changed its columns; --price-list api reads the API")
    at = {name: names.index(name) for name in (*WANTED, "Instance Type", "PricePerUnit")}
    for row in rows:
        if row[at["Instance Type"]] not in types:
            continue
        if all(row[at[name]] == value for name, value in WANTED.items()):
            price = float(row[at["PricePerUnit"]])
            if price > 0:
                yield row[at["Instance Type"]], price


def read_advice(url: str, region: str) -> InterruptionTable:
    """How often spot instances were taken back last month, by type."""
    data = WebList(url).document()
    rows = data["spot_advisor"].get(region, {}).get("Linux", {})
    values = {
        str(name): BANDS[row["r"]] for name, row in rows.items() if 0 <= row["r"] < len(BANDS)
    }
    return InterruptionTable(values, horizon="month")
