"""BigFleet capacity provider `template`: a complete example on a cloud that is imitated.

spec       what the provider declares: options, capacity, prices, limits
client     the SDK of the cloud
substrate  the methods that speak to the cloud: six of `Substrate`, and optional ones
guest      the way into a host
errors     how the cloud's errors become the kit's classes
main       the executable
"""

__version__ = "0.1.0"
