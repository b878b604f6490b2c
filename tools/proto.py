"""`make proto`: generates Python from the protocol definitions, byte for byte.

What is generated is committed, so that using the contract needs no compiler; `--check` says
whether it still is what the definitions give. The compiler and the plug-in for type stubs are those
of the environment that runs this file.

Definitions are registered under `bigfleet/v1alpha1/`, as every other language sees them. As Python
they live in `bigfleet_api.v1alpha1`, because `bigfleet` is the control plane; so the generated
imports are pointed there. The definitions of etcd's API lie beside what is generated from them and
need no such thing.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "api" / "src" / "bigfleet_api"
VERSION = "v1alpha1"

GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")
STUB_PLUGINS = ("mypy", "mypy_grpc")
SERVICE = re.compile(r"^service ", re.MULTILINE)
# Imports, the module that message classes say they belong to, and the file named in a complaint.
# Names of definitions (bigfleet/v1alpha1/x.proto) and of services stay as they are.
PYTHON_NAMES = (
    (re.compile(rf"\bfrom bigfleet\.{VERSION} import "), f"from bigfleet_api.{VERSION} import "),
    (re.compile(rf"'bigfleet\.{VERSION}\.(\w+_pb2)'"), rf"'bigfleet_api.{VERSION}.\1'"),
    (re.compile(rf"\bbigfleet/{VERSION}/(\w+_pb2_grpc\.py)"), rf"bigfleet_api/{VERSION}/\1"),
)


@dataclass(frozen=True)
class Part:
    """Definitions that are generated together: in which folder below their root, and to where."""

    definitions: Path
    below: str
    folder: Path


ETCD = Part(
    ROOT / "bigfleet" / "src",
    "bigfleet/coordinator/store/etcdapi",
    ROOT / "bigfleet" / "src" / "bigfleet" / "coordinator" / "store" / "etcdapi",
)


def contract(package: Path) -> Part:
    """The contract of the fleet, generated into a package."""
    return Part(ROOT / "api" / "proto", f"bigfleet/{VERSION}", package / VERSION)


class GenerationError(Exception):
    """The compiler refused the definitions, or is not there."""


def generate(definitions: Path, below: str) -> dict[str, str]:
    """What the definitions in a folder below their root give: file name to text."""
    sources = sorted((definitions / below).glob("*.proto"))
    if not sources:
        raise GenerationError(f"{definitions}/{below} holds no .proto file")
    services = [path for path in sources if SERVICE.search(path.read_text(encoding="utf-8"))]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        compile_definitions(definitions, sources, ["python", "mypy"], out)
        if services:
            compile_definitions(definitions, services, ["grpc_python", "mypy_grpc"], out)
        return {
            path.name: with_our_names(path.read_text(encoding="utf-8"))
            for path in sorted((out / below).iterdir())
        }


def compile_definitions(
    definitions: Path, sources: Sequence[Path], plugins: Sequence[str], out: Path
) -> None:
    """Run the compiler once, with the plug-ins of the environment this file runs in."""
    scripts = Path(sys.executable).parent
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"--proto_path={definitions}",
        *(f"--plugin=protoc-gen-{name}={scripts / f'protoc-gen-{name}'}" for name in STUB_PLUGINS),
        *(f"--{plugin}_out={out}" for plugin in plugins),
        *(str(path.relative_to(definitions)) for path in sources),
    ]
    done = subprocess.run(command, cwd=definitions, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise GenerationError(f"{done.stderr.strip()}\n`make setup` installs the compiler")


def with_our_names(text: str) -> str:
    """The generated text with its Python names moved from bigfleet to bigfleet_api."""
    for pattern, replacement in PYTHON_NAMES:
        text = pattern.sub(replacement, text)
    return text.rstrip("\n") + "\n"


def present(folder: Path) -> dict[str, str]:
    """The generated files that are in a folder now: file name to text."""
    return {
        path.name: path.read_bytes().decode("utf-8")
        for path in sorted(folder.glob("*"))
        if GENERATED.search(path.name)
    }


def differences(wanted: dict[str, str], found: dict[str, str]) -> list[str]:
    """The names of files that are missing, left over or not what they should be."""
    return sorted(
        name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)
    )


def write(wanted: dict[str, str], names: Sequence[str], folder: Path) -> None:
    """Bring the named files of a folder in line."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in wanted:
            (folder / name).write_bytes(wanted[name].encode("utf-8"))
        else:
            (folder / name).unlink()


def main(argv: Sequence[str]) -> int:
    """Generate, or with --check compare; 1 if the comparison finds a difference."""
    parser = argparse.ArgumentParser(prog="make proto", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if stale")
    parser.add_argument(
        "--package", type=Path, help="generate the contract alone, into this package"
    )
    options = parser.parse_args(argv)
    parts = [contract(options.package)] if options.package else [contract(PACKAGE), ETCD]
    files = changed = 0
    for part in parts:
        try:
            wanted = generate(part.definitions, part.below)
        except GenerationError as error:
            print(f"proto: {error}", file=sys.stderr)
            return 1
        stale = differences(wanted, present(part.folder))
        files, changed = files + len(wanted), changed + len(stale)
        if options.check:
            for name in stale:
                print(f"{part.folder / name} is not what the definitions give; run make proto")
        else:
            write(wanted, stale, part.folder)
    if options.check:
        return 1 if changed else 0
    print(f"proto: {files} files, {changed} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
