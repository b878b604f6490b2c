"""What a provider inherits when it reaches its hosts by SSH or by agent.

    class HetznerSubstrate(SshSubstrate):        options: SshOptions
    class DropletSubstrate(AgentSubstrate):      options: AgentOptions

The mixin brings `run_on_host` and, with agents, `serve` and `aclose`; the provider writes the
methods about its cloud. Deliveries count as the calls Configure, Drain and Probe, so a declaration
names `*DELIVERY_CALLS` beside the calls of its cloud.

A channel and its library are imported when a substrate is made: a process needs one of them, and
with `--use-fake-backend` none.
"""

from bigfleet_providerkit.errors import OptionError
from bigfleet_providerkit.hostexec.options import AgentOptions, SshOptions
from bigfleet_providerkit.hostexec.userdata import multipart
from bigfleet_providerkit.kit import Kit
from bigfleet_providerkit.substrate import CommandKind, Host, HostCommand, HostResult, Launch

DELIVERY_CALLS = ("Configure", "Drain", "Probe")
_CALL_OF = {
    CommandKind.CONFIGURE: "Configure",
    CommandKind.DRAIN: "Drain",
    CommandKind.PROBE: "Probe",
}


class SshSubstrate:
    """Runs commands on hosts over SSH, with the host key that was given to them at Create.

    The host's `address` and `pin` come from the substrate and the store; `order.user_data` already
    carries the host key. Declare `pinned_host_keys=True`.
    """

    def __init__(self, kit: Kit, options: SshOptions) -> None:
        from bigfleet_providerkit.hostexec.channels.ssh import SshAccess, SshChannel, load_key

        self._kit = kit
        access = SshAccess(
            load_key(options.ssh_key), options.ssh_user, options.ssh_port,
            options.ssh_jump or "", options.ssh_jump_known_hosts,
        )  # fmt: skip
        self._ssh = SshChannel(access, kit.pin_host)

    async def run_on_host(self, host: Host, command: HostCommand) -> HostResult:
        """Run the kit's script on the host."""
        return await self._kit.acall(_CALL_OF[command.kind], lambda: self._ssh.run(host, command))

    async def aclose(self) -> None:
        """Let go of connections. A provider that overrides this calls it too."""
        await self._ssh.aclose()


class AgentSubstrate:
    """Leaves commands for the agents of hosts, which poll this process over HTTPS.

    `launch` gives its host `self.user_data(order)` instead of `order.user_data`.
    """

    def __init__(self, kit: Kit, options: AgentOptions) -> None:
        from bigfleet_providerkit.hostexec.channels.agent import (
            AgentChannel,
            check_secret,
            read_ca,
        )

        self._kit = kit
        self._options = options
        self._agents = AgentChannel(check_secret(options.bootstrap_secret), kit.create_operation)
        try:
            self._ca = read_ca(options.bootstrap_ca, options.bootstrap_tls_cert or "")
        except OSError as error:
            raise OptionError(
                f"the CA that agents pin cannot be read: {error}; give --bootstrap-ca or a "
                "readable --bootstrap-tls-cert"
            ) from error

    def user_data(self, order: Launch) -> str:
        """The user data of an order with its agent."""
        from bigfleet_providerkit.hostexec.channels.agent import agent_user_data

        agent = agent_user_data(
            self._options.bootstrap_endpoint or "",
            self._ca,
            order.machine_id,
            self._agents.token(order.machine_id, order.operation_id),
            self._options.bootstrap_hook,
        )
        return multipart(order.user_data, agent)

    async def serve(self) -> None:
        """Listen for agents."""
        options = self._options
        await self._agents.start(
            options.bootstrap_addr,
            options.bootstrap_tls_cert or "",
            options.bootstrap_tls_key or "",
        )

    async def run_on_host(self, host: Host, command: HostCommand) -> HostResult:
        """Leave the command for the host's agent and wait for its end."""
        return await self._kit.acall(
            _CALL_OF[command.kind], lambda: self._agents.run(host, command)
        )

    async def aclose(self) -> None:
        """Stop listening. A provider that overrides this calls it too."""
        await self._agents.aclose()
