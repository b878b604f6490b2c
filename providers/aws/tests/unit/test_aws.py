"""What the provider declares, and how the errors of AWS become classes."""

import json
import re
from datetime import date
from pathlib import Path

import pytest

import aws_market as market
from bigfleet_provider_aws import catalogue, notices, offer_file, orders, seed
from bigfleet_provider_aws.errors import classify
from bigfleet_provider_aws.options import AwsOptions
from bigfleet_provider_aws.spec import SPEC
from bigfleet_providerkit import (
    CapacityType,
    InvalidRequest,
    NoticeKind,
    PriceKey,
    Retryable,
    Unauthorized,
)
from bigfleet_providerkit.options.help import option_table

PAGES = Path(__file__).parents[4] / "docs" / "providers" / "aws"
IN_ZONE = "Your requested instance type (m6i.large) is not supported in your Availability Zone"


class ServiceError(Exception):
    """The form of botocore's ClientError."""

    def __init__(
        self, code: str, message: str = "", status: int = 400, operation: str = "RunInstances"
    ) -> None:
        super().__init__(code)
        self.operation_name = operation
        self.response = {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {"retry-after": "7"}},
        }


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (ServiceError("RequestLimitExceeded", status=503), "Throttled"),
        (ServiceError("ThrottlingException"), "Throttled"),
        (ServiceError("InsufficientInstanceCapacity", status=500), "OutOfCapacity"),
        (ServiceError("InsufficientHostCapacity"), "OutOfCapacity"),
        (ServiceError("UnfulfillableCapacity"), "OutOfCapacity"),
        (ServiceError("SpotMaxPriceTooLow"), "OutOfCapacity"),
        (ServiceError("ReservationCapacityExceeded"), "OutOfCapacity"),
        (ServiceError("Unsupported", IN_ZONE), "OutOfCapacity"),
        (ServiceError("Unsupported", "hibernation is not supported"), "InvalidRequest"),
        (ServiceError("VcpuLimitExceeded"), "QuotaExceeded"),
        (ServiceError("InstanceLimitExceeded"), "QuotaExceeded"),
        (ServiceError("MaxSpotInstanceCountExceeded"), "QuotaExceeded"),
        (ServiceError("UnauthorizedOperation"), "Unauthorized"),
        (ServiceError("AuthFailure", status=401), "Unauthorized"),
        (ServiceError("ExpiredToken"), "Unauthorized"),
        (ServiceError("AccessDeniedException"), "Unauthorized"),
        (ServiceError("RequestExpired"), "Unauthorized"),
        (ServiceError("InvalidInstanceID.NotFound"), "HostLost"),
        (ServiceError("IdempotentParameterMismatch"), "InvalidRequest"),
        (ServiceError("InvalidAMIID.NotFound"), "InvalidRequest"),
        (ServiceError("InvalidParameterValue"), "InvalidRequest"),
        (ServiceError("InvalidInstanceId", operation="SendCommand"), "Unavailable"),
        (ServiceError("InvocationDoesNotExist"), "Unavailable"),
        (ServiceError("IncorrectInstanceState"), "Unavailable"),
        (ServiceError("InternalError", status=500), "Unavailable"),
        (ServiceError("SomethingNew", status=500), "Unavailable"),
    ],
)
def test_errors_become_classes(error: ServiceError, word: str) -> None:
    known = classify(error)
    assert known is not None
    assert known.word == word


def test_an_unknown_error_is_left_to_the_kit() -> None:
    assert classify(KeyError("x")) is None


def test_the_pause_that_a_throttled_call_was_given_is_kept() -> None:
    known = classify(ServiceError("Throttling"))
    assert isinstance(known, Retryable)
    assert known.after == 7.0


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            ServiceError("UnauthorizedOperation", "not authorized to perform: iam:PassRole on x"),
            "missing permission iam:PassRole",
        ),
        (ServiceError("UnauthorizedOperation"), "missing permission ec2:RunInstances"),
        (
            ServiceError("AccessDeniedException", operation="SendCommand"),
            "missing permission ssm:SendCommand",
        ),
        (ServiceError("RequestExpired"), "this machine's clock is right"),
    ],
)
def test_a_refusal_names_the_permission_or_the_clock(error: ServiceError, text: str) -> None:
    known = classify(error)
    assert isinstance(known, Unauthorized)
    assert text in str(known)


def test_only_a_code_of_4xx_proves_that_nothing_was_done() -> None:
    for status, refused in ((409, True), (500, False), (503, False)):
        known = classify(ServiceError("SomethingNew", status=status))
        assert isinstance(known, Retryable)
        assert known.refused is refused


def test_the_seed_table_has_the_prices_and_shapes_it_was_read_with() -> None:
    table, shapes = seed.SEED.prices, seed.SEED.shapes
    assert isinstance(table.dated, date)
    assert len(shapes) == 25
    for name, price in (
        ("m6i.large", 0.096), ("c7g.xlarge", 0.145), ("r6i.large", 0.126), ("g5.xlarge", 1.006),
    ):  # fmt: skip
        for region in ("us-east-1", "us-west-2"):
            assert table.values[PriceKey(name, region, CapacityType.ON_DEMAND)] == price
    assert PriceKey("m6i.large", "eu-west-1", CapacityType.ON_DEMAND) not in table.values
    assert table.spot_fraction == 0.3
    assert (shapes["m6i.large"].cpu, shapes["m6i.large"].memory) == (2000, 8 * 1024**3)
    assert (shapes["g5.12xlarge"].gpus, shapes["g5.12xlarge"].accelerator) == (4, "nvidia-a10g")
    assert shapes["c7g.xlarge"].arch == "arm64"


def test_the_reserve_is_what_the_node_of_a_type_keeps_for_itself() -> None:
    shapes = seed.SEED.shapes
    assert seed.reserve(shapes["m6i.large"]) == {"cpu": "70m", "memory": "1289Mi"}
    assert seed.reserve(shapes["m6i.metal"])["cpu"] == "390m"
    for shape in shapes.values():
        kept = seed.reserve(shape)
        assert 0 < int(kept["cpu"][:-1]) < shape.cpu / 10
        assert 0 < int(kept["memory"][:-2]) * 1024**2 < shape.memory / 2


def test_a_live_shape_has_pods_gpus_and_architecture() -> None:
    row = market.TYPES["p5.48xlarge"].described()
    shape = catalogue.shape_of(row)
    assert (shape.cpu, shape.memory) == (192_000, 2048 * 1024**3)
    assert (shape.gpus, shape.accelerator, shape.arch) == (8, "nvidia-h100", "amd64")
    assert shape.pods == 64 * 49 + 2
    assert catalogue.shape_of(market.TYPES["c7g.xlarge"].described()).arch == "arm64"


def test_pods_are_limited_by_the_addresses_of_the_interfaces() -> None:
    assert (
        catalogue.most_pods(3, 10),
        catalogue.most_pods(4, 15),
        catalogue.most_pods(15, 50),
    ) == (29, 58, 737)


@pytest.mark.parametrize(
    ("image", "arch", "parameter"),
    [
        ("ami-1", "amd64", None),
        ("ssm:/golden/image", "amd64", "/golden/image"),
        ("ssm:/golden/{arch}", "amd64", "/golden/x86_64"),
        (
            "family:al2023",
            "arm64",
            "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64",
        ),
        (
            "family:ubuntu-24.04",
            "amd64",
            "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
        ),
        (
            "family:eks-1.34",
            "amd64",
            "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/"
            "image_id",
        ),
    ],
)
def test_an_alias_names_a_parameter(image: str, arch: str, parameter: str | None) -> None:
    assert orders.parameter_of(image, arch) == parameter


def test_an_unknown_family_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidRequest, match=r"'windows'.*al2023"):
        orders.parameter_of("family:windows", "amd64")


def an_event(kind: str, **detail: str) -> str:
    return json.dumps(
        {
            "detail-type": kind,
            "time": "2026-11-01T12:00:00Z",
            "detail": {"instance-id": "i-1", **detail},
        }
    )


def test_events_become_notices() -> None:
    noon = 1793534400.0
    warned = notices.notice_of(an_event("EC2 Spot Instance Interruption Warning"), 5.0)
    assert warned is not None
    assert (warned.ref, warned.kind, warned.probability) == ("i-1", NoticeKind.WARNING, 0.99)
    assert (warned.received, warned.ends) == (5.0, noon + 120)
    hint = notices.notice_of(an_event("EC2 Instance Rebalance Recommendation"), 5.0)
    assert hint is not None
    assert (hint.kind, hint.probability, hint.ends) == (NoticeKind.REBALANCE, 0.5, None)
    change = "EC2 Instance State-change Notification"
    ended = notices.notice_of(an_event(change, state="terminated"), 5.0)
    assert ended is not None
    assert ended.kind is NoticeKind.GONE
    assert notices.notice_of(an_event(change, state="running"), 5.0) is None
    assert notices.notice_of(an_event("EC2 Something Else"), 5.0) is None


def test_a_price_list_entry_without_dollars_gives_no_price() -> None:
    rate = {"unit": "Hrs", "pricePerUnit": {"CNY": "1.0"}}
    entry = {"terms": {"OnDemand": {"x": {"priceDimensions": {"y": rate}}}}}
    assert catalogue.hourly_prices(json.dumps(entry)) == []
    rate["pricePerUnit"] = {"USD": "0.5"}
    assert catalogue.hourly_prices(json.dumps(entry)) == [0.5]
    assert catalogue.hourly_prices(json.dumps({"terms": {}})) == []


def test_a_bulk_list_whose_columns_changed_is_refused() -> None:
    rows = [b'"SKU","Type","Price"\n', b'"A","m6i.large","0.1"\n']
    with pytest.raises(Retryable, match="changed its columns"):
        offer_file.cheapest_of(rows, {"m6i.large"}, "us-east-1")


@pytest.mark.parametrize("image", ["m6i.large", "golden", "latest"])
def test_an_image_has_one_of_three_forms(image: str) -> None:
    with pytest.raises(ValueError, match="is not an image"):
        AwsOptions(image=image)


def test_a_real_start_names_all_that_is_missing() -> None:
    assert AwsOptions().missing() == ["--image", "--iam-instance-profile"]
    assert AwsOptions(image="family:al2023", iam_instance_profile="x").missing() == []


def test_the_default_mix_is_in_two_zones_of_the_region() -> None:
    buckets = SPEC.buckets(AwsOptions(region="eu-west-1"))
    assert [(b.offering["capacity_type"], b.offering["zone"]) for b in buckets] == [
        ("on_demand", "eu-west-1a"), ("on_demand", "eu-west-1b"),
        ("spot", "eu-west-1a"), ("spot", "eu-west-1b"),
    ]  # fmt: skip


def test_the_pages_are_there_and_agree_with_the_declarations() -> None:
    pages = {path.stem for path in PAGES.glob("*.md")}
    assert pages == {
        "index", "install", "configuration", "credentials", "pricing-and-interruption",
        "observability", "security", "troubleshooting", "certification",
    }  # fmt: skip
    observability = (PAGES / "observability.md").read_text("utf-8")
    assert set(re.findall(r"`([A-Z][a-z]+[A-Z]\w+)`", observability)) == set(SPEC.call_names)
    page = (PAGES / "configuration.md").read_text("utf-8")
    base = set(SPEC.options.__mro__[1].model_fields) - {"provider", "image"}  # type: ignore[attr-defined]
    for row in option_table(SPEC.options, lambda name: name not in base).splitlines()[2:]:
        assert row in page
    prices = (PAGES / "pricing-and-interruption.md").read_text("utf-8")
    for key, price in seed.SEED.prices.values.items():
        assert f"| {key.instance_type} | {price:g} |" in prices
