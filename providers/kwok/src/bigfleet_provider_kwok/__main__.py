"""`python -m bigfleet_provider_kwok`."""

from bigfleet_provider_kwok.main import main

main()
