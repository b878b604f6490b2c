"""Simulated clusters know values, the wire and the contract: nothing of a shard."""

import subprocess
import sys

IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
import bigfleet_lab.simcluster
for module in pkgutil.walk_packages(bigfleet_lab.simcluster.__path__, "bigfleet_lab.simcluster."):
    importlib.import_module(module.name)
ours = [name for name in sys.modules if name.startswith(("bigfleet.", "bigfleet_lab."))]
print(*sorted({".".join(name.split(".")[:2]) for name in ours}))
"""


def test_simulated_clusters_know_values_and_the_wire_alone() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT_EVERYTHING], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["bigfleet.model", "bigfleet.wire", "bigfleet_lab.simcluster"]
