"""`python -m bigfleet_provider_aws`."""

from bigfleet_provider_aws.main import main

main()
