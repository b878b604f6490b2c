"""Coordinator and shard meet on the wire: neither knows the other's code."""

import subprocess
import sys

IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
import bigfleet.coordinator as package
names = [m.name for m in pkgutil.walk_packages(package.__path__, "bigfleet.coordinator.")]
for name in names:
    importlib.import_module(name)
print(len(names))
print(*sorted(name for name in sys.modules if name.startswith("bigfleet.")))
"""


def test_coordinator_does_not_import_the_shard() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT_EVERYTHING], capture_output=True, text=True, check=True
    )
    count, loaded = ran.stdout.splitlines()
    modules = loaded.split()
    assert int(count) > 10
    assert "bigfleet.coordinator.server.service" in modules
    forbidden = ("bigfleet.shard", "bigfleet.decision", "bigfleet.inventory", "bigfleet.cli")
    assert [name for name in modules if name.startswith(forbidden)] == []
