"""The behaviours, one module per area of the registry; importing the package registers all of them.

A module holds the tests of its area and small helpers beside them. The docstring of a test is the
row's text: title, why, what is done and what passes.
"""

from bigfleet_conformance.behaviours import (
    aftermath,
    concurrency,
    contract,
    crashes,
    durability,
    failure,
    fencing,
    inflight,
    large,
    lifecycle,
    listing,
    losses,
    metadata,
    properties,
    scale,
    secure,
    shape,
    strictness,
    transitions,
    visibility,
)

__all__ = [
    "aftermath",
    "concurrency",
    "contract",
    "crashes",
    "durability",
    "failure",
    "fencing",
    "inflight",
    "large",
    "lifecycle",
    "listing",
    "losses",
    "metadata",
    "properties",
    "scale",
    "secure",
    "shape",
    "strictness",
    "transitions",
    "visibility",
]
