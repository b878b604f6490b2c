"""The executable `bigfleet-provider-digitalocean`."""

import bigfleet_providerkit
from bigfleet_provider_digitalocean.spec import SPEC


def main() -> None:
    """Serve, or do what the command line says."""
    bigfleet_providerkit.main(SPEC)
