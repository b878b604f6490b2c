"""What the generated code demands of its runtime is what the distribution asks for."""

import re
import tomllib
from pathlib import Path

FOLDER = Path(__file__).parents[2]
GENERATED = FOLDER / "src" / "bigfleet_api" / "v1alpha1"


def bounds() -> dict[str, str]:
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text("utf-8"))["project"]
    return dict(wanted.split(">=") for wanted in project["dependencies"])


def told(pattern: str, files: str) -> set[str]:
    found = [re.findall(pattern, path.read_text("utf-8")) for path in GENERATED.glob(files)]
    return {version for versions in found for version in versions}


def test_the_bounds_are_the_versions_that_made_the_code() -> None:
    assert told(r"GRPC_GENERATED_VERSION = '([0-9.]+)'", "*_pb2_grpc.py") == {bounds()["grpcio"]}
    assert told(r"# Protobuf Python Version: ([0-9.]+)", "*_pb2.py") == {bounds()["protobuf"]}
