"""`python -m bigfleet_provider_digitalocean`."""

from bigfleet_provider_digitalocean.main import main

main()
