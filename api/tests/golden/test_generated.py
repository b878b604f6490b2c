"""What is committed is what the definitions give, and the check notices when it is not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "api" / "src" / "bigfleet_api"


def proto(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "proto.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PACKAGE, tmp_path / "bigfleet_api"))


def test_the_committed_package_is_what_the_definitions_give() -> None:
    done = proto("--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_check_names_every_file_that_is_changed_missing_or_left_over(copy: Path) -> None:
    changed = copy / "v1alpha1" / "shard_pb2.py"
    changed.write_text(changed.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    missing = copy / "v1alpha1" / "provider_pb2_grpc.pyi"
    missing.unlink()
    left_over = copy / "v1alpha1" / "former_pb2.py"
    left_over.touch()

    done = proto("--check", "--package", str(copy))

    assert done.returncode == 1
    named = [Path(line.split()[0]) for line in done.stdout.splitlines()]
    assert named == [left_over, missing, changed]


def test_generating_twice_repairs_once_and_then_changes_nothing(copy: Path) -> None:
    (copy / "v1alpha1" / "former_pb2.py").touch()
    (copy / "v1alpha1" / "capacity_pb2.py").write_text("", encoding="utf-8")
    assert proto("--package", str(copy)).stdout == "proto: 18 files, 2 changed\n"
    assert proto("--package", str(copy)).stdout == "proto: 18 files, 0 changed\n"
    assert not (copy / "v1alpha1" / "former_pb2.py").exists()
