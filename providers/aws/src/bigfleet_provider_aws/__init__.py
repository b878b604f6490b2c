"""BigFleet capacity provider `aws`: EC2 instances of one region as machines.

spec        what the provider declares: capacity types, limits, rates, seed tables
options     its options beyond the kit's, and what is missing among them
sessions    boto3 sessions and clients: credentials, roles, endpoints, time limits
errors      how the errors of AWS become the kit's classes
substrate   launch, list, start, tag and terminate instances
orders      an order as the parameters of RunInstances
images      image aliases, resolved at launch
commands    the way into a host: Systems Manager Run Command
notices     spot notices from a queue
catalogue   shapes and prices, from the API of the region
offer_file  prices from the public bulk file, and the Spot Instance Advisor
main        the executable

The tables beside the code (seed.yaml) have dated prices, shapes and interruption forecasts.
"""

__version__ = "0.1.0"
