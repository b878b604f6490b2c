"""The options of this provider beyond the kit's, and which of them a real start needs."""

from typing import Annotated

from bigfleet_providerkit import Opt, OptionError
from bigfleet_providerkit.hostexec.options import SshOptions
from bigfleet_providerkit.options.units import TextMap, Words

NETWORK_ZONE = {
    "fsn1": "eu-central", "nbg1": "eu-central", "hel1": "eu-central",
    "ash": "us-east", "hil": "us-west", "sin": "ap-southeast",
}  # fmt: skip
NO_CREDENTIALS = (
    "no credentials found (option, environment); set HCLOUD_TOKEN to a Read & Write token of the "
    "project, or run with --use-fake-backend"
)


class HetznerOptions(SshOptions):
    """The kit's options, those of SSH, and this provider's own."""

    token: Annotated[
        str | None,
        Opt("API token (Read & Write) of the project", env=("HCLOUD_TOKEN",), secret=True,
            unset="required"),
    ] = None  # fmt: skip
    location_a: Annotated[str, Opt("first location of the default mix", "nbg1")] = "nbg1"
    location_b: Annotated[str, Opt("second location of the default mix", "fsn1")] = "fsn1"
    image: Annotated[
        TextMap | str,
        Opt("image of new hosts: name, id or label:<selector>; or a map by architecture",
            "ubuntu-24.04"),
    ] = "ubuntu-24.04"  # fmt: skip
    networks: Annotated[
        Words | None, Opt("private networks of new hosts", "nodes", unset="none")
    ] = None
    firewalls: Annotated[Words | None, Opt("firewalls of new hosts", "nodes,ssh", unset="none")] = (
        None
    )
    placement_group: Annotated[
        str | None, Opt("spread placement group of new hosts", "nodes", unset="none")
    ] = None
    public_ipv4: Annotated[
        bool, Opt("give new hosts a public IPv4 address, which is billed apart")
    ] = True

    def missing(self) -> list[str]:
        """What a real start needs and was not given."""
        private = self.ssh_address == "private" and not self.networks
        return [
            *super().missing(),
            *(["--networks (for --ssh-address private)"] if private else []),
        ]


async def check_credentials(options: HetznerOptions) -> None:
    """Say what is missing before anything is tried."""
    if not options.token:
        raise OptionError(NO_CREDENTIALS)
