"""What AWS publishes as files: the bulk price list, and the Spot Instance Advisor's data.

The price list of a region has hundreds of megabytes; its CSV form is read with one row in memory at
a time.
"""

import csv
from collections.abc import Collection, Iterable

from bigfleet_provider_aws.options import AwsOptions
from bigfleet_provider_aws.seed import BANDS
from bigfleet_providerkit import CapacityType, InterruptionTable, PriceKey, Retryable
from bigfleet_providerkit.prices.web_list import WebList

PUBLIC_FILES = "https://pricing.us-east-1.amazonaws.com"
OFFERS = "offers/v1.0/aws/AmazonEC2/current"
WANTED = {
    "TermType": "OnDemand", "Unit": "Hrs", "Currency": "USD", "Tenancy": "Shared",
    "Operating System": "Linux", "CapacityStatus": "Used", "Pre Installed S/W": "NA",
}  # fmt: skip
Prices = dict[PriceKey, float]


def offer_file(options: AwsOptions) -> WebList:
    """The price list of a region."""
    base = (options.endpoint("bulk") or PUBLIC_FILES).rstrip("/")
    return WebList(f"{base}/{OFFERS}/{options.in_region}/index.csv")


def cheapest_of(lines: Iterable[bytes], types: Collection[str], region: str) -> Prices:
    """On-demand prices of these types in a price list."""
    rows = csv.reader(line.decode() for line in lines)
    names = next((row for row in rows if row and row[0] == "SKU"), [])
    if not {*WANTED, "Instance Type", "PricePerUnit"} <= set(names):
        raise Retryable("the price list changed its columns; --price-list api reads the API")
    name, price = names.index("Instance Type"), names.index("PricePerUnit")
    wanted = [(names.index(column), value) for column, value in WANTED.items()]
    found: Prices = {}
    for row in rows:
        if row[name] in types and all(row[at] == value for at, value in wanted):
            key, usd = PriceKey(row[name], region, CapacityType.ON_DEMAND), float(row[price])
            if usd > 0:
                found[key] = min(found.get(key, usd), usd)
    return found


def read_advice(url: str, region: str) -> InterruptionTable:
    """How often spot instances were taken back last month, by type."""
    rows = WebList(url).document()["spot_advisor"].get(region, {}).get("Linux", {})
    values = {
        str(name): BANDS[row["r"]] for name, row in rows.items() if 0 <= row["r"] < len(BANDS)
    }
    return InterruptionTable(values, horizon="month")
