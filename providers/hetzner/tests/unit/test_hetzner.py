"""What the provider declares, and how the API's errors become classes."""

import re
from pathlib import Path

import pytest

from bigfleet_provider_hetzner import seed
from bigfleet_provider_hetzner.errors import RateLimitedError, classify, of_code
from bigfleet_provider_hetzner.options import HetznerOptions
from bigfleet_provider_hetzner.spec import SPEC
from bigfleet_providerkit import (
    Capacity,
    CapacityType,
    KitOptions,
    OptionError,
    PriceKey,
    SubstrateError,
)
from bigfleet_providerkit.options.help import option_table

FOLDER = Path(__file__).parents[2]
PAGES = FOLDER.parents[1] / "docs" / "providers" / FOLDER.name


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("resource_unavailable", "OutOfCapacity"),
        ("placement_error", "OutOfCapacity"),
        ("resource_limit_exceeded", "QuotaExceeded"),
        ("rate_limit_exceeded", "Throttled"),
        ("unauthorized", "Unauthorized"),
        ("token_readonly", "Unauthorized"),
        ("forbidden", "Unauthorized"),
        ("not_found", "HostLost"),
        ("invalid_input", "InvalidRequest"),
        ("uniqueness_error", "InvalidRequest"),
        ("locked", "Unavailable"),
        ("service_error", "Unavailable"),
        (503, "Unavailable"),
    ],
)
def test_codes_become_classes(code: object, word: str) -> None:
    assert of_code(code, "text").word == word


def test_a_rate_limit_keeps_its_pause_and_a_strange_error_is_left_to_the_kit() -> None:
    limited = classify(RateLimitedError("/servers", 1.0))
    assert limited is not None
    assert limited.word == "Throttled"
    assert classify(KeyError("x")) is None


async def test_a_missing_token_is_named() -> None:
    with pytest.raises(OptionError, match="no credentials found"):
        await SPEC.credentials(HetznerOptions())


def test_private_addresses_need_a_network() -> None:
    assert HetznerOptions(ssh_key="key", ssh_address="private").missing()
    assert not HetznerOptions(ssh_key="key", ssh_address="private", networks=("n",)).missing()


def test_live_prices_are_net_and_by_location() -> None:
    price = {"net": "0.0060", "gross": "0.0071"}
    row = {
        "name": "cax11", "architecture": "arm", "cores": 2, "memory": 4.0,
        "prices": [{"location": "nbg1", "price_hourly": price}],
    }  # fmt: skip
    read = seed.live([row])
    assert read.prices == {PriceKey("cax11", "nbg1", CapacityType.ON_DEMAND): 0.006}
    assert read.capacities["cax11"] == Capacity(2000, 4 * 1024**3, arch="arm64")


@pytest.mark.parametrize("row", [{}, {"name": "cx22", "architecture": "riscv"}, {"name": None}])
def test_a_list_of_another_form_is_an_error(row: dict[str, object]) -> None:
    with pytest.raises(SubstrateError, match="changed its form"):
        seed.live([row])


def test_the_seed_has_the_types_of_the_mix_and_arm_where_it_is() -> None:
    prices = {key.instance_type: value for key, value in SPEC.prices.values.items()}
    assert (prices["cx22"], prices["cpx41"], len(prices)) == (0.006, 0.044, 19)
    arms = {name for name, shape in SPEC.shapes.items() if shape.arch == "arm64"}
    assert arms == {"cax11", "cax21", "cax31", "cax41"}


def test_the_pages_are_there_and_agree_with_the_declarations() -> None:
    pages = {path.stem for path in PAGES.glob("*.md")}
    assert pages == {
        "index", "install", "configuration", "credentials", "pricing-and-interruption",
        "observability", "security", "troubleshooting", "certification",
    }  # fmt: skip
    observability = (PAGES / "observability.md").read_text("utf-8")
    assert set(re.findall(r"`([A-Z]\w+)`", observability)) == set(SPEC.call_names)
    page = (PAGES / "configuration.md").read_text("utf-8")
    base = set(KitOptions.model_fields) - {"provider", "image"}
    for row in option_table(SPEC.options, lambda name: name not in base).splitlines()[2:]:
        assert row in page
    prices = (PAGES / "pricing-and-interruption.md").read_text("utf-8")
    for key, price in seed.prices().values.items():
        assert f"| {key.instance_type} | {price:g} |" in prices
