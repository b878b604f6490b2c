"""Servers of Hetzner Cloud as a capacity provider of BigFleet.

options     what a person can set, and what a real start needs
spec        the declaration: mix, limits, rates of calls, time-outs
seed        the tables that ship: prices and shapes (seed.yaml), and what a node keeps for itself
sessions    the SDK's client with its own retries switched off
project     what an order refers to: types, images, networks, firewalls, the SSH key
substrate   launch, list, power on, label, delete
errors      the API's error codes as the kit's classes
"""

__version__ = "0.1.0"
