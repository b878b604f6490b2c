"""Many Creates at once: how they end, what they cost, and that none buys twice."""

import asyncio
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bigfleet_fakecloud.behaviour.faults import Rule
from bigfleet_fakecloud.cloud import Cloud
from bigfleet_lab.battery.subject import Subject
from bigfleet_providerkit import State
from bigfleet_providerkit.machines.record import Record

THROTTLED_SHARE, STOCK_OUT_SHARE = 0.05, 0.02
LATENCY_S = 0.05
LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class StormReport:
    """`ends` counts states, and for machines whose Create failed the first word of their reason,
    also where they healed since. `seconds` are those of the provider's clock; `failures` are the
    machines that failed, with their reasons."""

    ends: Counter[str]
    seconds: float
    calls: int
    throttled: int
    doubled: Sequence[str]
    leaked: Sequence[str]
    failures: Mapping[str, str] = field(default_factory=dict)

    def calls_a_machine(self) -> float:
        """API calls for each machine."""
        return self.calls / self.ends.total()

    def throttled_share(self) -> float:
        """Which part of the calls was answered 429."""
        return self.throttled / max(1, self.calls)


def rough_weather(
    cloud: Cloud,
    create: str,
    *,
    throttled: str,
    stock_out: tuple[int, str],
    stock_out_text: str = "none left",
    throttled_status: int = 429,
) -> None:
    """50 ms latency; 5 % of the calls are throttled, half of them with Retry-After 1 s; 2 % of
    the Creates find no stock. `throttled` and `stock_out` are the cloud's own codes; where a code
    says nothing the text does."""
    cloud.delays.turn({"latency": LATENCY_S})
    half = THROTTLED_SHARE / 2
    text = "too many calls"
    for pause in (1.0, None):
        cloud.faults.add(
            Rule(
                status=throttled_status,
                code=throttled,
                text=text,
                retry_after=pause,
                times=None,
                chance=half,
            )
        )
    status, code = stock_out
    cloud.faults.add(
        Rule(
            create,
            status=status,
            code=code,
            text=stock_out_text,
            times=None,
            chance=STOCK_OUT_SHARE,
        )
    )


async def storm(subject: Subject, machines: int, seconds: float) -> StormReport:
    """Create so many machines at once and wait until every Create has ended.

    That takes `seconds` of the provider's clock at most.
    """
    subject.cloud.calls.clear()
    clock = subject.running.backend.kit.clock
    began = clock.monotonic()
    free = (await subject.shard.machines(State.SPECULATIVE))[:machines]
    assert len(free) == machines, f"{len(free)} slots are free, {machines} are wanted"
    for machine in free:
        await subject.shard.create(machine.id)
    ledger = subject.running.backend.ledger
    wanted = {machine.id for machine in free}
    failures: dict[str, str] = {}
    while True:
        under_way = bool(ledger.work)
        failures |= _failures(ledger.inventory, wanted)
        if not under_way:
            break
        took = clock.monotonic() - began
        assert took < seconds, f"{len(ledger.work)} Creates have not ended"
        await asyncio.sleep(LOOK_EVERY_S)
    took = clock.monotonic() - began
    statuses = Counter(call.status for call in list(subject.cloud.calls))
    ends = Counter(
        failures.get(record.id, record.state.word).split(":")[0]
        for record in ledger.inventory
        if record.id in wanted
    )
    return StormReport(
        ends, took, statuses.total(), statuses[429], subject.doubled(), subject.leaked(), failures
    )


def _failures(inventory: Iterable[Record], wanted: Container[str]) -> dict[str, str]:
    """The machines that are FAILED now, and why."""
    return {
        record.id: record.last_error
        for record in inventory
        if record.state is State.FAILED and record.id in wanted
    }
