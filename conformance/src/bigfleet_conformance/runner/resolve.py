"""From a target to something that can be looked at: executables, conformance.yaml, TLS."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from bigfleet_conformance.errors import UsageError
from bigfleet_conformance.harness.certificates import Authority, Credentials, shard_san
from bigfleet_conformance.options import ClientTls, Options, Target
from bigfleet_conformance.runner.cloud import FakeCloud
from bigfleet_conformance.runner.process import Executable

SPECIAL_NAMES = {
    "fake": "bigfleet-provider-fake",
    "fault": "bigfleet-fault-provider",
    "_template": "bigfleet-provider-template",
}
KNOWN_KEYS = {"executable", "profiles", "claims", "arguments", "environment", "http"}
KNOWN_HTTP_KEYS = {"args", "environment", "cloud"}


@dataclass(frozen=True, slots=True)
class Configuration:
    """conformance.yaml of a provider."""

    executable: str = ""
    profiles: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    http_args: tuple[str, ...] = ()
    http_environment: tuple[tuple[str, str], ...] = ()
    http_cloud: str = ""


def load_configuration(path: Path) -> Configuration:
    """Read the file; an unknown key is an error that names it."""
    if not path.exists():
        return Configuration()
    loaded = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    if not isinstance(loaded, dict):
        raise UsageError(f"{path} is not a map")
    http = loaded.get("http") or {}
    if not isinstance(http, dict):
        raise UsageError(f"{path}: http is not a map")
    for where, given, known in (("", loaded, KNOWN_KEYS), ("http.", http, KNOWN_HTTP_KEYS)):
        for key in given:
            if key not in known:
                raise UsageError(f"{path}: unknown key {where}{key}")
    return Configuration(
        executable=str(loaded.get("executable") or ""),
        profiles=_texts(loaded, "profiles"),
        claims=_texts(loaded, "claims"),
        args=_texts(loaded, "arguments"),
        environment=_pairs(loaded, "environment"),
        http_args=_texts(http, "args"),
        http_environment=_pairs(http, "environment"),
        http_cloud=str(http.get("cloud") or ""),
    )


def _texts(source: dict[str, object], key: str) -> tuple[str, ...]:
    value = source.get(key) or []
    if isinstance(value, str):
        return tuple(shlex.split(value))
    if not isinstance(value, list):
        raise UsageError(f"conformance.yaml: {key} is not a list")
    return tuple(str(item) for item in value)


def _pairs(source: dict[str, object], key: str) -> tuple[tuple[str, str], ...]:
    value = source.get(key) or {}
    if not isinstance(value, dict):
        raise UsageError(f"conformance.yaml: {key} is not a map")
    return tuple((str(name), str(text)) for name, text in value.items())


async def executable_of(
    target: Target, options: Options, logs: Path
) -> tuple[Executable, Configuration]:
    """The executable of --provider or --exec, asked for its help and version."""
    configuration = Configuration()
    command = target.command
    if target.provider:
        name = target.provider
        configuration = load_configuration(Path("providers") / name / "conformance.yaml")
        usual = SPECIAL_NAMES.get(name, f"bigfleet-provider-{name}")
        command = configuration.executable or usual
    extra, environment = configuration.args, dict(configuration.environment)
    cloud = None
    if options.substrate == "http":
        if not configuration.http_cloud:
            raise UsageError(
                "--substrate http needs the key http.cloud in the provider's conformance.yaml"
            )
        extra += configuration.http_args
        environment |= dict(configuration.http_environment)
        cloud = FakeCloud(configuration.http_cloud, logs)
    made = await Executable.ask(
        command,
        logs,
        base_port=options.port,
        environment=environment,
        extra=extra,
        cloud=cloud,
    )
    return made, configuration


def client_credentials(tls: ClientTls) -> Callable[[str], Credentials]:
    """Certificates by shard: minted with the CA's key, or the one that was given."""
    ca = _read(tls.ca)
    if tls.ca_key is not None:
        try:
            authority = Authority.load(ca, _read(tls.ca_key))
        except ValueError as error:
            raise UsageError(f"--tls-ca-key {tls.ca_key}: {error}") from error
        minted: dict[str, Credentials] = {}

        def mint(shard: str) -> Credentials:
            if shard not in minted:
                minted[shard] = authority.leaf([shard_san(shard)])
            return minted[shard]

        return mint
    if (tls.certificate is None) != (tls.key is None):
        raise UsageError("--tls-cert and --tls-key belong together")
    given = Credentials(
        ca,
        _read(tls.certificate) if tls.certificate else b"",
        _read(tls.key) if tls.key else b"",
    )
    return lambda _: given


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
