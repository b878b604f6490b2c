"""The mutants: reference providers that are wrong in one place each, by number.

One module per subject. Importing the package registers all of them; what each must fail is the
suite's own table (`bigfleet_conformance.mutants`).
"""

from mutantkit import bindings, durable, failure, fence, lifecycle, operations, reads, scale, secure
from mutantkit.registry import PATCHES, Patch

__all__ = [
    "PATCHES",
    "Patch",
    "bindings",
    "durable",
    "failure",
    "fence",
    "lifecycle",
    "operations",
    "reads",
    "scale",
    "secure",
]
