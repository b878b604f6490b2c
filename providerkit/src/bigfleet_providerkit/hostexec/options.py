"""Options of providers that reach their hosts by SSH or by agent; they subclass one of these."""

from typing import Annotated, Literal

from pydantic import Field

from bigfleet_providerkit.options.model import KitOptions, Opt


class SshOptions(KitOptions):
    """For hosts that are reached by SSH."""

    ssh_key: Annotated[
        str | None, Opt("private key for hosts", "/etc/bigfleet/ssh", unset="required")
    ] = None
    ssh_user: Annotated[str, Opt("user on the hosts; sudo -n unless root", "ubuntu")] = "root"
    ssh_port: Annotated[int, Field(ge=1, le=65535), Opt("port of SSH on the hosts", "22")] = 22
    ssh_address: Annotated[
        Literal["public", "private"], Opt("which address of a host is dialled")
    ] = "public"
    ssh_jump: Annotated[
        str | None,
        Opt(
            "host over which all hosts are reached, with the same key",
            "bastion@10.0.0.5:22",
            unset="none",
        ),
    ] = None
    ssh_jump_known_hosts: Annotated[
        str | None,
        Opt(
            "known_hosts file with the key of the jump host",
            "/etc/bigfleet/known_hosts",
            unset="any key; the pins of the hosts are checked all the same",
        ),
    ] = None

    def missing(self) -> list[str]:
        """The key, when it is not given."""
        return [*super().missing(), *_absent(self, "ssh_key")]


class AgentOptions(KitOptions):
    """For hosts whose agent polls the provider."""

    bootstrap_addr: Annotated[str, Opt("address of the agents' HTTPS server", ":9003")] = (
        "127.0.0.1:9003"
    )
    bootstrap_endpoint: Annotated[
        str | None,
        Opt("address by which hosts reach it", "https://host:9003", unset="required"),
    ] = None
    bootstrap_tls_cert: Annotated[
        str | None, Opt("its certificate", "agent.crt", unset="required")
    ] = None
    bootstrap_tls_key: Annotated[str | None, Opt("its key", "agent.key", unset="required")] = None
    bootstrap_ca: Annotated[
        str | None, Opt("CA that agents pin", "ca.crt", unset="the server's certificate")
    ] = None
    bootstrap_secret: Annotated[
        str | None,
        Opt("secret of the agents' tokens, at least 32 bytes, the same over restarts",
            env=("BIGFLEET_BOOTSTRAP_SECRET",), secret=True, unset="required"),
    ] = None  # fmt: skip

    def missing(self) -> list[str]:
        """What the agents' server needs and was not given."""
        return [
            *super().missing(),
            *_absent(
                self,
                "bootstrap_endpoint",
                "bootstrap_tls_cert",
                "bootstrap_tls_key",
                "bootstrap_secret",
            ),
        ]


def _absent(options: KitOptions, *names: str) -> list[str]:
    return [f"--{name.replace('_', '-')}" for name in names if not getattr(options, name)]
