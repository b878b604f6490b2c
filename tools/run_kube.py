"""`make run KUBE=1`: a fleet around real Kubernetes clusters on this machine, until Ctrl-C.

Three control planes with simulated nodes, the kwok provider, a shard, operators and pod
controllers, each as the process that is shipped, Deployments that wait for machines, and the
dashboard. It is the fleet of the e2e tests; this only tells what it does and how to look at it.
"""

import argparse
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from real_fleet import BIN, Fleet, NotInTimeError, a_fleet, deployment, eventually, is_ready

from bigfleet.cli.errors import CommandError
from bigfleet_lab.demo.ports import refuse_taken
from kube import binaries, ports
from kube.binaries import KubeToolsError
from kube.plane import ControlPlane, ControlPlaneError, control_plane
from kube.processes import Process, ProcessDiedError

CRDS = Path(__file__).parent.parent / "api" / "crd"
NAMES = ("atlas", "borealis", "cirrus")


def main(argv: Sequence[str]) -> int:
    """Start everything, show that pods run, and wait."""
    parser = argparse.ArgumentParser(prog="make run KUBE=1", description=__doc__)
    parser.add_argument("--clusters", type=int, default=3, choices=(1, 2, 3), help="control planes")
    parser.add_argument("--pods", type=int, default=6, help="pods of the first Deployments")
    parser.add_argument("--machines", type=int, default=40, help="machines that can be bought")
    parser.add_argument("--dashboard-addr", default="127.0.0.1:8700", help="where the page is")
    parser.add_argument("--once", action="store_true", help="end when the pods run")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        refuse_taken({"--dashboard-addr": options.dashboard_addr})
        with tempfile.TemporaryDirectory(prefix="bigfleet-run-") as folder:
            ended = threading.Event()
            if options.once:
                ended.set()
            run(Path(folder), options, ended)
    except KeyboardInterrupt:
        print("\nEverything is stopped.")
    except (
        CommandError, KubeToolsError, ControlPlaneError, ProcessDiedError, NotInTimeError,
    ) as error:  # fmt: skip
        print(error, file=sys.stderr)
        return 1
    return 0


def run(folder: Path, options: argparse.Namespace, ended: threading.Event) -> None:
    """The fleet, from the first process to the last."""
    pods, page = options.pods, options.dashboard_addr
    names = NAMES[: options.clusters]
    print(f"Starting {len(names)} control planes (about 5 s each) and BigFleet around them")
    with ExitStack() as running:
        planes = [running.enter_context(control_plane(folder, name)) for name in names]
        for plane in planes:
            plane.install(CRDS)
        fleet = running.enter_context(
            a_fleet(folder / "fleet", planes, slots=options.machines, zones=("kwok-zone-a",))
        )
        running.enter_context(a_dashboard(fleet, planes, page))
        print(f"Dashboard: http://{page}/", flush=True)
        print(f"In each cluster a Deployment asks for {pods} pods; there is no node yet")
        for cluster in fleet.clusters:
            cluster.apply(deployment("web", pods))
        seconds = eventually(
            lambda: all(cluster.running("web") == pods for cluster in fleet.clusters),
            f"{pods} pods run in each cluster",
        )
        print(f"All of them run {seconds:.1f} s later, on nodes that BigFleet brought.\n")
        tell(fleet, planes)
        ended.wait()


def tell(fleet: Fleet, planes: Sequence[ControlPlane]) -> None:
    """What can be tried now."""
    print("Real: API servers, schedulers, pods. Simulated: the machines (kwok nodes).")
    for plane in planes[1:]:
        print(f"  {plane.name}: export KUBECONFIG={plane.kubeconfig}")
    print(f"  export KUBECONFIG={planes[0].kubeconfig}")
    print(f"  export BIGFLEETCTL_SHARD_ADDR={fleet.sessions} OPERATOR={fleet.clusters[0].metrics}")
    print("  kubectl get fleet -A              what is wanted, and what is on its way")
    print("  kubectl scale deployment web --replicas=30")
    print("  kubectl get nodes -w              nodes come, and go again with --replicas=1")
    print(f"  logs: {fleet.folder} and {planes[0].logs}")
    print("Ctrl-C ends everything and leaves nothing behind.", flush=True)


@contextmanager
def a_dashboard(fleet: Fleet, planes: Sequence[ControlPlane], address: str) -> Iterator[None]:
    """The page, with a proxy to each API server: it has no certificate of theirs."""
    with ExitStack() as ends:
        apis = []
        for plane in planes:
            port = ports.take()
            ends.callback(port.give_back)
            proxy = Process(
                f"proxy {plane.name}",
                [
                    str(binaries.path_of("kubectl")), f"--kubeconfig={plane.kubeconfig}",
                    "proxy", f"--port={port.number}",
                ],
                fleet.folder / f"proxy-{plane.name}.log",
            )  # fmt: skip
            proxy.start()
            ends.callback(proxy.kill)
            apis.append(f"--cluster-api={plane.name}=http://127.0.0.1:{port.number}")
        command = [
            str(BIN / "bigfleet"), "dashboard", f"--listen={address}", f"--shard={fleet.sessions}",
            f"--shard-http=s-1={fleet.shard_metrics}", *apis,
        ]  # fmt: skip
        page = Process("dashboard", command, fleet.folder / "dashboard.log")
        page.start()
        ends.callback(page.kill)
        eventually(lambda: is_ready(address), "the dashboard answers")
        yield
        page.check()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
