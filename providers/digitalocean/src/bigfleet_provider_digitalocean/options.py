"""The options of this provider beyond the kit's, and which of them a real start needs."""

from typing import Annotated

from pydantic import Field, field_validator

from bigfleet_providerkit import Opt, OptionError
from bigfleet_providerkit.hostexec.options import AgentOptions
from bigfleet_providerkit.options.units import TextMap, Words

DEFAULT_REGIONS = ("nyc3", "sfo3")
NO_CREDENTIALS = (
    "no credentials found (option, file, environment); set DIGITALOCEAN_TOKEN, or run with "
    "--use-fake-backend"
)


class DigitaloceanOptions(AgentOptions):
    """The kit's options and this provider's own."""

    token: Annotated[
        str | None,
        Opt("token of the API", env=("DIGITALOCEAN_TOKEN",), secret=True, unset="required"),
    ] = None
    region: Annotated[
        str | None,
        Opt(
            "the only region of this process; hosts of others are not looked at",
            "nyc3",
            unset="all that are offered",
        ),
    ] = None
    region_a: Annotated[
        str | None, Opt("first region of the default mix", "ams3", unset="--region, or nyc3")
    ] = None
    region_b: Annotated[
        str | None, Opt("second region of the default mix", "fra1", unset="--region, or sfo3")
    ] = None
    image: Annotated[
        TextMap | str, Opt("image of new hosts: a slug, or the number of an image", "12345678")
    ] = "ubuntu-24-04-x64"
    ssh_keys: Annotated[
        Words | None,
        Opt("SSH keys of new hosts, numbers or fingerprints", "12345,67890", unset="none"),
    ] = None
    vpc: Annotated[
        TextMap, Opt("VPC of each region", "nyc3=5a4981aa-...,sfo3=...", unset="the default")
    ] = Field(default_factory=dict)

    @field_validator("endpoint_url")
    @classmethod
    def _endpoint_is_https(cls, value: str | None) -> str | None:
        if value and not value.startswith("https://"):
            raise ValueError(f"{value!r}: the SDK sends its token over https only; write https://")
        return value

    @property
    def regions(self) -> tuple[str, str]:
        """The regions of the default mix."""
        first, second = (self.region or region for region in DEFAULT_REGIONS)
        return self.region_a or first, self.region_b or second

    def missing(self) -> list[str]:
        """What a real start needs beside credentials and was not given."""
        return [*super().missing(), *([] if self.image else ["--image"])]


async def check_credentials(options: DigitaloceanOptions) -> None:
    """Say what is missing before anything is tried."""
    if not options.token:
        raise OptionError(NO_CREDENTIALS)
