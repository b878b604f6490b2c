"""The user stories, told as they are written: every `sh` block of a page, from top to bottom."""

import os
import re
import subprocess
from pathlib import Path

from e2e_scenarios import until_ready
from e2e_words import FleetOn
from real_fleet import BIN, Cluster, Fleet, eventually

from kube import binaries

ROOT = Path(__file__).parents[2]
STORIES = ROOT / "docs" / "user-stories"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LONGEST = 400.0


def tell(page: str, fleet: Fleet, cluster: Cluster) -> str:
    """Type what the page says into one shell; what it showed."""
    blocks = BLOCK.findall((STORIES / page).read_text(encoding="utf-8"))
    assert blocks
    until_ready(cluster)
    tools = binaries.folder()
    surroundings = {
        **os.environ,
        "PATH": f"{tools}:{BIN}:{os.environ['PATH']}",
        "KUBECONFIG": str(cluster.plane.kubeconfig),
        "KUBECACHEDIR": str(fleet.folder / "kubectl"),
        "BIGFLEETCTL_SHARD_ADDR": fleet.sessions,
        "OPERATOR": cluster.metrics,
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-x", "-c", "\n".join(blocks)],
        cwd=ROOT, env=surroundings, text=True, check=False, timeout=LONGEST,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def test_every_story_is_told_here() -> None:
    told = {page.name for page in STORIES.glob("*.md") if BLOCK.search(page.read_text("utf-8"))}
    here = Path(__file__).read_text(encoding="utf-8")
    assert told
    assert all(f'tell("{page}"' in here for page in told)


def test_an_application_developer_gets_machines_and_gives_them_back(fleet_on: FleetOn) -> None:
    with fleet_on(slots=6) as fleet:
        (east,) = fleet.clusters
        shown = tell("application-developer.md", fleet, east)
        assert "Unmet" in shown
        assert re.search(r"^cr-pod-web-\S+ +16$", shown, re.MULTILINE)
        eventually(lambda: not east.get("capacityrequests"), "requests went with their pods")


def test_a_training_job_gets_its_machines_in_one_zone(fleet_on: FleetOn) -> None:
    with fleet_on(slots=3, zones=("zone-a", "zone-b")) as fleet:
        (east,) = fleet.clusters
        shown = tell("ml-platform.md", fleet, east)
        rows = [line.split() for line in shown.splitlines() if line.startswith("train-")]
        zones = {
            line.split()[0]: line.split()[-1] for line in shown.splitlines() if "zone-" in line
        }
        trained_on = {zones[row[6]] for row in rows if row[2] == "Running"}
        assert len(trained_on) == 1
        assert east.running("batch") == 4


def test_a_cluster_owner_knows_what_comes_and_what_stays(fleet_on: FleetOn) -> None:
    with fleet_on(slots=4) as fleet:
        (east,) = fleet.clusters
        shown = tell("cluster-owner.md", fleet, east)
        assert "customresourcedefinition" in shown
        owners = {one["metadata"]["name"] for one in east.get("capacityrequests")}
        assert not any("housekeeping" in name for name in owners)
        assert len(owners) == 5


def test_a_person_on_call_finds_what_holds_a_node(fleet_on: FleetOn) -> None:
    with fleet_on(slots=4) as fleet:
        (east,) = fleet.clusters
        shown = tell("on-call-for-a-cluster.md", fleet, east)
        assert "bigfleet.lucy.sh/reclaiming" in shown
        assert east.running("ledger") == 3
