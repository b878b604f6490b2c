"""`python -m bigfleet_provider_template`."""

from bigfleet_provider_template.main import main

main()
