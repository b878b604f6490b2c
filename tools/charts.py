"""`make charts`: keeps the Helm charts in step with the code, then lints and renders them.

Three things in a chart are copies of something else and are written here: the operator's
CustomResourceDefinitions (from api/crd), every values.schema.json (its shape from values.yaml, the
names of settings from the components), and, while rendering, the library chart inside its users.
`--check` writes nothing and says what is old. Tests render through `Helm` as well.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chart_schemas import schema_text

ROOT = Path(__file__).parent.parent
CHARTS = ROOT / "deploy" / "helm"
LIBRARY = "bigfleet-provider-lib"
# Our helm is built from its module and would take itself for one of an old Kubernetes.
KUBE_VERSION = "1.35.0"
NAMESPACE = "bigfleet-system"


class ChartError(Exception):
    """helm refused a chart; the text is its own."""


def chart_names() -> list[str]:
    """All charts that can be installed."""
    found = sorted(path.parent.name for path in CHARTS.glob("*/Chart.yaml"))
    return [name for name in found if name != LIBRARY]


def copies() -> Iterator[tuple[Path, str]]:
    """Every generated file of the charts, with the text it should have."""
    for source in sorted((ROOT / "api" / "crd").glob("*.yaml")):
        target = CHARTS / "bigfleet-operator" / "files" / "crds" / source.name
        yield target, source.read_text("utf-8")
    for name in chart_names():
        yield CHARTS / name / "values.schema.json", schema_text(CHARTS / name)


def stale() -> list[Path]:
    """Generated files that are old, and copies of what is no more."""
    wanted = dict(copies())
    old = [path for path, text in wanted.items() if not path.is_file() or path.read_text() != text]
    crds = (CHARTS / "bigfleet-operator" / "files" / "crds").glob("*")
    return old + [path for path in crds if path not in wanted]


def write() -> list[Path]:
    """Bring them up to date; those that were old."""
    old = stale()
    wanted = dict(copies())
    for path in old:
        if path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], "utf-8")
        else:
            path.unlink()
    return old


@dataclass(frozen=True)
class Helm:
    """The helm of the tool cache."""

    binary: Path

    @staticmethod
    def built() -> "Helm":
        """The one that `make kube-tools` built; a NotBuiltError says that it did not."""
        from kube.binaries import path_of

        return Helm(path_of("helm"))

    def lint(self, name: str, *arguments: str) -> str:
        """Lint a chart strictly."""
        return self._run(["lint"], name, "--strict", *arguments)

    def template(self, name: str, *arguments: str, release: str = "fleet") -> str:
        """Render a chart."""
        return self._run(["template", release], name, "--namespace", NAMESPACE, *arguments)

    def _run(self, command: Sequence[str], name: str, *arguments: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            chart = str(prepared(name, Path(folder)))
            words = [str(self.binary), *command, chart, "--kube-version", KUBE_VERSION, *arguments]
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
        if done.returncode:
            raise ChartError(f"{name}: {(done.stderr or done.stdout).strip()}")
        return done.stdout


def prepared(name: str, folder: Path) -> Path:
    """A copy of a chart with the library in it, as `helm dependency build` would leave it."""
    target = folder / name
    shutil.copytree(CHARTS / name, target)
    if LIBRARY in (target / "Chart.yaml").read_text("utf-8"):
        shutil.copytree(CHARTS / LIBRARY, target / "charts" / LIBRARY)
    return target


def examples(name: str) -> list[Path]:
    """The values files with which a chart is tried."""
    return sorted((CHARTS / name / "ci").glob("*.yaml"))


def main(argv: Sequence[str]) -> int:
    """Write or check, then lint and render."""
    parser = argparse.ArgumentParser(prog="make charts", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, complain instead")
    options = parser.parse_args(argv)
    old = stale() if options.check else write()
    for path in old:
        verb = "is old; run make charts" if options.check else "written"
        print(f"{path.relative_to(ROOT)}: {verb}")
    if options.check:
        return 1 if old else 0
    helm = Helm.built()
    for name in chart_names():
        for values in examples(name):
            helm.lint(name, "--values", str(values))
            objects = helm.template(name, "--values", str(values)).count("\nkind:")
            print(f"{name}: {values.stem}: {objects} objects")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
