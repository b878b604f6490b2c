"""The executable `bigfleet-provider-template`."""

import bigfleet_providerkit
from bigfleet_provider_template.spec import SPEC


def main() -> None:
    """Serve, or do what the command line says."""
    bigfleet_providerkit.main(SPEC)
