"""Where the API server is and who we are."""

import base64
import os
from pathlib import Path

import pytest
import trustme
import yaml

from bigfleet.kube import KubeConfigError, from_kubeconfig, in_cluster, load
from bigfleet.kube.config import FileToken

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def write(folder: Path, user: dict[str, object], **cluster: object) -> Path:
    path = folder / "config"
    document = {
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "mine"}},
            {"name": "lost", "context": {"cluster": "nowhere", "user": "u"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443/", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def test_a_kubeconfig_names_server_namespace_and_token(tmp_path: Path) -> None:
    config = from_kubeconfig(write(tmp_path, {"token": "secret"}))
    assert (config.server, config.namespace) == ("https://api:6443", "mine")
    assert config.token() == "secret"
    assert "secret" not in repr(config)


def test_certificates_come_from_the_file_or_from_beside_it(tmp_path: Path) -> None:
    authority = trustme.CA()
    identity = authority.issue_cert("client@example.org")
    (tmp_path / "ca.crt").write_bytes(authority.cert_pem.bytes())
    inline = {
        "client-certificate-data": base64.b64encode(identity.cert_chain_pems[0].bytes()).decode(),
        "client-key-data": base64.b64encode(identity.private_key_pem.bytes()).decode(),
    }
    config = from_kubeconfig(write(tmp_path, {**inline}, **{"certificate-authority": "ca.crt"}))
    assert config.certificate_authority == authority.cert_pem.bytes()
    assert config.tls() is not None


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ({"exec": {"command": "aws"}}, "logs in with 'exec'"),
        ({"client-certificate-data": "%%%"}, "client-certificate-data is not base64"),
        ({"client-certificate": "missing.crt"}, "missing.crt cannot be read"),
        ({"client-certificate-data": "aGFsbG8="}, "without its key"),
        ({"client-key-data": "aGFsbG8="}, "without its certificate"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, user: dict[str, object], words: str) -> None:
    with pytest.raises(KubeConfigError, match=words):
        from_kubeconfig(write(tmp_path, user))


def test_contexts_and_clusters_that_are_not_there_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, {})
    with pytest.raises(KubeConfigError, match="no context 'elsewhere'"):
        from_kubeconfig(path, "elsewhere")
    with pytest.raises(KubeConfigError, match="no cluster 'nowhere'"):
        from_kubeconfig(path, "lost")
    path.write_text("- a list", encoding="utf-8")
    with pytest.raises(KubeConfigError, match="not a kubeconfig"):
        from_kubeconfig(path)


def test_a_bad_certificate_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("not PEM", encoding="utf-8")
    config = from_kubeconfig(write(tmp_path, {}, **{"certificate-authority": "ca.crt"}))
    with pytest.raises(KubeConfigError, match="not PEM"):
        config.tls()
    with pytest.raises(KubeConfigError, match="not PEM"):
        load(tmp_path / "config")


@pytest.mark.parametrize("server", ["api:6443", "ftp://api"])
def test_a_server_that_is_no_address_is_named(tmp_path: Path, server: str) -> None:
    with pytest.raises(KubeConfigError, match=r"write https://host:port"):
        from_kubeconfig(write(tmp_path, {}, server=server))


def test_a_pod_finds_its_own_api_server(tmp_path: Path) -> None:
    for name, text in (("token", "abc\n"), ("namespace", "fleet"), ("ca.crt", "PEM")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    config = in_cluster(tmp_path, POD)
    assert (config.server, config.namespace) == ("https://10.0.0.1:443", "fleet")
    assert config.token() == "abc"
    six = in_cluster(tmp_path, {**POD, "KUBERNETES_SERVICE_HOST": "fd00::1"})
    assert six.server == "https://[fd00::1]:443"


def test_outside_of_a_pod_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(KubeConfigError, match="not in a Pod"):
        in_cluster(tmp_path, {})
    with pytest.raises(KubeConfigError, match="token cannot be read"):
        in_cluster(tmp_path, POD)


def test_a_token_is_read_again_when_it_was_replaced(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one", encoding="utf-8")
    token = FileToken(path)
    assert token() == "one"
    fresh = tmp_path / "fresh"
    fresh.write_text("two", encoding="utf-8")
    fresh.replace(path)
    assert token() == "two"
    path.unlink()
    assert token() == "two", "a moment without a file is not a reason to stop"


def test_without_any_configuration_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(KubeConfigError, match="--kubeconfig"):
        load()
    missing = tmp_path / "missing"
    path = write(tmp_path, {})
    monkeypatch.setenv("KUBECONFIG", f"{missing}{os.pathsep}{path}")
    assert load().server == "https://api:6443"
    with pytest.raises(KubeConfigError, match="missing cannot be read"):
        load(missing)
