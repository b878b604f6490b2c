"""The executable `bigfleet-provider-aws`."""

import bigfleet_providerkit
from bigfleet_provider_aws.spec import SPEC


def main() -> None:
    """Serve, or do what the command line says."""
    bigfleet_providerkit.main(SPEC)
