"""The executable `bigfleet-provider-kwok`."""

import bigfleet_providerkit
from bigfleet_provider_kwok.spec import SPEC


def main() -> None:
    """Serve, or do what the command line says."""
    bigfleet_providerkit.main(SPEC)
