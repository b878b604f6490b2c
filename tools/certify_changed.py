"""`make conformance-changed [SINCE=ref]`: certifies the providers that a change touches.

A provider whose folder changed is run whole, in memory and over HTTP. Where the kit, the suite or
the fake clouds' engine changed, so is one provider for each channel, and every other one runs the
baseline in memory. A change of documents certifies nothing.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SHARED = ("api/", "base/src/", "providerkit/src/", "conformance/src/", "fakecloud/src/")
ONE_PER_CHANNEL = ("_template", "aws", "digitalocean", "hetzner")
"""Guest, command, agent and SSH."""
ALWAYS_IN_TREE = "fake"


@dataclass(frozen=True, slots=True, order=True)
class CertificationRun:
    """One call of `make conformance-<provider>`."""

    provider: str
    substrate: str = ""
    quick: bool = False

    def command(self) -> list[str]:
        """How it is called."""
        words = ["bigfleet-conformance", "run", "--provider", self.provider]
        words += ["--quick"] if self.quick else ["--profile", "all"]
        return [*words, "--substrate", self.substrate] if self.substrate else words


def planned(changed: Iterable[str], providers: Iterable[str]) -> list[CertificationRun]:
    """What to run for these changed paths; `providers` are the folders with a conformance.yaml."""
    paths = [path for path in changed if not path.endswith(".md")]
    shared = any(path.startswith(SHARED) for path in paths)
    runs = [CertificationRun(ALWAYS_IN_TREE)] if shared else []
    for name in sorted(providers):
        touched = any(path.startswith(f"providers/{name}/") for path in paths)
        if touched or (shared and name in ONE_PER_CHANNEL):
            runs += [CertificationRun(name), CertificationRun(name, "http")]
        elif shared:
            runs.append(CertificationRun(name, quick=True))
    return runs


def providers_with_http(root: Path = ROOT) -> dict[str, bool]:
    """Every provider that can be certified, and whether over HTTP as well."""
    found = {}
    for path in (root / "providers").glob("*/conformance.yaml"):
        found[path.parent.name] = "\nhttp:" in path.read_text("utf-8")
    return found


def main(arguments: Sequence[str]) -> int:
    """Run them one after the other; all of them, also after a failure."""
    parser = argparse.ArgumentParser(description="Certify the providers that a change touches.")
    parser.add_argument("--since", default="HEAD~1", help="the commit before the change")
    parser.add_argument("--plan", action="store_true", help="only print what would run")
    options = parser.parse_args(arguments)
    command = ["git", "diff", "--name-only", options.since]
    listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    known = providers_with_http()
    failed = []
    for run in planned(listing.splitlines(), known):
        if run.substrate and not known.get(run.provider):
            continue
        sys.stdout.write(f"{' '.join(run.command())}\n")
        sys.stdout.flush()
        program = Path(sys.executable).parent / run.command()[0]
        if not options.plan and subprocess.run([program, *run.command()[1:]], cwd=ROOT).returncode:
            failed.append(run.provider)
    if failed:
        sys.stderr.write(f"not certified: {', '.join(failed)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
