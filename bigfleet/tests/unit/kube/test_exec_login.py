"""Log-in helpers of kubeconfigs: what they print is used, what goes wrong names them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from bigfleet.kube import KubeConfigError, from_kubeconfig
from bigfleet.kube.exec_login import Credential, run_helper


def helper(folder: Path, script: str) -> dict[str, Any]:
    """A helper beside the kubeconfig."""
    path = folder / "login"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
    path.chmod(0o755)
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": "./login"}


def printing(status: dict[str, str]) -> str:
    return f"echo '{json.dumps({'kind': 'ExecCredential', 'status': status})}'"


def kubeconfig(folder: Path, section: dict[str, Any]) -> Path:
    path = folder / "config"
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"exec": section}}],
    }
    path.write_text(yaml.safe_dump(document), encoding="ascii")
    return path


def test_the_token_of_a_helper_is_used_where_a_person_runs_the_command(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, helper(tmp_path, printing({"token": "t-1"})))
    assert from_kubeconfig(path, None, run_helper).token() == "t-1"
    with pytest.raises(KubeConfigError, match="logs in with 'exec'"):
        from_kubeconfig(path)


def test_the_certificate_of_a_helper_is_used(tmp_path: Path) -> None:
    printed = {"clientCertificateData": "cert", "clientKeyData": "key"}
    path = kubeconfig(tmp_path, helper(tmp_path, printing(printed)))
    found = from_kubeconfig(path, None, run_helper)
    assert (found.client_certificate, found.client_key) == (b"cert", b"key")


def test_a_helper_gets_its_arguments_and_its_environment(tmp_path: Path) -> None:
    script = """printf '{"status": {"token": "%s %s"}}' "$1" "$REGION" """
    section = helper(tmp_path, script)
    section |= {"args": ["shop"], "env": [{"name": "REGION", "value": "eu-1"}]}
    assert run_helper(section, tmp_path) == Credential(token="shop eu-1")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 3", "'./login' ended with 3"),
        ("echo hello", "printed no ExecCredential"),
        (printing({}), "printed neither a token nor a certificate"),
    ],
)
def test_a_helper_that_fails_is_named(tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(KubeConfigError, match=message):
        run_helper(helper(tmp_path, script), tmp_path)


def test_a_helper_that_is_not_there_comes_with_its_hint(tmp_path: Path) -> None:
    section = {"command": "no-such-helper", "installHint": "install the plugin of the cloud"}
    with pytest.raises(KubeConfigError, match="is not there: install the plugin of the cloud"):
        run_helper(section, tmp_path)
