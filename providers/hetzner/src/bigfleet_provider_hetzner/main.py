"""The executable `bigfleet-provider-hetzner`."""

import bigfleet_providerkit
from bigfleet_provider_hetzner.spec import SPEC


def main() -> None:
    """Serve, or do what the command line says."""
    bigfleet_providerkit.main(SPEC)
