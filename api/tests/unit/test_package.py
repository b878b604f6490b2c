"""The face of the package: its version, and that importing it costs nothing."""

import subprocess
import sys
from importlib.metadata import version

import bigfleet_api


def test_the_package_says_the_version_of_its_distribution() -> None:
    assert bigfleet_api.__version__ == version("bigfleet-api")


def test_importing_the_package_loads_neither_protobuf_nor_grpc() -> None:
    code = "import sys, bigfleet_api; print(sorted({'google', 'grpc', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_messages_can_be_had_without_loading_grpc() -> None:
    code = "import sys, bigfleet_api.v1alpha1.coordinator_pb2; print('grpc' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
