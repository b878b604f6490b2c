"""`make lock`: writes the hashed locks, each for every supported Python.

    requirements/dev.lock                   what a developer's environment holds, from dev.in
    requirements/providers.lock             the SDKs of all clouds, from providers.in
    providers/<name>/requirements.lock      what the image of one provider is built from

Versions are chosen once, in the first: dev.lock constrains providers.lock, and both constrain the
locks of the images, which hold what each provider's pyproject.toml and the distributions below it
need. `--keep` leaves the versions of both as they are, so that a new dependency of one provider
moves nothing else; with `--provider NAME` only that provider's lock is written.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
DEV = ROOT / "requirements" / "dev.in"
SDKS = ROOT / "requirements" / "providers.in"
BELOW = ("api", "base", "providerkit")
"""Distributions that every provider is built on."""
EXTRAS = ("tracing",)
BUILDS = ("hatchling",)
OLDEST_PYTHON = "3.11"
IMAGE_LOCK = "requirements.lock"


class LockError(Exception):
    """A lock cannot be written; the text says which and why."""


def providers(root: Path = ROOT) -> list[Path]:
    """The folders of all providers."""
    return sorted(path.parent for path in (root / "providers").glob("*/pyproject.toml"))


def asked_for(pyproject: Path) -> Iterator[str]:
    """What a distribution needs that is not ours."""
    project = tomllib.loads(pyproject.read_text("utf-8"))["project"]
    optional = project.get("optional-dependencies", {})
    wanted = [*project.get("dependencies", ())]
    for extra in EXTRAS:
        wanted += optional.get(extra, ())
    return (line for line in wanted if not line.startswith("bigfleet-"))


def image_requirements(folder: Path) -> list[str]:
    """What the image of a provider needs beside what we wrote."""
    lines = {line for name in BELOW for line in asked_for(ROOT / name / "pyproject.toml")}
    return sorted({*lines, *asked_for(folder / "pyproject.toml"), *BUILDS})


def pins(lock: Path) -> dict[str, str]:
    """Names and versions of a lock."""
    lines = (line.split()[0] for line in lock.read_text("utf-8").splitlines() if "==" in line)
    return dict(line.split("==", 1) for line in lines)


def compile_lock(
    uv: Path, source: Path, target: Path, constraints: Sequence[Path], *, upgrade: bool
) -> None:
    """Resolve for every supported Python and write versions and hashes, without any source."""
    command: list[str | Path] = [
        uv, "pip", "compile", source, "--output-file", target, "--quiet", "--universal",
        "--python-version", OLDEST_PYTHON, "--generate-hashes", "--no-emit-index-url",
        "--no-annotate", "--no-header",
    ]  # fmt: skip
    for constraint in constraints:
        command += ["--constraint", constraint]
    if upgrade:
        command.append("--upgrade")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LockError(f"{target.name} cannot be made of {source.name}: {done.stderr.strip()}")
    lines = target.read_text("utf-8").splitlines(keepends=True)
    target.write_text("".join(line for line in lines if not line.startswith("--")), "utf-8")
    shown = target.relative_to(ROOT) if target.is_relative_to(ROOT) else target
    print(f"Wrote {shown}: {len(pins(target))} packages")


def lock_provider(uv: Path, folder: Path) -> None:
    """Write what one image is built from."""
    with tempfile.TemporaryDirectory() as made:
        source = Path(made) / "requirements.in"
        source.write_text("\n".join(image_requirements(folder)) + "\n", "utf-8")
        chosen = [DEV.with_suffix(".lock"), SDKS.with_suffix(".lock")]
        compile_lock(uv, source, folder / IMAGE_LOCK, chosen, upgrade=True)


def find_uv() -> Path:
    """The resolver: that of the environment, or one on the path."""
    for found in (Path(sys.executable).with_name("uv"), shutil.which("uv")):
        if found and Path(found).exists():
            return Path(found)
    raise LockError("uv is not installed; run make setup, or install uv, and try again")


def main(argv: Sequence[str]) -> int:
    """Write the locks that were asked for."""
    parser = argparse.ArgumentParser(prog="make lock", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="choose no newer versions")
    parser.add_argument("--provider", default="", help="only the lock of this provider's image")
    options = parser.parse_args(argv)
    try:
        uv = find_uv()
        folders = providers()
        if options.provider:
            folders = [folder for folder in folders if folder.name == options.provider]
            if not folders:
                raise LockError(f"there is no provider {options.provider!r} in providers/")
        else:
            upgrade = not options.keep
            compile_lock(uv, DEV, DEV.with_suffix(".lock"), (), upgrade=upgrade)
            dev = [DEV.with_suffix(".lock")]
            compile_lock(uv, SDKS, SDKS.with_suffix(".lock"), dev, upgrade=upgrade)
        for folder in folders:
            lock_provider(uv, folder)
    except LockError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
