"""Operator and pod controller under the roles of their own charts, and what they use of them."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from e2e_words import FleetOn
from real_fleet import deployment, eventually, scraped

import charts
from kube.plane import ControlPlane

NAMESPACE = "default"
# Short names: a user's name has to fit into a certificate.
ACCOUNTS = {"bigfleet-operator": "operator", "bigfleet-unschedulable-pod-controller": "pods"}
RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
PODS = "unschedulable_pod_controller"


def rights_of(helm: charts.Helm, name: str) -> list[dict[str, Any]]:
    """What a chart gives, rendered for the namespace of the test."""
    values = str(charts.CHARTS / name / "ci" / "default.yaml")
    named = f"fullnameOverride={ACCOUNTS[name]}"
    text = helm.template(name, "--values", values, "--set", named)
    text = text.replace(charts.NAMESPACE, NAMESPACE)
    return [one for one in yaml.safe_load_all(text) if one and one["kind"] in RIGHTS]


def granted(objects: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Verb and resource of every rule; a subresource counts as its resource."""
    rules = [rule for one in objects for rule in one.get("rules", [])]
    return {
        (verb, resource.partition("/")[0])
        for rule in rules
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }


def used(address: str, prefix: str) -> set[tuple[str, str]]:
    """Verb and resource of all calls that were answered with success."""
    calls = scraped(address, f"bigfleet_{prefix}_api_requests_total")
    return {
        (labels["verb"], labels["resource"])
        for labels, count in calls
        if count and labels["code_class"] == "2xx"
    }


@pytest.fixture
def under_their_roles(east: ControlPlane) -> dict[str, tuple[Path, Path]]:
    """Kubeconfigs of the two accounts, with the rights that the charts give them."""
    helm = charts.Helm.built()
    found = []
    for name, account in ACCOUNTS.items():
        objects = rights_of(helm, name)
        east.kubectl(
            "apply", "--server-side", "--force-conflicts", "-f", "-",
            stdin=yaml.safe_dump_all(objects),
        )  # fmt: skip
        found.append(east.user(f"system:serviceaccount:{NAMESPACE}:{account}"))
    return {east.name: (found[0], found[1])}


def test_the_charts_roles_are_enough_and_nothing_was_refused(
    fleet_on: FleetOn, under_their_roles: dict[str, tuple[Path, Path]]
) -> None:
    helm = charts.Helm.built()
    with fleet_on(slots=4, kubeconfigs=under_their_roles) as fleet:
        (east,) = fleet.clusters
        east.apply(deployment("web", 8))
        east.until_running(8)
        east.scale("web", 1)
        eventually(lambda: len(east.nodes()) == 1, "nodes are given back")
        for log in (east.operator.log, east.controller.log):
            assert "forbidden" not in log.read_text().lower()
        parts = (
            ("bigfleet-operator", "operator", east.metrics),
            ("bigfleet-unschedulable-pod-controller", PODS, east.pod_metrics),
        )
        for name, prefix, address in parts:
            made = used(address, prefix)
            assert {("list", "pods"), ("watch", "nodes")} <= made
            assert made <= granted(rights_of(helm, name))


@pytest.mark.usefixtures("under_their_roles")
def test_neither_can_read_secrets_or_touch_workloads(east: ControlPlane) -> None:
    for account in ACCOUNTS.values():
        who = f"--as=system:serviceaccount:{NAMESPACE}:{account}"
        for verb, resource in (("get", "secrets"), ("list", "secrets"), ("delete", "nodes")):
            said = east.kubectl("auth", "can-i", verb, resource, "-A", who, check=False)
            assert said.strip().startswith("no")
