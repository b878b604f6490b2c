"""The options of this provider beyond the kit's, and which of them a real start needs."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from bigfleet_providerkit import KitOptions, Opt, OptionError
from bigfleet_providerkit.options.units import Duration, TextMap, Words

DEFAULT_REGION = "us-east-1"
"""Where the fake backend is; a real start has to say where it is."""
ADVISOR_URL = "https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json"
SERVICES = ("ec2", "ssm", "sqs", "pricing", "sts", "bulk")
"""What --endpoint-url can name; bulk is the address of the public price files."""
NO_CREDENTIALS = (
    "no credentials found (environment, shared file, instance role); set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, or run with --use-fake-backend"
)


class AwsOptions(KitOptions):
    """The kit's options and this provider's own."""

    region: Annotated[
        str | None,
        Opt("AWS region of all machines", "eu-west-1", env=("AWS_REGION", "AWS_DEFAULT_REGION"),
            unset="required; us-east-1 with the fake"),
    ] = None  # fmt: skip
    zone_a: Annotated[
        str | None, Opt("first zone of the default mix", "eu-west-1a", unset="<region>a")
    ] = None
    zone_b: Annotated[
        str | None, Opt("second zone of the default mix", "eu-west-1b", unset="<region>b")
    ] = None
    image: Annotated[
        TextMap | str,
        Opt("image of new hosts: ami-..., ssm:<parameter>, family:<name>; or a map by architecture",
            "family:al2023", aliases=("ami",), unset="required"),
    ] = ""  # fmt: skip
    subnets: Annotated[
        TextMap,
        Opt("subnet of each zone", "eu-west-1a=subnet-1,eu-west-1b=subnet-2", unset="the default"),
    ] = Field(default_factory=dict)
    security_groups: Annotated[
        Words | None, Opt("security groups of new hosts", "sg-1,sg-2", unset="the network's own")
    ] = None
    iam_instance_profile: Annotated[
        str | None,
        Opt("instance profile of new hosts, name or ARN", "bigfleet-node", unset="required"),
    ] = None
    key_name: Annotated[str | None, Opt("SSH key pair of new hosts", "ops", unset="none")] = None
    disk_type: Annotated[
        str | None, Opt("volume type of the root disk", "gp3", unset="the image's")
    ] = None
    disk_encryption_key: Annotated[
        str | None,
        Opt("KMS key of the root disk; `aws` for the account's own", "alias/nodes", unset="none"),
    ] = None
    assume_role: Annotated[
        str | None,
        Opt("role to work as, in another account", "arn:aws:iam::1:role/fleet", unset="none"),
    ] = None
    assume_role_external_id: Annotated[
        str | None, Opt("external id that the role asks for", "fleet-7", unset="none")
    ] = None
    spot_refresh: Annotated[Duration, Opt("pause between two looks at spot prices", "5m")] = 300.0
    ondemand_refresh: Annotated[
        Duration, Opt("pause between two looks at on-demand prices", "60m")
    ] = 3600.0
    price_list: Annotated[
        Literal["api", "bulk"],
        Opt("where on-demand prices come from: the price list API or its public file"),
    ] = "api"
    spot_interruption_queue: Annotated[
        str | None,
        Opt("URL of the SQS queue with EC2 events",
            "https://sqs.eu-west-1.amazonaws.com/1/bigfleet", unset="no notices"),
    ] = None  # fmt: skip
    spot_advisor_url: Annotated[
        str, Opt("address of the Spot Instance Advisor's data; empty = the shipped table", "")
    ] = ADVISOR_URL

    @field_validator("image")
    @classmethod
    def _image_fits(cls, value: str | dict[str, str]) -> str | dict[str, str]:
        images = value.values() if isinstance(value, dict) else [value] if value else []
        for image in images:
            if not image.startswith(("ami-", "ssm:", "family:")):
                raise ValueError(f"{image!r} is not an image: write ami-..., ssm:... or family:...")
        return value

    @field_validator("endpoint_url")
    @classmethod
    def _services_are_known(cls, value: str | None) -> str | None:
        for part in (value or "").split(","):
            name = part.strip().rpartition("=")[0]
            if name and "://" not in name and name not in SERVICES:
                raise ValueError(f"{name!r} is not a service; choose from {', '.join(SERVICES)}")
        return value

    @property
    def in_region(self) -> str:
        """The region, also where none was given."""
        return self.region or DEFAULT_REGION

    @property
    def zones(self) -> tuple[str, str]:
        """The zones of the default mix."""
        return self.zone_a or f"{self.in_region}a", self.zone_b or f"{self.in_region}b"

    def missing(self) -> list[str]:
        """What a real start needs and was not given."""
        wanted = {"--image": self.image, "--iam-instance-profile": self.iam_instance_profile}
        return [name for name, value in wanted.items() if not value]


async def check_credentials(options: AwsOptions) -> None:
    """Say what is missing before anything is tried."""
    from bigfleet_provider_aws.sessions import has_credentials

    problems = [] if await has_credentials(options) else [NO_CREDENTIALS]
    if not options.region:
        problems.append("no region: give --region or set AWS_REGION")
    if problems:
        raise OptionError("; ".join(problems))
