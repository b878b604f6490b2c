"""BigFleet capacity provider `digitalocean`: Droplets as machines.

spec       what the provider declares: capacity, prices, limits and the rates of its calls
options    its options beyond the kit's, and what is missing among them
client     the SDK (pydo): the calls that are made, and answers that it takes for success
errors     how the errors of the API become the kit's classes
substrate  launch, list, start, tag and destroy Droplets; the agent in a host does the rest
sizes      shapes and prices, from the list of sizes
seed       the tables beside the code (seed.yaml): dated prices and shapes
main       the executable
"""

__version__ = "0.1.0"
