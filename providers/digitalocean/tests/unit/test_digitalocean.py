"""What the provider declares, how the API's errors become classes, and what the pages say."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from bigfleet_provider_digitalocean import seed
from bigfleet_provider_digitalocean.errors import SCOPES, NotFoundError, classify
from bigfleet_provider_digitalocean.options import DigitaloceanOptions
from bigfleet_provider_digitalocean.sizes import market_of
from bigfleet_provider_digitalocean.spec import SPEC
from bigfleet_providerkit import Capacity, KitOptions, OptionError, Retryable
from bigfleet_providerkit.options.help import option_table

PAGES = Path(__file__).parents[4] / "docs" / "providers" / "digitalocean"
URL = "https://api.digitalocean.com/v2"


@dataclass
class Request:
    """What was sent."""

    method: str = "POST"
    url: str = f"{URL}/droplets"


@dataclass
class Answer:
    """What the SDK keeps of an answer."""

    body: object
    headers: dict[str, str] = field(default_factory=dict)
    request: Request = field(default_factory=Request)

    def json(self) -> object:
        if isinstance(self.body, str):
            raise ValueError(self.body)
        return self.body


class SdkError(Exception):
    """Like the SDK's error."""

    def __init__(self, status: int, message: str, request: Request, **headers: str) -> None:
        super().__init__("Operation returned an invalid status")
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        self.status_code = status
        self.response = Answer({"id": "x", "message": message}, named, request)


def word(status: int, message: str, **headers: str) -> str:
    known = classify(SdkError(status, message, Request(), **headers))
    assert known is not None
    return known.word


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (422, "Size is not available in this region.", "OutOfCapacity"),
        (422, "Region is not available", "OutOfCapacity"),
        (422, "This size is unavailable", "OutOfCapacity"),
        (422, "creating this/these droplet(s) will exceed your droplet limit", "QuotaExceeded"),
        (422, "This size is currently restricted please send a payment", "QuotaExceeded"),
        (422, "You specified an invalid image for Droplet creation.", "InvalidRequest"),
        (422, "The image you specified is not available in the selected region", "InvalidRequest"),
        (422, "Droplet already has a pending event.", "Unavailable"),
        (429, "API Rate limit exceeded.", "Throttled"),
        (401, "Unable to authenticate you", "Unauthorized"),
        (403, "You are not authorized to perform this operation", "Unauthorized"),
        (404, "The resource you were accessing could not be found.", "HostLost"),
        (409, "busy", "Unavailable"),
        (500, "Server Error", "Unavailable"),
    ],
)
def test_errors_become_classes(status: int, message: str, expected: str) -> None:
    assert word(status, message) == expected


def test_only_a_refusal_proves_that_nothing_was_ordered() -> None:
    busy = classify(SdkError(422, "Droplet already has a pending event.", Request()))
    broken = classify(SdkError(502, "bad gateway", Request()))
    assert isinstance(busy, Retryable)
    assert isinstance(broken, Retryable)
    assert (busy.refused, broken.refused) == (True, False)


def test_a_throttled_call_waits_as_long_as_the_api_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bigfleet_providerkit.calls.http_errors.time.time", lambda: 1000.0)
    for headers, expected in (
        ({"retry_after": "7"}, 7.0),
        ({"ratelimit_reset": "1090"}, 90.0),
        ({"ratelimit_reset": "900"}, 1.0),
        ({}, None),
    ):
        known = classify(SdkError(429, "too many", Request(), **headers))
        assert isinstance(known, Retryable)
        assert known.after == expected


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "droplets", "droplet:create"),
        ("GET", "droplets?tag_name=bfprov%3Ax&page=1", "droplet:read"),
        ("DELETE", "droplets/12", "droplet:delete"),
        ("POST", "droplets/12/actions", "droplet:update"),
        ("DELETE", "tags/bfop:x-1", "tag:delete"),
        ("POST", "tags/bfop:x-1/resources", "tag:create"),
    ],
)
def test_a_token_that_is_too_narrow_is_told_by_the_scope(
    method: str, path: str, scope: str
) -> None:
    known = classify(SdkError(403, "no", Request(method, f"{URL}/{path}")))
    assert str(known).startswith(f"the token lacks the scope {scope}:")


def test_what_the_api_never_said_is_left_to_the_kit() -> None:
    assert classify(KeyError("x")) is None
    assert classify(ConnectionRefusedError("x")) is None
    gone = classify(NotFoundError("no droplet 7"))
    assert gone is not None
    assert gone.word == "HostLost"


async def test_missing_credentials_are_named() -> None:
    with pytest.raises(OptionError, match="set DIGITALOCEAN_TOKEN, or run with"):
        await SPEC.credentials(DigitaloceanOptions())


def test_a_token_never_goes_over_plain_http() -> None:
    with pytest.raises(ValueError, match="over https only; write https://"):
        DigitaloceanOptions(endpoint_url="http://127.0.0.1:9090")


def test_one_region_serves_the_whole_default_mix_when_it_is_given() -> None:
    for given, expected in (
        ({}, ("nyc3", "sfo3")),
        ({"region": "ams3"}, ("ams3", "ams3")),
        ({"region_b": "fra1"}, ("nyc3", "fra1")),
    ):
        options = DigitaloceanOptions.model_validate(given)
        assert options.regions == expected
        assert len(SPEC.buckets(options)) == 2 * len(set(expected))
    assert SPEC.default_label(DigitaloceanOptions(region="ams3")) == "digitalocean-ams3"


def test_sizes_that_cannot_be_read_are_left_out_and_a_list_of_them_is_an_error() -> None:
    good = {"slug": "s", "vcpus": 2, "memory": 4096, "price_hourly": 0.03}
    amd = {**good, "slug": "a", "gpu_info": {"count": 8, "model": "amd_mi300x"}}
    h100 = {**good, "slug": "h", "gpu_info": {"count": 1, "model": "nvidia_h100"}}
    market = market_of([good, {**good, "slug": "t", "price_hourly": None}, "x", amd, h100])
    assert {key.instance_type for key in market.prices} == {"s", "a", "h"}
    assert market.capacities["s"] == Capacity(cpu=2000, memory=4 * seed.GIB)
    assert market.capacities["a"].extended == {"amd.com/gpu": 8}
    assert (market.capacities["h"].gpus, market.capacities["h"].accelerator) == (1, "nvidia-h100")
    for rows in ([], [{"slug": "s", "hourly": 1}]):
        with pytest.raises(Retryable, match="no size of the list can be read"):
            market_of(rows)


def test_a_node_keeps_more_of_a_larger_droplet_and_never_all_of_it() -> None:
    for shape in seed.SEED.shapes.values():
        kept = seed.reserve(shape)
        assert int(kept["cpu"].removesuffix("m")) < shape.cpu / 10
        assert 0 < int(kept["memory"].removesuffix("Mi")) * seed.MIB < shape.memory * 0.4
    assert seed.reserve(Capacity(cpu=2000, memory=4 * seed.GIB)) == {
        "cpu": "70m",
        "memory": "1124Mi",
    }


def test_the_pages_are_there_and_agree_with_the_declarations() -> None:
    pages = {path.stem for path in PAGES.glob("*.md")}
    assert pages == {
        "index", "install", "configuration", "credentials", "pricing-and-interruption",
        "observability", "security", "troubleshooting", "certification",
    }  # fmt: skip
    observability = (PAGES / "observability.md").read_text("utf-8")
    named = {name for row in re.findall(r"^\| (`.*?) \|", observability, re.M) for name in
             re.findall(r"`([A-Z]\w+)`", row)}  # fmt: skip
    assert named == set(SPEC.call_names)
    configuration = (PAGES / "configuration.md").read_text("utf-8")
    kit = set(KitOptions.model_fields) - {"image", "provider"}
    for row in option_table(SPEC.options, lambda name: name not in kit).splitlines()[2:]:
        assert row in configuration


def test_the_page_lists_the_scopes_and_the_shipped_prices() -> None:
    credentials = (PAGES / "credentials.md").read_text("utf-8")
    wanted = {scope for row in SCOPES.values() for scope in row.split(", ")}
    assert set(re.findall(r"`(\w+:(?:read|create|update|delete))`", credentials)) == wanted
    pricing = (PAGES / "pricing-and-interruption.md").read_text("utf-8")
    table = yaml.safe_load(Path(seed.__file__).with_name("seed.yaml").read_text("utf-8"))
    for name, (price, cpus, gib) in table["types"].items():
        assert f"| {name} | {price} | {cpus} | {gib} |" in pricing
    assert str(table["dated"]) in pricing
