"""What every process of BigFleet needs, whichever part of the fleet it is.

addresses   which addresses can be listened at, which can be dialled, where plaintext is allowed

Imports nothing else of ours. The control plane, the provider kit and the dashboard build on it.
"""
