"""Where the API server is and who we are: a kubeconfig file, or the files inside a Pod.

Tokens in files are read again when they change, because Kubernetes replaces them before they
expire. Log-in helpers (`exec`, `auth-provider`) are refused by name, because a service has a token
or a certificate; a command of a person passes `exec_login.run_helper`. Nothing here talks to the
network.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from bigfleet.kube.errors import KubeConfigError
from bigfleet.kube.exec_login import Credential, RunHelper

IN_CLUSTER_FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")

TokenSource = Callable[[], str]
"""Gives the token to send now; empty for none. May read a small file, and is called per request."""


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """An API server and the identity to use there."""

    server: str
    """Such as https://10.0.0.1:6443, without a slash at the end."""
    namespace: str = "default"
    """Where namespaced objects of ours are, such as leases."""
    certificate_authority: bytes | None = None
    """PEM of the authority that signed the server's certificate; None means the system's."""
    client_certificate: bytes | None = field(default=None, repr=False)
    client_key: bytes | None = field(default=None, repr=False)
    server_name: str | None = None
    """The name to expect in the server's certificate, where it is not the host's."""
    verify: bool = True
    token: TokenSource = field(default=lambda: "", repr=False)

    def tls(self) -> ssl.SSLContext | None:
        """How to talk TLS to it; None for plain HTTP (tests and `kubectl proxy`)."""
        if not self.server.startswith("https://"):
            return None
        context = ssl.create_default_context()
        if self.certificate_authority is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            _load_authority(context, self.certificate_authority)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.client_certificate and self.client_key:
            _load_identity(context, self.client_certificate, self.client_key)
        return context


class FileToken:
    """A token in a file, read again when the file is another one than last time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._token = ""

    def __call__(self) -> str:
        try:
            found = self._path.stat()
            # A mounted Secret changes by a swapped link: inode and time both tell.
            seen = (found.st_ino, found.st_mtime_ns, found.st_size)
            if seen != self._seen:
                self._token = self._path.read_text(encoding="utf-8").strip()
                self._seen = seen
        except OSError as error:
            if not self._token:
                raise KubeConfigError(
                    f"the token file {self._path} cannot be read: {error}"
                ) from error
        return self._token


def load(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    helper: RunHelper | None = None,
) -> ClusterConfig:
    """The configuration a program should use: the file that was named, the Pod's own, or the
    user's.

    In this order: `kubeconfig`, the service account of the Pod we run in, $KUBECONFIG,
    ~/.kube/config. Certificates that cannot be used are an error here, not at every request.
    """
    found = _found(kubeconfig, context, helper)
    found.tls()
    return found


def _found(
    kubeconfig: str | Path | None, context: str | None, helper: RunHelper | None
) -> ClusterConfig:
    if kubeconfig:
        return from_kubeconfig(Path(kubeconfig), context, helper)
    if os.environ.get("KUBERNETES_SERVICE_HOST") and (IN_CLUSTER_FOLDER / "token").exists():
        return in_cluster()
    named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    for path in [*named, Path.home() / ".kube" / "config"]:
        if path.exists():
            return from_kubeconfig(path, context, helper)
    raise KubeConfigError(
        "no API server is configured: name a file with --kubeconfig or $KUBECONFIG, or run in a "
        "Pod with a service account"
    )


def in_cluster(
    folder: Path = IN_CLUSTER_FOLDER, environ: Mapping[str, str] = os.environ
) -> ClusterConfig:
    """The configuration that Kubernetes gives every Pod."""
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT_HTTPS") or environ.get(
        "KUBERNETES_SERVICE_PORT", ""
    )
    if not host or not port:
        raise KubeConfigError(
            "not in a Pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; "
            "name a kubeconfig instead"
        )
    token = FileToken(folder / "token")
    token()  # A missing token is an error at start, not at the first request.
    namespace = folder / "namespace"
    return ClusterConfig(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=_read(namespace).decode().strip() if namespace.exists() else "default",
        certificate_authority=_read(folder / "ca.crt"),
        token=token,
    )


def from_kubeconfig(
    path: Path, context: str | None = None, helper: RunHelper | None = None
) -> ClusterConfig:
    """The configuration of one context of a kubeconfig file; its current one unless named."""
    try:
        document = yaml.safe_load(_read(path))
    except yaml.YAMLError as error:
        raise KubeConfigError(f"{path} is not YAML: {error}") from error
    if not isinstance(document, Mapping):
        raise KubeConfigError(f"{path} is not a kubeconfig: it holds no mapping")
    file = _Kubeconfig(path, document, helper)
    return file.config(context or file.text(document, "current-context"))


@dataclass(frozen=True, slots=True)
class _Kubeconfig:
    """A kubeconfig file while it is read."""

    path: Path
    document: Mapping[str, object]
    helper: RunHelper | None
    """Runs log-in helpers; None refuses users that need one."""

    def config(self, context_name: str) -> ClusterConfig:
        """Put cluster, user and namespace of a context together."""
        if not context_name:
            raise KubeConfigError(f"{self.path} has no current-context: name one")
        context = self.named("contexts", "context", context_name)
        cluster = self.named("clusters", "cluster", self.text(context, "cluster"))
        user_name = self.text(context, "user")
        user = self.named("users", "user", user_name) if user_name else {}
        credential = self.logged_in(user_name, user)
        server = self.text(cluster, "server").rstrip("/")
        if not server:
            raise KubeConfigError(
                f"{self.path}: the cluster of context {context_name!r} has no server"
            )
        if not server.startswith(("https://", "http://")):
            raise KubeConfigError(
                f"{self.path}: server {server!r} is not an address: write https://host:port"
            )
        identity = [self.data(user, name) for name in ("client-certificate", "client-key")]
        if credential is not None and credential.certificate:
            identity = [credential.certificate.encode(), credential.key.encode()]
        if identity.count(None) == 1:
            raise KubeConfigError(
                f"{self.path}: user {user_name!r} has a client certificate without its key, or a "
                "key without its certificate: give both"
            )
        return ClusterConfig(
            server=server,
            namespace=self.text(context, "namespace") or "default",
            certificate_authority=self.data(cluster, "certificate-authority"),
            client_certificate=identity[0],
            client_key=identity[1],
            server_name=self.text(cluster, "tls-server-name") or None,
            verify=cluster.get("insecure-skip-tls-verify") is not True,
            token=self.token(user, credential),
        )

    def logged_in(self, name: str, user: Mapping[str, object]) -> Credential | None:
        """What the user's log-in helper gives; None for a user without one."""
        section = user.get("exec")
        if self.helper is not None and isinstance(section, Mapping):
            return self.helper(section, self.path.parent)
        for kind in ("exec", "auth-provider"):
            if kind in user:
                raise KubeConfigError(
                    f"{self.path}: user {name!r} logs in with {kind!r}, which no service "
                    "can use; give it a token, a tokenFile or a client certificate"
                )
        return None

    def named(self, section: str, inner: str, name: str) -> Mapping[str, object]:
        """One entry of a section."""
        entries = self.document.get(section)
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, Mapping) and entry.get("name") == name:
                found = entry.get(inner)
                return found if isinstance(found, Mapping) else {}
        raise KubeConfigError(f"{self.path}: there is no {inner} {name!r} among its {section}")

    def text(self, section: Mapping[str, object], name: str) -> str:
        """A text of a section, empty when absent."""
        value = section.get(name)
        return value if isinstance(value, str) else ""

    def data(self, section: Mapping[str, object], name: str) -> bytes | None:
        """Bytes that are in the file itself (`...-data`) or in another one."""
        inline = self.text(section, f"{name}-data")
        if inline:
            try:
                return base64.b64decode(inline, validate=True)
            except binascii.Error as error:
                raise KubeConfigError(f"{self.path}: {name}-data is not base64: {error}") from error
        elsewhere = self.text(section, name)
        return _read(self.path.parent / elsewhere) if elsewhere else None

    def token(self, user: Mapping[str, object], credential: Credential | None) -> TokenSource:
        """A helper's token, one in a file, one written down, or none."""
        if credential is not None and credential.token:
            return lambda: credential.token
        file = self.text(user, "tokenFile")
        if file:
            return FileToken(self.path.parent / file)
        fixed = self.text(user, "token")
        return lambda: fixed


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise KubeConfigError(f"{path} cannot be read: {error.strerror}") from error


def _load_authority(context: ssl.SSLContext, pem: bytes) -> None:
    try:
        context.load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise KubeConfigError(f"the certificate authority is not PEM: {error}") from error


def _load_identity(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    # The ssl module reads certificates from files only. This one is ours alone and goes at once.
    with tempfile.TemporaryDirectory(prefix="bigfleet-") as folder:
        chain = Path(folder) / "identity.pem"
        chain.touch(mode=0o600)
        chain.write_bytes(certificate + b"\n" + key)
        try:
            context.load_cert_chain(chain)
        except (ssl.SSLError, OSError) as error:
            raise KubeConfigError(f"client certificate and key do not work: {error}") from error
