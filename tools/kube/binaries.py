"""Builds the Kubernetes binaries that tests run, once, into a cache outside of any checkout.

What is built is pinned by the go.mod and go.sum of the folders beside this file. The cache's folder
is named after a digest of those files, so a new pin is a new folder and an old checkout still finds
its own. Each binary is built beside its place and renamed into it, so that an interrupted build
leaves nothing half-done, and a lock lets one of two builders wait for the other. Starting what was
built is left to `plane`.
"""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
MODULES: Final = ("kubernetes", "kwok", "helm")
NODE: Final = "node"
"""What a host runs is pinned apart and has a folder of its own: its pins change nothing else."""
OLDEST_GO: Final = (1, 25)
SIGN_OF_LIFE: Final = 10.0
# Part of the digest: raise it when the same sources are to be built in another way.
RECIPE: Final = "1"


class KubeToolsError(Exception):
    """The binaries are not there or cannot be built."""


class NoGoError(KubeToolsError):
    """There is no Go, or one that is too old."""


class BuildFailedError(KubeToolsError):
    """Go refused to build a binary."""


class NotBuiltError(KubeToolsError):
    """A binary was asked for that was never built."""


@dataclass(frozen=True, slots=True)
class Binary:
    """One program: the module that pins it and the package it is built from."""

    name: str
    module: str
    package: str


BINARIES: Final = (
    Binary("etcd", "kubernetes", "go.etcd.io/etcd/server/v3"),
    Binary("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    Binary("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    Binary(
        "kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"
    ),
    Binary("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    Binary("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    Binary("helm", "helm", "helm.sh/helm/v3/cmd/helm"),
    Binary("kubeadm", NODE, "k8s.io/kubernetes/cmd/kubeadm"),
    Binary("kubelet", NODE, "k8s.io/kubernetes/cmd/kubelet"),
)


def folder(module: str = MODULES[0]) -> Path:
    """Where the binaries of this checkout's pins are, built or not; BIGFLEET_TOOLS overrides it."""
    chosen = os.environ.get("BIGFLEET_TOOLS")
    if chosen:
        return Path(chosen)
    caches = os.environ.get("XDG_CACHE_HOME")
    parent = Path(caches) if caches else Path.home() / ".cache"
    return parent / "bigfleet" / "kube" / digest((module,) if module == NODE else MODULES)


def digest(modules: Sequence[str]) -> str:
    """A name for exactly these pins on this kind of machine."""
    seen = hashlib.sha256(f"{RECIPE} {platform.system()} {platform.machine()}".encode())
    for module in modules:
        for name in ("go.mod", "go.sum"):
            seen.update((HERE / module / name).read_bytes())
    return seen.hexdigest()[:16]


def missing() -> list[str]:
    """Names of binaries that are not built yet."""
    return [binary.name for binary in BINARIES if not _place_of(binary).is_file()]


def _place_of(binary: Binary) -> Path:
    return folder(binary.module) / binary.name


def path_of(name: str) -> Path:
    """The path of one built binary."""
    found = next(_place_of(binary) for binary in BINARIES if binary.name == name)
    if not found.is_file():
        raise NotBuiltError(f"{name} is not in {found.parent}; build it once with: make kube-tools")
    return found


def pinned(module: str, package: str) -> str:
    """The version that a module's go.mod requires of a package's module, such as v1.35.4."""
    text = (HERE / module / "go.mod").read_text(encoding="utf-8")
    owners = re.findall(r"^(?:require)?\s+(\S+) (v\S+)(?: // indirect)?$", text, flags=re.MULTILINE)
    for owner, version in sorted(owners, key=lambda pair: -len(pair[0])):
        if package == owner or package.startswith(f"{owner}/"):
            return str(version)
    raise KubeToolsError(f"{module}/go.mod requires no module that holds {package}")


def linker_flags(binary: Binary) -> str:
    """Flags that leave symbols out and tell programs their version, which Go alone would not."""
    version = pinned(binary.module, binary.package)
    major, minor = version.removeprefix("v").split(".")[:2]
    kubernetes = {
        "k8s.io/component-base/version.gitVersion": version,
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/component-base/version.gitTreeState": "clean",
    }
    output = {
        "kubernetes": kubernetes,
        NODE: kubernetes,
        "kwok": {"sigs.k8s.io/kwok/pkg/consts.Version": version},
        "helm": {"helm.sh/helm/v3/internal/version.version": version},
    }[binary.module]
    return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in output.items())])


def find_go() -> Path:
    """A Go that is new enough, or an error that says what to do."""
    found = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    wanted = ".".join(map(str, OLDEST_GO))
    if found is None:
        raise NoGoError(
            f"the Kubernetes binaries are built with Go, and none is in PATH: install Go {wanted} "
            "or newer, or point BIGFLEET_TOOLS at a folder that already holds them"
        )
    output = subprocess.run(
        [found, "env", "GOVERSION"], capture_output=True, text=True, check=False
    )
    version = re.match(r"go(\d+)\.(\d+)", output.stdout)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_GO:
        raise NoGoError(
            f"{found} is {output.stdout.strip() or 'no Go'}; Go {wanted} or newer is needed"
        )
    return Path(found)


def build(names: Sequence[str] = ()) -> None:
    """Build what is missing (of these, or of all), one line for each."""
    wanted = [binary for binary in BINARIES if not names or binary.name in names]
    if len(wanted) < len(names):
        known = ", ".join(binary.name for binary in BINARIES)
        raise KubeToolsError(f"no such binary among {', '.join(names)}; there are {known}")
    places: dict[Path, list[Binary]] = {}
    for binary in wanted:
        places.setdefault(folder(binary.module), []).append(binary)
    for place, binaries in places.items():
        place.mkdir(parents=True, exist_ok=True)
        with locked(place):
            fill(place, binaries)


def fill(place: Path, binaries: Sequence[Binary]) -> None:
    """Build what one folder lacks of these binaries; its lock is held."""
    waiting = [binary for binary in binaries if not (place / binary.name).is_file()]
    if not waiting:
        print(f"kube-tools: {len(binaries)} binaries are in {place}")
        return
    go = find_go()
    print(f"kube-tools: building {len(waiting)} binaries into {place}")
    print("kube-tools: the first time takes 6 to 10 minutes on two cores", flush=True)
    for number, binary in enumerate(waiting, start=1):
        build_one(go, binary, place, f"{number}/{len(waiting)}")


def build_one(go: Path, binary: Binary, place: Path, count: str) -> None:
    """Build one binary beside its place, then rename it into it."""
    version = pinned(binary.module, binary.package)
    print(f"  {count} {binary.name} {version} ...", end="", flush=True)
    started = time.monotonic()
    half_done = place / f".{binary.name}.{os.getpid()}"
    options = ["-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", linker_flags(binary)]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        building = subprocess.Popen(
            [str(go), "build", *options, "-o", str(half_done), binary.package],
            cwd=HERE / binary.module,
            env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        while not _ends(building):
            print(".", end="", flush=True)
        output.seek(0)
        words = output.read()
    if building.returncode != 0:
        half_done.unlink(missing_ok=True)
        print(" failed")
        raise BuildFailedError(f"go build {binary.package} failed:\n{words.strip()[-4000:]}")
    half_done.replace(place / binary.name)
    size = (place / binary.name).stat().st_size / 2**20
    print(f" {time.monotonic() - started:.0f} s, {size:.0f} MiB", flush=True)


def _ends(building: subprocess.Popen[bytes]) -> bool:
    """Whether it ends within the time that people look at a line without a sign of life."""
    try:
        building.wait(SIGN_OF_LIFE)
    except subprocess.TimeoutExpired:
        return False
    return True


@contextmanager
def locked(place: Path) -> Iterator[None]:
    """Only one builder at a time; the lock goes with the process that holds it."""
    with (place / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"kube-tools: another build fills {place}; waiting for it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in place.glob(".*.[0-9]*"):
            left.unlink()
        yield


def why_not() -> str:
    """Why there is no real Kubernetes here and none can be built; empty when there is one."""
    if missing():
        try:
            find_go()
        except NoGoError as error:
            return str(error)
    return ""


def main(argv: Sequence[str]) -> int:
    """`make kube-tools`: build everything, or what is named; --why-not only asks whether it can."""
    if list(argv) == ["--why-not"]:
        reason = why_not()
        print(reason)
        return 1 if reason else 0
    try:
        build(argv)
    except KubeToolsError as error:
        print(f"kube-tools: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
