"""Names and phases of machines, bootstrap templates, what DaemonSets take."""

from __future__ import annotations

import asyncio
import base64
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from bigfleet.kube.fleet import UpcomingNode
from bigfleet.observe.operator import OperatorMetrics
from bigfleet.operator.bootstrap.responder import AT_ONCE, Bootstrap
from bigfleet.operator.bootstrap.template import (
    READY,
    ApiServer,
    BootstrapTemplate,
    Surroundings,
    kubelet_labels,
)
from bigfleet.operator.errors import TemplateError, UnsatisfiableError
from bigfleet.operator.machines.available import cost_text
from bigfleet.operator.machines.node_state import (
    Phase,
    after_update,
    as_written,
    object_name,
    phase_after,
)
from bigfleet.operator.nodes.objects import DaemonSet, node_overhead
from bigfleet_api.v1alpha1 import provider_pb2 as provider
from bigfleet_api.v1alpha1 import shard_pb2 as pb
from kubeobjects import read
from sim.loop import virtual_loop

S = provider.MachineState
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@pytest.mark.parametrize("machine", ["m-1", "a.b-c", "x" * 250])
def test_a_machine_whose_id_is_a_name_gives_its_object_that_name(machine: str) -> None:
    assert object_name(machine) == f"un-{machine}"


@pytest.mark.parametrize("machine", ["M_1", "eu/a#7", "x" * 251, "-", "ü", "a..b", "a/", "A" * 300])
def test_any_other_id_gives_a_name_of_its_own(machine: str) -> None:
    name = object_name(machine)
    assert SUBDOMAIN.fullmatch(name)
    assert len(name) <= 253
    assert re.fullmatch(r"un-.*-[0-9a-f]{10}|un--?[0-9a-f]{10}", name)
    assert object_name(machine + "x") != name


@pytest.mark.parametrize(
    ("before", "state", "after"),
    [
        (None, S.MACHINE_STATE_SPECULATIVE, Phase.PROVISIONING),
        (None, S.MACHINE_STATE_CREATING, Phase.PROVISIONING),
        (None, S.MACHINE_STATE_DELETING, Phase.PROVISIONING),
        (None, 99, Phase.PROVISIONING),
        (None, S.MACHINE_STATE_IDLE, Phase.LAUNCHED),
        (Phase.PROVISIONING, S.MACHINE_STATE_IDLE, Phase.LAUNCHED),
        (Phase.REGISTERED, S.MACHINE_STATE_IDLE, Phase.LAUNCHED),
        (Phase.READY, S.MACHINE_STATE_IDLE, Phase.DRAINED),
        (Phase.DRAINING, S.MACHINE_STATE_IDLE, Phase.DRAINED),
        (Phase.DRAINED, S.MACHINE_STATE_IDLE, Phase.DRAINED),
        (Phase.LAUNCHED, S.MACHINE_STATE_CONFIGURING, Phase.REGISTERED),
        (Phase.REGISTERED, S.MACHINE_STATE_CONFIGURED, Phase.READY),
        (Phase.READY, S.MACHINE_STATE_DRAINING, Phase.DRAINING),
        (Phase.READY, S.MACHINE_STATE_FAILED, Phase.FAILED),
    ],
)
def test_phases_follow_states(before: Phase | None, state: int, after: Phase) -> None:
    assert phase_after(before, state) is after


def test_what_a_frame_does_not_say_it_has_not_taken_back() -> None:
    failed = S.MACHINE_STATE_FAILED
    first = after_update(
        None,
        pb.NodeStateUpdate(
            machine_id="m", state=failed, node_name="n", provider_id="h", last_error="broke"
        ),
        1_700_000_000 * 10**9,
    )
    again = after_update(first, pb.NodeStateUpdate(machine_id="m", state=failed), 0)
    assert (again.node_name, again.provider_id, again.last_error) == ("n", "h", "broke")
    assert again.started == first.started == "2023-11-14T22:13:20Z"
    healed = after_update(again, pb.NodeStateUpdate(machine_id="m", state=S.MACHINE_STATE_IDLE), 0)
    assert healed.last_error == ""
    assert "lastError" not in healed.status_body()["status"]


def test_an_object_reads_back_as_it_was_written() -> None:
    update = pb.NodeStateUpdate(
        machine_id="M_1",
        state=S.MACHINE_STATE_CONFIGURED,
        node_name="n",
        provider_id="h",
        labels={"a": "b"},
        resources=provider.Resources(resources={"cpu": "4"}),
        taints=[provider.Taint(key="k", value="v", effect="NoSchedule")],
    )
    known = after_update(None, update, 1_700_000_000 * 10**9)
    spec, status = known.spec_body(), known.status_body()
    document = {
        "metadata": {"name": known.name, **spec["metadata"]},
        "spec": spec["spec"],
        **status,
    }
    assert as_written(read(UpcomingNode, document)) == known
    assert as_written(read(UpcomingNode, {"metadata": {"name": "x"}, "spec": {}})) is None


@pytest.mark.parametrize(
    ("dollars", "text"),
    [(0.38, "0.38"), (12.0, "12"), (0, "0"), (-1, "0"), (float("nan"), "0"), (1e-9, "0"),
     (0.123456789, "0.123457")],
)  # fmt: skip
def test_costs_are_quantities(dollars: float, text: str) -> None:
    assert cost_text(dollars) == text


async def mint(groups: str) -> str:
    return "abcdef.0123456789abcdef"


def around(pem: bytes = b"", **values: Any) -> Surroundings:
    return Surroundings("c-1", ApiServer("https://api.example:6443", pem), values)


def bootstrap() -> pb.BootstrapRequest:
    labels = {"topology.kubernetes.io/zone": "a", "node-role.kubernetes.io/x": "", "team": "ml"}
    machine = pb.BootstrapMachine(
        machine_id="m-1", instance_type="t", zone="a", labels=labels, provider_id="cloud:///h-1",
        capacity_type=provider.CAPACITY_TYPE_SPOT,
    )  # fmt: skip
    return pb.BootstrapRequest(request_id="r", machine=machine)


@pytest.mark.parametrize("which", sorted(READY))
async def test_the_ready_templates_render_and_their_files_are_valid(which: str) -> None:
    pem = trustme.CA().cert_pem.bytes()
    template = BootstrapTemplate.load(which, around(pem, service_cidr="10.100.0.0/16"))
    text = (await template.render(bootstrap(), mint)).decode()
    assert text.startswith("#!/bin/sh\n")
    assert ("abcdef.0123456789abcdef" in text) is (which != "eks")
    document = re.search(r"<<'(JOIN|CONFIG|NODE)'\n(.*?)\n\1\n", text, re.DOTALL)
    assert document is not None
    written = yaml.safe_load(document[2])
    labels = "bigfleet.lucy.sh/machine-id=m-1,team=ml,topology.kubernetes.io/zone=a"
    if which == "kubeadm":
        token = written["discovery"]["bootstrapToken"]
        assert token["apiServerEndpoint"] == "api.example:6443"
        assert re.fullmatch(r"sha256:[0-9a-f]{64}", token["caCertHashes"][0])
        arguments = written["nodeRegistration"]["kubeletExtraArgs"]
        assert {"name": "node-labels", "value": labels} in arguments
        assert {"name": "provider-id", "value": "cloud:///h-1"} in arguments
    elif which == "eks":
        assert (written["apiVersion"], written["kind"]) == ("node.eks.aws/v1alpha1", "NodeConfig")
        assert written["spec"]["cluster"] == {
            "name": "c-1",
            "apiServerEndpoint": "https://api.example:6443",
            "certificateAuthority": base64.b64encode(pem).decode(),
            "cidr": "10.100.0.0/16",
        }
        assert written["spec"]["kubelet"]["flags"] == [f"--node-labels={labels}"]
    else:
        assert re.fullmatch(r"K10[0-9a-f]{64}::abcdef\.[0-9a-f]{16}", written["token"])
        assert written["node-label"] == labels.split(",")
        assert written["kubelet-arg"] == ["provider-id=cloud:///h-1"]


def run_program(program: str, **variables: str) -> None:
    subprocess.run(["sh", "-c", program], env=variables, check=True)


async def test_a_node_of_eks_registers_its_taints_and_runs_nodeadm(tmp_path: Path) -> None:
    pem = trustme.CA().cert_pem.bytes()
    values = {"service_cidr": "10.100.0.0/16", "eks_cluster": "prod"}
    template = BootstrapTemplate.load("eks", around(pem, **values))
    text = (await template.render(bootstrap(), mint)).decode()
    nodeadm = tmp_path / "nodeadm"
    nodeadm.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/called\n', "utf-8")
    nodeadm.chmod(0o755)
    program = text.replace("/etc/bigfleet-node.yaml", f"{tmp_path}/node.yaml")
    run_program(
        program,
        PATH=f"{tmp_path}:/usr/bin:/bin",
        BIGFLEET_TAINTS="gpu=yes:NoSchedule a:NoExecute",
    )
    written = yaml.safe_load((tmp_path / "node.yaml").read_text("utf-8"))
    assert written["spec"]["cluster"]["name"] == "prod"
    assert written["spec"]["kubelet"]["flags"][1:] == [
        "--register-with-taints=gpu=yes:NoSchedule,a:NoExecute"
    ]
    called = (tmp_path / "called").read_text("utf-8").strip()
    assert called == f"init --config-source file://{tmp_path}/node.yaml"


async def test_a_template_for_eks_says_that_the_service_network_is_missing() -> None:
    template = BootstrapTemplate.load("eks", around(trustme.CA().cert_pem.bytes()))
    with pytest.raises(UnsatisfiableError, match="service_cidr"):
        await template.render(bootstrap(), mint)


@pytest.mark.parametrize("which", sorted(READY))
async def test_a_ready_template_says_what_it_misses(which: str) -> None:
    template = BootstrapTemplate.load(which, around())
    with pytest.raises(UnsatisfiableError, match="--api-server-ca"):
        await template.render(bootstrap(), mint)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{ machine.id", "does not parse"),
        ("{% if %}", "line 1"),
        ("{{ mashine.id }}", "mashine"),
    ],
)
def test_a_template_that_cannot_work_is_refused_at_start(text: str, words: str) -> None:
    with pytest.raises(TemplateError, match=words):
        BootstrapTemplate(text, "mine.j2", around())


@pytest.mark.parametrize(
    "text",
    [
        "{{ machine.colour }}",
        "{{ values.missing }}",
        "{{ 1 / 0 }}",
        "{{ cluster_id.__class__.__mro__ }}",
        "{{ machine.labels.update({'a': 'b'}) }}",
        "{% for i in range(1000000) %}x{% endfor %}",
        "{{ 'x' * 2000000 }}",
        "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    ],
)
async def test_a_template_that_fails_is_an_answer_with_words(text: str) -> None:
    template = BootstrapTemplate(text, "mine.j2", around())
    with pytest.raises(TemplateError, match=r"mine\.j2"):
        await template.render(bootstrap(), mint)


async def test_a_template_sees_its_values_and_may_refuse_a_machine() -> None:
    text = "{{ values.greeting }} {{ machine.capacity_type }}{% if machine.zone == 'a' %}"
    template = BootstrapTemplate(
        text + "{{ fail('not in a') }}{% endif %}", "t", around(greeting=1)
    )
    with pytest.raises(UnsatisfiableError, match="not in a"):
        await template.render(bootstrap(), mint)
    other = bootstrap()
    other.machine.zone = "b"
    assert await template.render(other, mint) == b"1 Spot"


def test_who_waits_for_a_turn_too_long_is_told_so_in_time() -> None:
    answers: list[tuple[float, str]] = []

    async def story() -> None:
        loop = asyncio.get_running_loop()

        async def stuck(_groups: str) -> str:
            await asyncio.sleep(60)
            return "late"

        def answer(message: pb.OperatorMessage) -> None:
            answers.append((loop.time() - began, message.bootstrap_response.error))

        template = BootstrapTemplate("{{ bootstrap_token() }}", "t", around())
        desk = Bootstrap(template, stuck, OperatorMetrics(loop.time, version="1"))
        began = loop.time()
        await asyncio.gather(*(desk.answer(bootstrap(), answer) for _ in range(AT_ONCE + 5)))

    virtual_loop(1).run(story())
    assert len(answers) == AT_ONCE + 5
    assert all(after == pytest.approx(20) and words for after, words in answers)


def test_a_template_that_is_not_there_names_the_ready_ones(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="kubeadm"):
        BootstrapTemplate.load(str(tmp_path / "none"), around())


def test_kubelet_gets_only_labels_it_may_set() -> None:
    labels = {"kubernetes.io/arch": "arm64", "x.k8s.io/y": "1", "node.kubernetes.io/z": "2"}
    assert kubelet_labels(labels, "no label/value") == {
        "kubernetes.io/arch": "arm64",
        "node.kubernetes.io/z": "2",
    }


def daemon_set(cpu: str, **spec: Any) -> DaemonSet:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [container], **spec}}
    return read(DaemonSet, {"metadata": {"name": "d"}, "spec": {"template": template}})


def test_daemon_sets_on_every_node_are_added_up() -> None:
    required: dict[str, Any] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"x": []}}
    }
    found = node_overhead(
        [
            daemon_set("100m"),
            daemon_set("200m", nodeSelector={"kubernetes.io/os": "linux"}),
            daemon_set("1", nodeSelector={"gpu": "true"}),
            daemon_set("1", affinity=required),
        ]
    )
    assert found == {"cpu": 300, "pods": 2000}
    assert node_overhead([]) == {}
