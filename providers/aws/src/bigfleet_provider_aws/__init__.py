"""BigFleet capacity provider `aws`: EC2 instances of one region as machines.

spec        what the provider declares: capacity types, limits, rates, seed tables
options     its options beyond the kit's, and what is missing among them
sessions    boto3 sessions and clients: credentials, roles, endpoints, time limits
api         calls of AWS by their names, one at a time or all pages of one
errors      how the errors of AWS become the kit's classes
substrate   launch, list, start, tag and terminate instances
orders      an order as the parameters of RunInstances, its image alias resolved
commands    the way into a host: Systems Manager Run Command
notices     spot notices from a queue
catalogue   shapes and prices, from the API of the region
offer_file  prices from the public bulk file, and the Spot Instance Advisor
seed        the tables beside the code (seed.yaml): dated prices, shapes and forecasts
main        the executable
"""

__version__ = "0.1.0"
