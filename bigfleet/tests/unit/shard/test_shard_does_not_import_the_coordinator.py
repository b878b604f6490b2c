"""Shard and coordinator meet on the wire: neither knows the other's code."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[4]
IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
import bigfleet.shard
names = [m.name for m in pkgutil.walk_packages(bigfleet.shard.__path__, "bigfleet.shard.")]
for name in names:
    importlib.import_module(name)
print(len(names))
print(*sorted(name for name in sys.modules if name.startswith("bigfleet.")))
"""


def test_shard_does_not_import_the_coordinator() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT_EVERYTHING], capture_output=True, text=True, check=True
    )
    count, loaded = ran.stdout.splitlines()
    modules = loaded.split()
    assert int(count) > 10
    assert "bigfleet.shard.peers.client" in modules
    forbidden = ("bigfleet.coordinator", "bigfleet.cli", "bigfleet_lab")
    assert [name for name in modules if name.startswith(forbidden)] == []


def test_the_import_linter_keeps_it_so() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    siblings = [
        {name.strip().strip("()") for name in layer.split("|")}
        for contract in contracts
        if contract["type"] == "layers" and contract.get("containers") == ["bigfleet"]
        for layer in contract["layers"]
    ]
    # Separated by "|" on one layer, packages must not import each other.
    assert any({"shard", "coordinator"} <= layer for layer in siblings)
