"""Settings of operator and pod controller: what they need, what they refuse and in which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bigfleet.observe.settings import SettingsError
from bigfleet.operator.settings import OperatorSettings
from bigfleet.podcontroller.settings import PodControllerSettings

GOOD = {"cluster_id": "c-1", "shard_addr": "shard:7780", "bootstrap_template": "kubeadm"}


def test_little_is_needed_and_the_rest_has_its_promised_default() -> None:
    settings = OperatorSettings.load(GOOD)
    assert settings.metrics_addr == "127.0.0.1:8770"
    assert settings.operator_config().rhythm.rollup == 10
    assert (settings.qps, settings.burst, settings.ack_concurrency) == (200, 400, 64)
    assert settings.tls_files() is None
    assert settings.replica


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cluster_id": ""}, "--cluster-id"),
        ({"cluster_id": "a\nb"}, "--cluster-id"),
        ({"shard_addr": "shard"}, "host:port"),
        ({"shard_addr": "7780"}, "host:port"),
        ({"shard_addr": ":7780"}, "host:port"),
        ({"shard_addr": "shard:77800"}, "host:port"),
        ({"bootstrap_template": ""}, "--allow-stub-bootstrap"),
        ({"rollup_interval": "0s"}, "--rollup-interval"),
        ({"tls_cert": "cert.pem"}, "--tls-key"),
        ({"default_arch": ""}, "write any to switch it off"),
        ({"default_os": "not an os"}, "--default-os"),
        ({"qps": "0"}, "--qps"),
        ({"shard_address": "x:1"}, "did you mean --shard-addr"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(change: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        OperatorSettings.load({**GOOD, **change})


def test_new_machines_are_amd64_and_linux_unless_told_otherwise() -> None:
    config = OperatorSettings.load(GOOD).operator_config()
    assert (config.default_arch, config.default_os) == ("amd64", "linux")
    config = OperatorSettings.load(
        {**GOOD, "default_arch": "arm64", "default_os": "any"}
    ).operator_config()
    assert (config.default_arch, config.default_os) == ("arm64", "")


@pytest.mark.parametrize("missing", ["cluster_id", "shard_addr"])
def test_cluster_and_shard_are_required(missing: str) -> None:
    given = {key: value for key, value in GOOD.items() if key != missing}
    with pytest.raises(SettingsError, match="is missing"):
        OperatorSettings.load(given)


def test_a_stub_has_to_be_allowed() -> None:
    given = {**GOOD, "bootstrap_template": "", "allow_stub_bootstrap": True}
    assert not OperatorSettings.load(given).bootstrap_template


def test_a_pod_controller_needs_nothing(tmp_path: Path) -> None:
    settings = PodControllerSettings.load({})
    assert settings.metrics_addr == "127.0.0.1:8080"
    assert settings.adopts
    assert not PodControllerSettings.load({"adopt_foreign_nodes": "false"}).adopts
    with pytest.raises(SettingsError, match="--adopt-foreign-nodes"):
        PodControllerSettings.load({"adopt_foreign_nodes": "perhaps"})
