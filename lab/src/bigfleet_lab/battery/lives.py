"""Many whole lives at the limits of a cloud, while another program works in the same account."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bigfleet_fakecloud.cloud import Cloud
from bigfleet_lab.battery.storms import StormReport, storm
from bigfleet_lab.battery.subject import Subject
from bigfleet_providerkit import CallRate, Clock, State

OTHER_CALL_EVERY_S = 5.0


@dataclass(frozen=True)
class LivesReport:
    """`others` are the statuses of the other program's calls; `calls` has them as well. `seconds`
    are those of the provider's clock."""

    lives: int
    seconds: float
    creates: StormReport
    calls: int
    throttled: Counter[str]
    others: Counter[int]

    def throttled_share(self) -> float:
        """Which part of all calls came too fast."""
        return self.throttled.total() / max(1, self.calls)

    def __str__(self) -> str:
        return (
            f"{self.lives} lives in {self.seconds:.1f} s: {dict(self.creates.ends)}, "
            f"{self.calls / self.lives:.2f} calls a machine, throttled {dict(self.throttled)}, "
            f"another program's {dict(self.others)}"
        )


def limit_as_declared(cloud: Cloud, calls: Iterable[str | CallRate]) -> None:
    """Refuse calls that come faster than a provider declares, with room for the calls of a second:
    on a busy machine they wait for a thread and then go out together. Calls with a bucket of
    their own only."""
    for call in calls:
        if isinstance(call, CallRate) and len(call.ops) == 1:
            declared = call.burst if call.burst is not None else max(1.0, call.rate / 5)
            cloud.throttle.limit(call.ops[0], call.rate, declared + max(1.0, call.rate))


async def whole_lives(
    subject: Subject, lives: int, seconds: float, other: Callable[[], int] | None = None
) -> LivesReport:
    """So many machines created, configured, drained and deleted, each step for all at once.
    `other` makes a call of another program and gives its status."""
    stop = asyncio.Event()
    clock = subject.running.backend.kit.clock
    others = asyncio.get_running_loop().create_task(_other_program(other, clock, stop))
    began = clock.monotonic()
    creates = await storm(subject, lives, seconds)
    idle = [machine.id for machine in await subject.shard.machines(State.IDLE)]
    await _all_reach(subject, idle, "configure", State.CONFIGURED, seconds)
    await _all_reach(subject, idle, "drain", State.IDLE, seconds)
    await _all_reach(subject, idle, "delete", State.SPECULATIVE, seconds)
    stop.set()
    return _report(subject, lives, began, creates, await others)


async def created_and_deleted(subject: Subject, lives: int, seconds: float) -> LivesReport:
    """So many machines created and deleted."""
    began = subject.running.backend.kit.clock.monotonic()
    creates = await storm(subject, lives, seconds)
    idle = [machine.id for machine in await subject.shard.machines(State.IDLE)]
    await _all_reach(subject, idle, "delete", State.SPECULATIVE, seconds)
    return _report(subject, lives, began, creates, Counter())


def _report(
    subject: Subject, lives: int, began: float, creates: StormReport, others: Counter[int]
) -> LivesReport:
    cloud = subject.cloud
    took = subject.running.backend.kit.clock.monotonic() - began
    return LivesReport(lives, took, creates, len(cloud.calls), cloud.throttle.refused, others)


async def _other_program(
    call: Callable[[], int] | None, clock: Clock, stop: asyncio.Event
) -> Counter[int]:
    seen: Counter[int] = Counter()
    while call is not None and not stop.is_set():
        seen[await asyncio.to_thread(call)] += 1
        pause = asyncio.ensure_future(clock.sleep(OTHER_CALL_EVERY_S))
        stopped = asyncio.ensure_future(stop.wait())
        await asyncio.wait({pause, stopped}, return_when=asyncio.FIRST_COMPLETED)
        pause.cancel()
        stopped.cancel()
    return seen


async def _all_reach(
    subject: Subject, machines: list[str], what: str, state: State, seconds: float
) -> None:
    for machine in machines:
        await getattr(subject.shard, what)(machine)
    for machine in machines:
        await subject.shard.until(machine, state, seconds)
