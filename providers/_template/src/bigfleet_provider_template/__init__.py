"""BigFleet capacity provider `template`: a complete example on a cloud that exists in memory.

spec       what the provider declares: options, capacity, prices, limits
substrate  the ten methods that speak to the cloud
errors     how the cloud's errors become the kit's classes
main       the executable
"""

__version__ = "0.1.0"
