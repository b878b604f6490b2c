"""Every process of ours beside each other on one machine, with its defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kube_http import KUBECONFIG
from new_machine import NewMachine
from real_fleet import eventually

NOWHERE: Final = KUBECONFIG.format(server="http://127.0.0.1:1")
PROCESSES: Final = {
    "bigfleet coordinator": {7790, 8790},
    "bigfleet shard --shard-id s-1 --coordinator-addr 127.0.0.1:7790": {7780, 8780},
    "bigfleet operator --cluster-id shop --shard-addr 127.0.0.1:7780 --allow-stub-bootstrap "
    "--kubeconfig kubeconfig": {8770},
    "bigfleet pod-controller --kubeconfig kubeconfig": {8080},
    "bigfleet dashboard --coordinator 127.0.0.1:7790": {8700},
    "bigfleet-provider-fake": {9001, 9002},
}
"""Commands, and the ports that each listens at."""


def start_every_process(machine: NewMachine) -> dict[str, Path]:
    """Start all of them and wait until they listen; the log of each."""
    (machine.home / "kubeconfig").write_text(NOWHERE, encoding="ascii")
    logs = {command: machine.start(f"exec {command}") for command in PROCESSES}
    ports = set().union(*PROCESSES.values())

    def all_listen() -> bool:
        machine.check_alive()
        return ports <= {port for _, port in machine.listening()}

    eventually(all_listen, "every process listens")
    return logs
