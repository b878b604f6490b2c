"""Simulated clusters know values, the wire and the contract: nothing of a shard."""

import subprocess
import sys

IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
import bigfleet.simcluster
for module in pkgutil.walk_packages(bigfleet.simcluster.__path__, "bigfleet.simcluster."):
    importlib.import_module(module.name)
print(*sorted({".".join(name.split(".")[:2]) for name in sys.modules if name[:9] == "bigfleet."}))
"""


def test_simulated_clusters_know_values_and_the_wire_alone() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT_EVERYTHING], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["bigfleet.model", "bigfleet.simcluster", "bigfleet.wire"]
