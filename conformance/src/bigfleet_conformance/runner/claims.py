"""What a provider offers: asked of its help, its profile, its configuration, and of itself.

The probe walks one machine through its life with a few calls. It judges nothing; it only finds out
which behaviours apply, and how long a transition takes.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from bigfleet_api.v1alpha1 import provider_pb2 as pb
from bigfleet_conformance.errors import CannotRunError, Finding, UsageError
from bigfleet_conformance.harness.calls import Code
from bigfleet_conformance.harness.link import ChannelLink
from bigfleet_conformance.harness.oracles import CONFIGURED, IDLE, TRANSITIONAL
from bigfleet_conformance.harness.probe import FAULT_LABEL, Probe
from bigfleet_conformance.options import ALL, Options
from bigfleet_conformance.registry import Capability, Profile
from bigfleet_conformance.results import Claim
from bigfleet_conformance.runner.process import names_flag

ASK_S = 5.0
LONG_ENOUGH_S = 0.2
LONG_TRANSITION_S = 5.0
BY_PROFILE: Mapping[Profile, Capability] = {
    Profile.CLOUD: Capability.DELETE,
    Profile.FAULT: Capability.FAULT,
    Profile.DURABLE: Capability.DURABLE,
    Profile.SCALE: Capability.SCALE,
    Profile.SECURE: Capability.TLS,
}


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What the probe saw."""

    delete: bool
    revisions: bool
    continues: bool
    spot: bool
    fault_slots: bool
    machines: int
    longest_s: float
    transitional_s: float
    complaint: str = ""
    observable: bool = False

    def sentence(self) -> str:
        """The first line of a run."""
        offers = [
            name
            for name, there in (
                ("Delete", self.delete),
                ("SinceRevision", self.revisions),
                ("Continuation", self.continues),
                ("spot machines", self.spot),
                ("fault slots", self.fault_slots),
                ("health or reflection", self.observable),
            )
            if there
        ]
        text = ", ".join(offers) or "nothing optional"
        return (
            f"probe: {self.machines} machines; offers {text}; "
            f"longest transition {self.longest_s * 1000:.0f} ms"
            + (f"; {self.complaint}" if self.complaint else "")
        )


async def look(p: Probe) -> ProbeResult:
    """Walk one machine, and see what there is; a provider that cannot even list offers nothing."""
    try:
        machines = await p.sweep()
    except (Finding, CannotRunError) as error:
        return ProbeResult(False, False, False, False, False, 0, 0.0, 0.0, str(error))
    first = await p.list(most=1)
    second = await p.list(most=1, since=first.revision) if first.revision else pb.MachineList()
    new = {m.id for m in second.machines} - {m.id for m in first.machines}
    watch = _Stopwatch(p)
    delete, complaint = False, ""
    try:
        delete = await watch.walk()
    except (Finding, CannotRunError) as error:
        complaint = f"the first walk failed: {error}"
    return ProbeResult(
        delete=delete,
        revisions=bool(first.revision),
        continues=bool(new),
        spot=any(m.capacity_type == pb.CAPACITY_TYPE_SPOT for m in machines),
        fault_slots=any(m.labels.get(f"{FAULT_LABEL}create") == "error" for m in machines),
        machines=len(machines),
        longest_s=watch.longest_s,
        transitional_s=watch.transitional_s,
        complaint=complaint,
        observable=await is_observable(p),
    )


async def is_observable(p: Probe) -> bool:
    """Whether the provider serves health or reflection, whatever they say."""
    if not isinstance(p.link, ChannelLink):
        return False
    channel = p.link.channel()
    health = health_pb2_grpc.HealthStub(channel)
    reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
    question = reflection_pb2.ServerReflectionRequest(list_services="")
    try:
        await health.Check(health_pb2.HealthCheckRequest(), timeout=ASK_S)
    except grpc.aio.AioRpcError:
        pass
    else:
        return True
    try:
        async for _ in reflection.ServerReflectionInfo(iter([question]), timeout=ASK_S):
            return True
    except grpc.aio.AioRpcError:
        pass
    return False


class _Stopwatch:
    """One walk, with the time each transition took and was seen to take."""

    def __init__(self, p: Probe) -> None:
        self.p = p
        self.longest_s = 0.0
        self.transitional_s = 0.0

    async def walk(self) -> bool:
        walker = self.p.slot()
        await self._time(walker.id, await walker.try_create(), IDLE)
        await self._time(walker.id, await walker.try_configure(self.p.binding()), CONFIGURED)
        await self._time(walker.id, await walker.try_drain(), IDLE)
        answer = await walker.try_delete()
        return answer.code is not Code.UNIMPLEMENTED

    async def _time(self, machine: str, answer: object, target: int) -> None:
        began = time.monotonic()
        seen_until = began
        while True:
            record = await self.p.see(machine)
            now = time.monotonic()
            if record.state in TRANSITIONAL:
                seen_until = now
            if record.state == target or now - began > self.p.pace.settle_s:
                break
        self.longest_s = max(self.longest_s, now - began)
        self.transitional_s = max(self.transitional_s, seen_until - began)


def chosen_profiles(options: Options, seen: ProbeResult, *, bootable: bool) -> tuple[Profile, ...]:
    """The profiles of a run; `all` depends on what the provider is."""
    if ALL not in options.profiles:
        return tuple(dict.fromkeys(Profile(name) for name in options.profiles))
    delete_claimed = seen.delete or "delete" in {claim.lower() for claim in options.claims}
    chosen = [Profile.CORE, Profile.CLOUD if delete_claimed else Profile.BARE_METAL]
    if seen.spot:
        chosen.append(Profile.SPOT)
    if bootable:
        chosen += [Profile.FAULT, Profile.DURABLE, Profile.SCALE, Profile.SECURE]
    elif seen.fault_slots:
        chosen.append(Profile.FAULT)
    if seen.observable:
        chosen.append(Profile.OBSERVABLE)
    if not chosen:
        raise UsageError("no profile applies, so nothing would be required")
    return tuple(chosen)


def gather_claims(
    options: Options,
    profiles: Iterable[Profile],
    seen: ProbeResult,
    *,
    help_text: str,
    fault_help: str,
    slow_instance: bool,
    configured: Iterable[str] = (),
) -> list[Claim]:
    """Every claim with the first source that made it."""
    found: dict[Capability, Claim] = {}
    confirmed = {
        Capability.DELETE: seen.delete,
        Capability.SINCE_REVISION: seen.revisions,
        Capability.CONTINUATION: seen.continues,
        Capability.FAULT: seen.fault_slots,
        Capability.SLOW: seen.transitional_s >= LONG_ENOUGH_S,
    }

    def add(capability: Capability, source: str) -> None:
        found.setdefault(capability, Claim(capability, source, confirmed.get(capability, False)))

    for profile in profiles:
        if profile in BY_PROFILE:
            add(BY_PROFILE[profile], f"profile {profile}")
    words = {str(capability).lower(): capability for capability in Capability}
    for claim in options.claims:
        add(words[claim.lower()], "--claim")
    for claim in configured:
        if claim.lower() not in words:
            raise UsageError(f"conformance.yaml claims {claim!r}, which is not a capability")
        add(words[claim.lower()], "conformance.yaml")
    if names_flag(help_text, "slow-ms"):
        add(Capability.SLOW, "help names --slow-ms")
    if names_flag(fault_help, "heal-after"):
        add(Capability.HEAL, "help of the fault subject names --heal-after")
    if slow_instance:
        add(Capability.SLOW, "slow instance")
    for capability, true in confirmed.items():
        if true:
            add(capability, "probe")
    return list(found.values())
