"""`python -m bigfleet_provider_hetzner`."""

from bigfleet_provider_hetzner.main import main

main()
