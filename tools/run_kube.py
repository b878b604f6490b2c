"""`make run KUBE=1`: a fleet around a real Kubernetes on this machine, until Ctrl-C.

One control plane with simulated nodes, the kwok provider, a shard, an operator and a pod
controller, each as the process that is shipped, and a Deployment that waits for machines. It is the
fleet of the e2e tests; this only tells what it does and how to look at it.
"""

import argparse
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from real_fleet import NotInTimeError, a_fleet, deployment

from kube.binaries import KubeToolsError
from kube.plane import ControlPlaneError, control_plane
from kube.processes import ProcessDiedError

CRDS = Path(__file__).parent.parent / "api" / "crd"


def main(argv: Sequence[str]) -> int:
    """Start everything, show that pods run, and wait."""
    parser = argparse.ArgumentParser(prog="make run KUBE=1", description=__doc__)
    parser.add_argument("--pods", type=int, default=6, help="pods of the first Deployment")
    parser.add_argument("--machines", type=int, default=20, help="machines that can be bought")
    parser.add_argument("--once", action="store_true", help="end when the pods run")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tempfile.TemporaryDirectory(prefix="bigfleet-run-") as folder:
            ended = threading.Event()
            if options.once:
                ended.set()
            run(Path(folder), options.pods, options.machines, ended)
    except KeyboardInterrupt:
        print("\nEverything is stopped.")
    except (KubeToolsError, ControlPlaneError, ProcessDiedError, NotInTimeError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def run(folder: Path, pods: int, machines: int, ended: threading.Event) -> None:
    """The fleet, from the first process to the last."""
    print("Starting a control plane (about 5 s) and BigFleet around it", flush=True)
    with control_plane(folder, "demo") as plane:
        plane.install(CRDS)
        with a_fleet(folder / "fleet", [plane], slots=machines) as fleet:
            cluster = fleet.clusters[0]
            print(f"A Deployment asks for {pods} pods; there is no node yet", flush=True)
            cluster.apply(deployment("web", pods))
            seconds = cluster.until_running(pods, "web")
            print(f"All {pods} run after {seconds:.1f} s, on nodes that BigFleet brought.\n")
            print(f"  export KUBECONFIG={plane.kubeconfig}")
            print("  kubectl get fleet -A              what is wanted, and what is on its way")
            print("  kubectl scale deployment web --replicas=30")
            print("  kubectl get nodes -w              nodes come, and go again with --replicas=1")
            print(f"  logs: {fleet.folder} and {plane.logs}")
            print("Ctrl-C ends everything and leaves nothing behind.", flush=True)
            ended.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
