"""Log-in helpers of a kubeconfig (`exec`): programs that print a credential for a person.

`aws eks get-token`, `gke-gcloud-auth-plugin` and their like. Services have tokens or certificates
and are refused such users by `config`; a command that a person runs once passes `run_helper` to it.
The credential is asked for once and is not renewed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bigfleet.kube.errors import KubeConfigError

HELPER_SECONDS: Final = 60.0
"""A helper may open a browser and wait for a person."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What a helper printed: a token, or a certificate with its key, as PEM."""

    token: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)


RunHelper = Callable[[Mapping[str, object], Path], Credential]
"""Given the `exec` section of a user and the folder of its kubeconfig."""


def run_helper(section: Mapping[str, object], folder: Path) -> Credential:
    """Run the helper that a user names, and read what it prints (client.authentication.k8s.io)."""
    command = str(section.get("command") or "")
    if not command:
        raise KubeConfigError(f"{folder}: the log-in helper of this user has no command")
    # As kubectl does: a path with a separator is relative to the kubeconfig.
    program = str(folder / command) if os.sep in command else command
    arguments = [str(one) for one in _list(section.get("args"))]
    try:
        ended = subprocess.run(
            [program, *arguments],
            env={**os.environ, **_environment(section)},
            stdout=subprocess.PIPE,
            timeout=HELPER_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        hint = str(section.get("installHint") or "install it, or put it on the PATH")
        raise KubeConfigError(f"the log-in helper {command!r} is not there: {hint}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KubeConfigError(f"the log-in helper {command!r} does not work: {error}") from error
    if ended.returncode:
        raise KubeConfigError(f"the log-in helper {command!r} ended with {ended.returncode}")
    return _credential(command, ended.stdout)


def _environment(section: Mapping[str, object]) -> dict[str, str]:
    version = str(section.get("apiVersion") or "client.authentication.k8s.io/v1")
    spec = {"interactive": sys.stdin.isatty()}
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    named = {
        str(one["name"]): str(one.get("value", ""))
        for one in _list(section.get("env"))
        if isinstance(one, Mapping) and one.get("name")
    }
    return {**named, "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _credential(command: str, printed: bytes) -> Credential:
    try:
        status = json.loads(printed)["status"]
        found = Credential(
            token=str(status.get("token") or ""),
            certificate=str(status.get("clientCertificateData") or ""),
            key=str(status.get("clientKeyData") or ""),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise KubeConfigError(f"the log-in helper {command!r} printed no ExecCredential") from error
    if not found.token and not (found.certificate and found.key):
        raise KubeConfigError(
            f"the log-in helper {command!r} printed neither a token nor a certificate with its key"
        )
    return found


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []
